# SPDX-License-Identifier: GPL-3.0-or-later
"""Projects with their builds, modules, views and defect types [W4.5, analysis-6].

The objects of a project are stored under `<project id>/<name>`. Renaming a project keeps its id.
"""

from __future__ import annotations

from typing import Any

from sandbox.analysis.responses import Call, Record, Refused
from sandbox.context import Context

PROJECTS, BUILDS, MODULES, VIEWS, ISSUES, DEFECTS = (
    "analysis.project",
    "analysis.build",
    "analysis.module",
    "analysis.view",
    "analysis.issue",
    "analysis.defect_type",
)
# The record of a role contains its assignments, including those for a project.
ROLES = "analysis.role"
DEFAULT_VIEW = {
    "id": 0,
    "name": "*default*",
    "query": "",
    "creator": "System",
    "is_public": True,
    "tags": [],
}
MODULE_LISTS = ("allow_users", "allow_groups", "deny_users", "deny_groups", "tags")


def seed(context: Context, data: dict[str, Any]) -> None:
    """Store a project of the seed.

    Keys: `name, id, creator, description, tags, builds, modules, views, issues, ...`.
    """
    name, project_id = data["name"], data.get("id", data["name"])
    project = {
        "id": project_id,
        "name": name,
        "creator": data.get("creator", "admin"),
        "description": data.get("description", ""),
        "tags": data.get("tags") or [],
    }
    store = context.store
    store.put(PROJECTS, name, project)
    for number, build in enumerate(data.get("builds") or [], 1):
        store.put(BUILDS, f"{project_id}/{build['name']}", {"id": number, "keepit": False, **build})
    for module in data.get("modules") or []:
        filled = {"paths": [], "allowAll": True, **{key: [] for key in MODULE_LISTS}, **module}
        store.put(MODULES, f"{project_id}/{module['name']}", filled)
    views = [DEFAULT_VIEW, *(data.get("views") or [])]
    for number, view in enumerate(views):
        filled = {**DEFAULT_VIEW, "id": number, "creator": project["creator"], **view}
        store.put(VIEWS, f"{project_id}/{view['name']}", filled)
    for issue in data.get("issues") or []:
        store.put(ISSUES, f"{project_id}/{issue['id']:09d}", issue)
    for defect in data.get("defect_types") or []:
        store.put(DEFECTS, f"{project_id}/{defect['code']}", {"enabled": True, **defect})


def named(call: Call) -> dict[str, Any]:
    """Return the project in the parameter `project`."""
    name = call.required("project")
    project = call.context.store.get(PROJECTS, name)
    if project is None:
        raise call.absent(f"Project {name}")
    return project


def id_of(call: Call, given: str) -> str:
    """Return the id of a project, given by id or, in the interface description, also by name."""
    for name, project in call.context.store.items(PROJECTS):
        if project["id"] == given or (not call.real and name == given):
            return str(project["id"])
    raise call.absent(f"Project {given}")


def inside(call: Call, kind: str) -> list[dict[str, Any]]:
    """Return all objects of a kind in the project that the call names."""
    prefix = f"{named(call)['id']}/"
    return call.context.store.values(kind, prefix)


def _without_empty(record: Record, *names: str) -> Record:
    """Return the record without empty lists, which the server omits [analysis-6, analysis-13]."""
    return {key: value for key, value in record.items() if key not in names or value}


def projects(call: Call) -> list[Record]:
    return [_without_empty(doc, "tags") for doc in call.context.store.values(PROJECTS)]


def _project(call: Call) -> dict[str, Any]:
    """Return the project in the parameter `name`."""
    name = call.required("name")
    project = call.context.store.get(PROJECTS, name)
    if project is None:
        raise call.absent(f"Project {name}")
    return project


