# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page that lists the permissions of each module, and of three accounts.

The permissions come from the descriptors, which the permission tests verify: `tests/faults`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools import tree
from tools.descriptors import DESCRIPTORS
from tools.reference import SERVICES
from tools.tree import ROOT

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (  # noqa: E402 (made importable above)
    kinds,
)

PAGE = ROOT / "docs" / "permissions.md"
_MARKS = ("<!-- written by python -m tools.generated -->", "<!-- end -->")
#: The names of permissions in the products, by service. Those of the CI server follow from their
#: ids, those of the code analysis server are spelled as in the options of `analysis_role`.
WORDS = {
    "repo": {
        "read": "Read",
        "deploy": "Deploy/Cache",
        "annotate": "Annotate",
        "delete": "Delete/Overwrite",
        "admin": "administrator",
    },
    "tracker": {
        "browse": "Browse Projects",
        "create": "Create Issues",
        "edit": "Edit Issues",
        "assign": "Assign Issues",
        "transition": "Transition Issues",
        "comment": "Add Comments",
        "watch": "Manage Watchers",
        "attach": "Create Attachments",
        "link": "Link Issues",
        "administer": "Administer Projects",
    },
    "wiki": {
        "view": "All: View",
        "add": "Pages: Add",
        "delete": "Pages: Delete",
        "attach": "Attachments: Add",
        "administer": "Space: Admin",
        "create_space": "global: Create Space",
    },
}
_SCOPES = {
    "Hudson": "Overall",
    "Item": "Job",
    "Run": "Run",
    "Computer": "Agent",
    "View": "View",
    "CredentialsProvider": "Credentials",
}
#: Permissions with which an account changes nothing.
_READING = re.compile(r"^(read|browse|view)$|Read$|Provider\.View$")
#: The account `enforce` runs these roles; `drift` runs them in check mode.
_ROLES_OF_DRIFT = ("analysis_config", "ci_baseline", "desired_state", "repo_housekeeping")
_ROLES_OF_RELEASE = (
    *("ci_build", "release_notes", "release_promote", "release_publish"),
    *("release_version", "wiki_docs"),
)
#: Operations that no release needs.
_NOT_IN_RELEASES = ("delete", "remove")
ACCOUNTS = ("drift", "release", "enforce")


def files() -> dict[Path, str | None]:
    """Return path and content of the page."""
    head, _mark, rest = PAGE.read_text(encoding="utf-8").partition(_MARKS[0])
    tail = rest.partition(_MARKS[1])[2]
    text = "\n".join((_MARKS[0], *_lines(), _MARKS[1]))
    return {PAGE: f"{head}{text}{tail}"}


def _lines() -> Iterator[str]:
    for service, title in SERVICES.items():
        yield from ("", f"## {title[0].upper()}{title[1:]}", "", *_accounts_of(service))
        yield from ("", *_modules_of(service))


def _accounts_of(service: str) -> Iterator[str]:
    drift, release, enforce = (needs(account, service) for account in ACCOUNTS)
    yield from ("| permission | drift | release | enforce |", "|---|---|---|---|")
    for permission in _sorted({*drift, *release, *enforce}):
        cells = [_of_drift(permission, drift)]
        cells += ["yes" if permission in found else "" for found in (release, enforce)]
        yield f"| {word(service, permission)} | {' | '.join(cells)} |"


def _of_drift(permission: str, drift: dict[str, set[str]]) -> str:
    modules = drift.get(permission, set())
    if not modules or is_reading(permission):
        return "yes" if modules else ""
    return f"only for {', '.join(f'`{name}`' for name in sorted(modules))}"


def _modules_of(service: str) -> Iterator[str]:
    yield from (
        "| module | operation | to read, and in check mode | and to write |",
        "|---|---|---|---|",
    )
    for module, descriptor in DESCRIPTORS.items():
        if descriptor.service_name != service:
            continue
        groups: dict[tuple[str, str], list[str]] = {}
        for name, access in descriptor.operations.items():
            cells = (_words(service, access.needs), _words(service, access.unforeseen))
            groups.setdefault(cells, []).append(name)
        for (needed, more), names in groups.items():
            yield f"| `{module}` | {', '.join(names)} | {needed} | {more} |"


def needs(account: str, service: str) -> dict[str, set[str]]:
    """Return the permissions of one of `ACCOUNTS` on a service, with the modules that need them."""
    found: dict[str, set[str]] = {}
    for module in _modules(account):
        descriptor = DESCRIPTORS[module]
        for name, access in descriptor.operations.items():
            if descriptor.service_name != service:
                continue
            if account == "release" and name in _NOT_IN_RELEASES:
                continue
            more = () if account == "drift" else access.unforeseen
            for permission in (*access.needs, *more):
                found.setdefault(permission, set()).add(module)
    return found


def _modules(account: str) -> list[str]:
    """Return the modules that the playbooks of an account run."""
    roles = _ROLES_OF_RELEASE if account == "release" else _ROLES_OF_DRIFT
    paths = [path for role in roles for path in (ROOT / "roles" / role / "tasks").rglob("*.yml")]
    paths += [ROOT / "playbooks/release.yml"] if account == "release" else []
    texts = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    used = set(re.findall(r"^ +(?:- )?delivery\.toolchain\.(\w+):", texts, re.MULTILINE))
    if kinds.ROLE in roles:
        used |= {kind.module for kind in kinds.KINDS if kind.role == kinds.ROLE}
    return [module for module in DESCRIPTORS if module in used]


def is_reading(permission: str) -> bool:
    """Return whether an account that has only this permission changes nothing."""
    return _READING.search(permission) is not None


def word(service: str, permission: str) -> str:
    """Return the name of a permission in the product."""
    if service == "ci":
        scope, _dot, name = permission.rpartition(".")
        return f"{_SCOPES[scope.rpartition('.')[2]]}/{name}"
    if service == "analysis":
        return f"`{permission}`"
    # a permission that a new module makes up is found by the check of the module
    return WORDS[service].get(permission, permission)


def _words(service: str, permissions: Iterable[str]) -> str:
    return ", ".join(word(service, permission) for permission in permissions)


def _sorted(permissions: Iterable[str]) -> list[str]:
    return sorted(permissions, key=lambda name: (not is_reading(name), name))
