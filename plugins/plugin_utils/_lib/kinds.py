# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of objects that the files of a desired state describe.

A row of `KINDS` is all that roles, playbooks, plugins and tools know about a kind.
`python -m tools.generated` writes the tasks and schemas of the role `desired_state` from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

#: The role that applies the kinds without another role.
ROLE = "desired_state"


class Kind(NamedTuple):
    """A list in the files of a service.

    :param list: name of the list, such as `jobs`
    :param key: options that identify an entry; () if nothing does
    :param whole: options of which an entry of an environment has at least one if it describes a
        whole object; () if its key does
    :param module: module that manages the objects, "" if they are no objects of a server
    :param title: how the task shows a list that it applies `at_once`, such as "views of the CI
        server"
    :param role: role that applies the list
    :param at_once: the module takes all entries in one task
    :param label: options that name an entry of a module that takes one entry, if not the key
    :param folders_before: list of the same service that needs the folders among the entries. They
        are applied before it, all other entries in the place of this row
    :param deletion: place among the deletions of the service, from 1; 0: no object that leaves the
        desired state is deleted
    :param compared: the export of the service shows the objects that the list does not name
    :param export: option of the export with which it reads the list, "" if it always does
    :param noun: object in findings, if it is not the singular of the list
    :param accounts: where the accounts of an entry are, see `core/accounts.py`
    :param reports: the module reports what the server cannot hold with `unsupported: report`
    :param texts: the text of an entry may name accounts, and the module has the option `accounts`
    """

    service: str
    list: str
    key: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    module: str = ""
    title: str = ""
    role: str = ROLE
    at_once: bool = False
    label: tuple[str, ...] = ()
    folders_before: str = ""
    deletion: int = 0
    compared: bool = False
    export: str = ""
    noun: str = ""
    accounts: tuple[str, ...] = ()
    texts: bool = False
    reports: bool = False

    @property
    def variable(self) -> str:
        """Return the variable of the role."""
        return f"{self.role}_{self.list}"

    def label_of(self, entry: Mapping[str, Any]) -> str:
        """Return how a task shows an entry. The content of a configuration may have secrets."""
        shown = []
        for option in self.label or self.key:
            value = entry.get(option)
            if option == "config":
                shown.append(", ".join(map(str, value)) if isinstance(value, Mapping) else "")
            else:
                shown.append(Path(str(value or "")).name if option == "src" else str(value or ""))
        return "/".join(filter(None, shown)) or singular(self.list)


def singular(plural: str) -> str:
    """Return the singular of a list, or of a noun."""
    return f"{plural[:-3]}y" if plural.endswith("ies") else plural.removesuffix("s")


#: Places of the accounts in restrictions of the wiki.
_RESTRICTED = tuple(
    f"{operation}.{members}[]"
    for operation in ("read", "update")
    for members in ("users", "groups")
)
_OF_PAGE = tuple(f"restrictions.{place}" for place in _RESTRICTED)
_STRATEGY = "config.jenkins.authorizationStrategy"
#: Places of the accounts in the configuration as code of the CI server, with the plugins for a
#: matrix and for roles. The text form of a permission ends with the account.
_CONFIGURED = (
    "config.jenkins.securityRealm.local.users[].id",
    f"{_STRATEGY}.*.entries[].*.name",
    f"{_STRATEGY}.*.permissions[]:",
    f"{_STRATEGY}.*.grantedPermissions[]:",
    f"{_STRATEGY}.roleBased.roles.*[].entries[].*",
    f"{_STRATEGY}.roleBased.roles.*[].assignments[]",
)


def _of_analysis(
    name: str,
    *key: str,
    whole: tuple[str, ...] = (),
    deletion: int = 0,
    accounts: tuple[str, ...] = (),
) -> Kind:
    return Kind(
        *("analysis", name, key, whole, "analysis_config"),
        role="analysis_config",
        deletion=deletion,
        compared=True,
        accounts=accounts,
    )