def update_project(call: Call) -> None:
    """Change a project. Server fact [analysis-6]: renaming a project keeps its id."""
    project, new_name = _project(call), call.text("new_name")
    store = call.context.store
    if new_name and new_name != project["name"]:
        if store.get(PROJECTS, new_name) is not None:
            raise Refused(400, f"Project {new_name} already exists")
        store.delete(PROJECTS, project["name"])
        project["name"] = new_name
    for name, given in (("description", call.text("description")), ("tags", call.listed("tags"))):
        if given is not None:
            project[name] = given
    store.put(PROJECTS, project["name"], project)


def delete_project(call: Call) -> None:
    """Delete the project, its content, and the role assignments for it."""
    project, store = _project(call), call.context.store
    for kind in (BUILDS, MODULES, VIEWS, ISSUES, DEFECTS):
        for key in store.keys(kind, f"{project['id']}/"):
            store.delete(kind, key)
    for key, role in store.items(ROLES):
        kept = [
            assignment
            for assignment in role["assignments"]
            if assignment["projectId"] != project["id"]
        ]
        store.put(ROLES, key, {**role, "assignments": kept})
    store.delete(PROJECTS, project["name"])


def builds(call: Call) -> list[Record]:
    """Return builds, newest first, with `id`, `name`, `date` (epoch ms) and `keepit` [W2.5]."""
    found = inside(call, BUILDS)
    keys = ("id", "name", "date", "keepit")
    newest_first = sorted(found, key=lambda build: (-int(build["date"]), -int(build["id"])))
    return [{key: build[key] for key in keys} for build in newest_first]


def update_build(call: Call) -> None:
    """Change a build.

    Server fact [analysis-7]: real servers require `project`. The interface description [W4.5] does
    not have this parameter; there the first build with the name is changed.
    """
    name, new_name = call.required("name"), call.text("new_name")
    key = _build_key(call, name)
    build = call.context.store.get(BUILDS, key) or {}
    folder = key.partition("/")[0]
    if new_name and new_name != name:
        if call.context.store.get(BUILDS, f"{folder}/{new_name}") is not None:
            raise Refused(400, f"Build {new_name} already exists")
        call.context.store.delete(BUILDS, key)
        key, build["name"] = f"{folder}/{new_name}", new_name
    keep = call.boolean("keepit")
    if keep is not None:
        build["keepit"] = keep
    call.context.store.put(BUILDS, key, build)


def _build_key(call: Call, name: str) -> str:
    store = call.context.store
    if call.real or call.text("project"):
        keys = [f"{named(call)['id']}/{name}"]
    else:
        keys = [key for key in store.keys(BUILDS) if key.partition("/")[2] == name]
    for key in keys:
        if store.get(BUILDS, key) is not None:
            return key
    raise call.absent(f"Build {name}")


def delete_build(call: Call) -> None:
    call.context.store.delete(BUILDS, _build_key(call, call.required("name")))


def _view_key(call: Call) -> str:
    return f"{named(call)['id']}/{call.required('name')}"


def _given_view(call: Call, view: dict[str, Any]) -> None:
    """Change the fields of a view that the request contains, and keep the others."""
    given = {
        "query": call.text("query"),
        "tags": call.listed("tags"),
        "is_public": call.boolean("is_public"),
    }
    view.update({name: value for name, value in given.items() if value is not None})


def create_view(call: Call) -> None:
    key = _view_key(call)
    call.required("query")
    if call.context.store.get(VIEWS, key) is not None:
        raise Refused(400, f"View {call.text('name')} already exists")
    number = 1 + max(int(view["id"]) for view in inside(call, VIEWS))
    name, creator = call.text("name"), call.text("user")
    view = {**DEFAULT_VIEW, "id": number, "name": name, "creator": creator, "is_public": False}
    _given_view(call, view)
    call.context.store.put(VIEWS, key, view)


def _view(call: Call) -> tuple[str, dict[str, Any]]:
    key = _view_key(call)
    view = call.context.store.get(VIEWS, key)
    if view is None:
        raise call.absent(f"View {call.text('name')}")
    if view["name"] == DEFAULT_VIEW["name"]:
        raise Refused(403, f"View {view['name']} is built in")
    return key, view


