# SPDX-License-Identifier: GPL-3.0-or-later
"""An in-memory server with the features that whole configurations need, and with configurable
faults.

The parameters are those of real servers [analysis-0].
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

from tests.unit.analysis.server import lines, refusal
from tests.unit.stub import Reply, Seen

Form = dict[str, str]


class Server:
    """A simulated server. `faults` are called first, with the form of each request; if a fault
    returns a reply, it is sent.
    """

    def __init__(self) -> None:
        self.users: dict[str, bool] = {"alice": False, "bob": False, "analyst": False}
        self.groups: dict[str, dict[str, Any]] = {
            "dev": {"users": ["alice"], "readonly": False},
            "admins": {"users": ["analyst"], "readonly": False},
        }
        self.roles: dict[str, dict[str, Any]] = {
            "Root": {"readonly": True, "on": {"create_project"}},
            "Developer": {"readonly": False, "on": {"create_build"}},
            "Owner": {"readonly": False, "on": {"manage_roles"}},
        }
        self.assignments: list[tuple[str, str, str | None, bool]] = [
            ("Owner", "admins", None, True),
            ("Developer", "dev", "p_1", True),
        ]
        self.projects: dict[str, str] = {"p": "p_1", "q": "q"}
        self.modules: dict[str, dict[str, list[str]]] = {"p_1": {"core": ["**/core/*"]}, "q": {}}
        self.views: dict[str, dict[str, str]] = {
            "p_1": {"*default*": "", "v": "state:New"},
            "q": {},
        }
        self.builds: dict[str, list[str]] = {"p_1": ["release"]}
        self.types: dict[str, dict[str, bool]] = {"p_1": {"ABV": True}, "q": {"ABV": True}}
        self.importable: dict[str, str] = {"fw": "fw_7"}
        self.forms: list[Form] = []
        self.faults: list[Callable[[Form], Reply | None]] = []
        self.hide_members = False

    def __call__(self, seen: Seen) -> Reply:
        form = seen.form
        self.forms.append(form)
        for fault in self.faults:
            reply = fault(form)
            if reply is not None:
                return reply
        return self.carry_out(form)

    def carry_out(self, form: Form) -> Reply:
        reply: Reply | None = getattr(self, f"_{form['action']}")(form)
        return Reply() if reply is None else reply

    @property
    def actions(self) -> list[str]:
        return [form["action"] for form in self.forms]

    @property
    def writes(self) -> list[str]:
        """Return action and object of every write, in order."""
        return [
            f"{form['action']} {form.get('name', form.get('code', form.get('project')))}"
            for form in self.forms
            if form["action"].split("_", 1)[0] in ("create", "update", "delete")
            or form["action"] == "import_project"
        ]

    def _users(self, form: Form) -> Reply:
        shown = [{"name": name, "readonly": fixed} for name, fixed in self.users.items()]
        return _listed(shown, form)

    def _create_user(self, form: Form) -> None:
        self.users[form["name"]] = False

    def _delete_user(self, form: Form) -> None:
        del self.users[form["name"]]

    def _groups(self, form: Form) -> Reply:
        shown = [{"name": name, **group} for name, group in self.groups.items()]
        if self.hide_members:
            shown = [{key: record[key] for key in ("name", "readonly")} for record in shown]
        return _listed(shown, form)

    def _create_group(self, form: Form) -> Reply | None:
        users = [name for name in form.get("users", "").split(",") if name]
        for name in users:
            if name not in self.users:
                return refusal(404, f"User {name} does not exist")
        self.groups[form["name"]] = {"users": users, "readonly": False}
        return None

    _update_group = _create_group

    def _delete_group(self, form: Form) -> None:
        del self.groups[form["name"]]

    def _projects(self, form: Form) -> Reply:
        return lines(*({"name": name, "id": key} for name, key in self.projects.items()))

    def _update_project(self, form: Form) -> None:
        self.projects[form["new_name"]] = self.projects.pop(form["name"])

    def _delete_project(self, form: Form) -> None:
        del self.projects[form["name"]]

    def _import_project(self, form: Form) -> None:
        key = self.importable[form["project"]]
        self.projects[form["project"]] = key
        self.modules[key], self.views[key] = {"all": ["**"]}, {}
        self.types[key] = {"ABV": True}

    def _import_status(self, form: Form) -> Reply:
        return lines()

    def _roles(self, form: Form) -> Reply:
        return lines(
            *(
                {
                    "name": name,
                    "readonly": role["readonly"],
                    "permissions": [
                        {"name": each, "enabled": each in role["on"]}
                        for each in ("create_project", "create_build", "manage_roles")
                    ],
                    "statusPermissions": [],
                }
                for name, role in self.roles.items()
            )
        )

    def _create_role(self, form: Form) -> None:
        role = self.roles.setdefault(form["name"], {"readonly": False, "on": set()})
        for name in ("create_project", "create_build", "manage_roles"):
            if form.get(name) == "true":
                role["on"].add(name)
            elif form.get(name) == "false":
                role["on"].discard(name)

    _update_role_permissions = _create_role

    def _delete_role(self, form: Form) -> None:
        del self.roles[form["name"]]
        self.assignments = [
            assignment for assignment in self.assignments if assignment[0] != form["name"]
        ]

    def _role_assignments(self, form: Form) -> Reply:
        return lines(
            *(
                {
                    "name": name,
                    "readonly": False,
                    "assignments": [
                        {"name": account, "projectId": project, "group": group}
                        for role, account, project, group in self.assignments
                        if role == name
                    ],
                }
                for name in self.roles
            )
        )

    def _update_role_assignment(self, form: Form) -> Reply | None:
        if form.get("project") not in (None, *self.projects.values()):
            return refusal(404, "Project does not exist")
        entry = (form["name"], form["account"], form.get("project"), form["group"] == "true")
        if form.get("remove") == "true":
            self.assignments.remove(entry)
        else:
            self.assignments.append(entry)
        return None

    def _modules(self, form: Form) -> Reply:
        there = self.modules[self.projects[form["project"]]]
        return lines(*({"name": name, "paths": paths} for name, paths in there.items()))

    def _create_module(self, form: Form) -> Reply | None:
        there = self.modules[self.projects[form["project"]]]
        if form["action"] == "create_module" and form["name"] in there:
            return refusal(400, f"Module {form['name']} already exists")
        there[form["name"]] = form["paths"].split(",")
        return None

    _update_module = _create_module

    def _delete_module(self, form: Form) -> None:
        del self.modules[self.projects[form["project"]]][form["name"]]

    def _views(self, form: Form) -> Reply:
        there = self.views[self.projects[form["project"]]]
        return lines(*({"name": name, "query": query} for name, query in there.items()))

    def _builds(self, form: Form) -> Reply:
        there = self.builds.get(self.projects[form["project"]], [])
        return lines(*({"name": name} for name in there))

    def _create_view(self, form: Form) -> None:
        self.views[self.projects[form["project"]]][form["name"]] = form["query"]

    _update_view = _create_view

    def _delete_view(self, form: Form) -> None:
        del self.views[self.projects[form["project"]]][form["name"]]

    def _defect_types(self, form: Form) -> Reply:
        there = self.types[self.projects[form["project"]]]
        return lines(*({"code": code, "enabled": on} for code, on in there.items()))

    def _update_defect_type(self, form: Form) -> None:
        there = self.types[self.projects[form["project"]]]
        there[form["code"]] = form["enabled"] == "true"


def _listed(records: list[dict[str, Any]], form: Form) -> Reply:
    """Return the records that `search` and `limit` select [analysis-9]."""
    found = [record for record in records if fnmatchcase(record["name"], form.get("search", "*"))]
    return lines(*found[: int(form.get("limit", 1000))])