#: All kinds. Those of a service, and the services, are in the order in which they are applied: an
#: object comes after the objects that it needs. The configuration of the CI server needs its
#: plugins, and jobs may need the configuration.
KINDS = (
    _of_analysis("users", "name", deletion=5, accounts=("name",)),
    _of_analysis("groups", "name", deletion=4, accounts=("name", "users[]")),
    _of_analysis("projects", "name", deletion=7),
    _of_analysis("roles", "name", deletion=6),
    _of_analysis(
        *("role_assignments", "name", "account", "project", "group"),
        deletion=3,
        accounts=("account",),
    ),
    _of_analysis("modules", "project", "name", whole=("paths", "allow_all"), deletion=2),
    _of_analysis("views", "project", "name", whole=("query",), deletion=1),
    _of_analysis("defect_types", "project", "code"),
    Kind(
        *("repo", "repositories", ("key",), ("rclass",)),
        module="repo_repository",
        title="repositories",
        at_once=True,
        deletion=4,
        compared=True,
    ),
    Kind(
        *("repo", "groups", ("name",)),
        module="repo_group",
        title="groups of the repository manager",
        at_once=True,
        deletion=3,
        compared=True,
        accounts=("name", "members[]"),
    ),
    Kind(
        *("repo", "users", ("name",), ("email",)),
        module="repo_user",
        title="users of the repository manager",
        at_once=True,
        deletion=2,
        compared=True,
        accounts=("name", "groups[]"),
    ),
    Kind(
        *("repo", "permissions", ("name",), ("resources",)),
        module="repo_permission",
        title="permissions of the repository manager",
        at_once=True,
        deletion=1,
        compared=True,
        accounts=("resources.*.users{}", "resources.*.groups{}"),
    ),
    Kind("repo", "rules", role="repo_housekeeping"),
    Kind(
        *("repo", "retention", ("build_name", "project")),
        whole=("count", "max_age", "minimum_build_date"),
        role="repo_housekeeping",
    ),
    Kind("repo", "trash", role="repo_housekeeping"),
    Kind("ci", "plugins", ("name",), role="ci_baseline", compared=True, export="plugins"),
    Kind("ci", "scripts", ("name",), ("script", "src"), role="ci_baseline"),
    Kind(
        *("ci", "configuration"),
        module="ci_configuration",
        label=("config", "src"),
        accounts=_CONFIGURED,
    ),
    Kind(
        *("ci", "credentials", ("folder", "domain", "id"), ("kind", "config")),
        module="ci_credential",
        title="credentials of the CI server",
        at_once=True,
        deletion=2,
        compared=True,
        export="credentials",
    ),
    Kind(
        *("ci", "nodes", ("name",), ("remote_root", "config", "src")),
        module="ci_node",
        title="nodes of the CI server",
        at_once=True,
        deletion=4,
        compared=True,
        export="nodes",
    ),
    Kind(
        *("ci", "jobs", ("job",), ("config", "src", "folder")),
        module="ci_job",
        folders_before="credentials",
        deletion=3,
        compared=True,
    ),
    Kind(
        *("ci", "views", ("folder", "name"), ("jobs", "regex", "config", "src")),
        module="ci_view",
        title="views of the CI server",
        at_once=True,
        deletion=1,
        compared=True,
        export="views",
    ),
    Kind(
        *("tracker", "versions", ("project", "name")),
        module="tracker_version",
        title="versions of projects",
        at_once=True,
        deletion=2,
        compared=True,
    ),
    Kind(
        *("tracker", "components", ("project", "name")),
        module="tracker_component",
        title="components of projects",
        at_once=True,
        deletion=1,
        compared=True,
        accounts=("lead",),
    ),
    Kind(
        *("tracker", "project_roles", ("project", "role"), ("users", "groups")),
        module="tracker_project_role",
        title="roles of projects",
        at_once=True,
        compared=True,
        noun="role",
        accounts=("users[]", "groups[]"),
    ),
    Kind(
        *("wiki", "spaces", ("key",), ("name",)),
        module="wiki_space",
        title="spaces of the wiki",
        at_once=True,
        deletion=3,
        accounts=("permissions[].user", "permissions[].group"),
        reports=True,
    ),
    Kind(
        *("wiki", "pages", ("page_id", "space", "title"), ("body", "src")),
        module="wiki_page",
        deletion=2,
        accounts=_OF_PAGE,
        texts=True,
    ),
    Kind(
        *("wiki", "trees", ("src", "space")),
        module="wiki_tree",
        label=("space", "src"),
        accounts=_OF_PAGE,
        texts=True,
    ),
    Kind(
        *("wiki", "restrictions", ("page_id", "space", "title"), ("read", "update")),
        module="wiki_restriction",
        title="restrictions of pages",
        at_once=True,
        deletion=1,
        accounts=_RESTRICTED,
    ),
)
_BY_PLACE = {(kind.service, kind.list): kind for kind in KINDS}


def find(service: str, listed: str) -> Kind:
    """Return the kind of a list in the files of a service; other options are a kind without key."""
    return _BY_PLACE.get((service, listed)) or Kind(service, listed)


def name_of(service: str, listed: str) -> str:
    """Return the kind of a list's objects in findings, such as `repository` for `repositories`."""
    return find(service, listed).noun or singular(listed)


def deleted() -> list[Kind]:
    """Return the kinds whose objects can be deleted, in the order of the deletions.

    Services are in the reverse order in which they are applied.
    """
    services = list(dict.fromkeys(kind.service for kind in reversed(KINDS)))
    chosen = [kind for kind in KINDS if kind.deletion]
    return sorted(chosen, key=lambda kind: (services.index(kind.service), kind.deletion))


def exports(described: Mapping[str, Collection[str]]) -> dict[str, dict[str, bool]]:
    """Return the options of the exports that show the objects which a desired state leaves out.

    :param described: lists by service; a service without a list that is compared is not exported
    """
    found: dict[str, dict[str, bool]] = {}
    for kind in KINDS:
        listed = described.get(kind.service, ())
        if kind.compared and kind.list in listed:
            found.setdefault(kind.service, {})
    for kind in KINDS:
        if kind.export and kind.service in found:
            found[kind.service][kind.export] = kind.list in described[kind.service]
    return found


class Stage(NamedTuple):
    """A kind, or a part of its entries, that the role `desired_state` applies.

    :param folders: whether the entries that are folders are applied, or all others; `None`: all
    """

    kind: Kind
    folders: bool | None = None


def stages() -> Iterator[Stage]:
    """Yield what the role `desired_state` applies, in order."""
    for kind in KINDS:
        if kind.role != ROLE:
            continue
        for other in KINDS:
            if (other.service, other.folders_before) == (kind.service, kind.list):
                yield Stage(other, folders=True)
        yield Stage(kind, folders=False if kind.folders_before else None)