def update_view(call: Call) -> None:
    """Change a view. In the interface description [W4.5] only `tags` can be changed; real servers
    can also change the query [analysis-13].
    """
    key, view = _view(call)
    new_name = call.text("new_name")
    if new_name and new_name != view["name"]:
        new_key = f"{named(call)['id']}/{new_name}"
        if call.context.store.get(VIEWS, new_key) is not None:
            raise Refused(400, f"View {new_name} already exists")
        call.context.store.delete(VIEWS, key)
        key, view["name"] = new_key, new_name
    _given_view(call, view)
    call.context.store.put(VIEWS, key, view)


def delete_view(call: Call) -> None:
    call.context.store.delete(VIEWS, _view(call)[0])


def update_defect_type(call: Call) -> None:
    code = call.required("code")
    key = f"{named(call)['id']}/{code}"
    defect = call.context.store.get(DEFECTS, key)
    if defect is None:
        raise call.absent(f"Defect type {code}")
    enabled, severity = call.boolean("enabled"), call.text("severity")
    if enabled is not None:
        defect["enabled"] = enabled
    if severity is not None:
        defect["severity"] = int(severity)
    call.context.store.put(DEFECTS, key, defect)


def views(call: Call) -> list[Record]:
    return [_without_empty(view, "tags") for view in inside(call, VIEWS)]


def defect_types(call: Call) -> list[Record]:
    keys = ("code", "name", "enabled", "severity")
    return [{key: defect[key] for key in keys} for defect in inside(call, DEFECTS)]


def modules(call: Call) -> list[Record]:
    """Return modules. Server fact [analysis-8]: older servers omit `allowAll` and `tags`."""
    shown = []
    for module in inside(call, MODULES):
        record: Record = {"name": module["name"], "paths": module["paths"]}
        if call.settings["modules_show_allow_all"]:
            record["allowAll"] = module["allowAll"]
            record = _without_empty({**record, "tags": module["tags"]}, "tags")
        shown.append(record)
    return shown


def _module_key(call: Call, name: str) -> str:
    return f"{named(call)['id']}/{name}"


def _given_module(call: Call, module: dict[str, Any]) -> None:
    """Change the fields of a module that the request contains, and keep the others."""
    allow_all = call.boolean("allow_all")
    if allow_all is not None:
        module["allowAll"] = allow_all
    for name in ("paths", *MODULE_LISTS):
        value = call.listed(name)
        if value is not None:
            module[name] = value


def create_module(call: Call) -> None:
    """Create a module. Server fact [analysis-8]: real servers require `paths`."""
    name = call.required("name")
    key = _module_key(call, name)
    if call.context.store.get(MODULES, key) is not None:
        raise Refused(400, f"Module {name} already exists")
    if call.real:
        call.required("paths")
    module = {"name": name, "paths": [], "allowAll": False, **{key: [] for key in MODULE_LISTS}}
    _given_module(call, module)
    call.context.store.put(MODULES, key, module)


def _module(call: Call) -> tuple[str, dict[str, Any]]:
    name = call.required("name")
    key = _module_key(call, name)
    module = call.context.store.get(MODULES, key)
    if module is None:
        raise call.absent(f"Module {name}")
    return key, module


def update_module(call: Call) -> None:
    key, module = _module(call)
    new_name = call.text("new_name")
    if new_name and new_name != module["name"]:
        new_key = _module_key(call, new_name)
        if call.context.store.get(MODULES, new_key) is not None:
            raise Refused(400, f"Module {new_name} already exists")
        call.context.store.delete(MODULES, key)
        key, module["name"] = new_key, new_name
    _given_module(call, module)
    call.context.store.put(MODULES, key, module)


def delete_module(call: Call) -> None:
    call.context.store.delete(MODULES, _module(call)[0])
