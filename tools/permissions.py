# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page that lists the permissions of each module, and of three accounts.

The permissions come from the descriptors, which the permission tests verify: `tests/faults`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools import tree
from tools.descriptors import DESCRIPTORS
from tools.reference import SERVICES, between_marks
from tools.tree import ROOT

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import kinds

PAGE = ROOT / "docs" / "permissions.md"
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
    return {PAGE: between_marks(PAGE, _lines())}


def _lines() -> Iterator[str]:
    for service, title in SERVICES.items():
        yield from ("", f"## {title[0].upper()}{title[1:]}", "")
        yield "| permission | drift | release | enforce |"
        yield "|---|---|---|---|"
        drift, release, enforce = (needs(account, service) for account in ACCOUNTS)
        for permission in sorted(
            {*drift, *release, *enforce}, key=lambda name: (not is_reading(name), name)
        ):
            cells = ["yes" if permission in found else "" for found in (drift, release, enforce)]
            if permission in drift and not is_reading(permission):
                modules = ", ".join(f"`{name}`" for name in sorted(drift[permission]))
                cells[0] = f"only for {modules}"
            yield f"| {word(service, permission)} | {' | '.join(cells)} |"
        yield from ("", "| module | operation | to read, and in check mode | and to write |")
        yield "|---|---|---|---|"
        for module, descriptor in DESCRIPTORS.items():
            if descriptor.service_name == service:
                groups: dict[tuple[str, str], list[str]] = {}
                for name, access in descriptor.operations.items():
                    needed = ", ".join(word(service, one) for one in access.needs)
                    more = ", ".join(word(service, one) for one in access.unforeseen)
                    groups.setdefault((needed, more), []).append(name)
                for both, names in groups.items():
                    yield f"| `{module}` | {', '.join(names)} | {' | '.join(both)} |"


def needs(account: str, service: str) -> dict[str, set[str]]:
    """Return the permissions of one of `ACCOUNTS` on a service, with the modules that need them."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in _modules(account):
        descriptor = DESCRIPTORS[module]
        for name, access in descriptor.operations.items():
            left_out = account == "release" and name in _NOT_IN_RELEASES
            more = () if account == "drift" else access.unforeseen
            if descriptor.service_name == service and not left_out:
                for permission in (*access.needs, *more):
                    found[permission].add(module)
    return dict(found)


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
