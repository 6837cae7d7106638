# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the table of scopes that a token in the cloud needs into the documentation.

The scopes follow from the requests of a module by the tables of the collection. The contract test
verifies that the requests of its cases need no other scopes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker import (
    client as tracker,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki import exchange as wiki

PAGE = Path(__file__).resolve().parents[2] / "docs" / "connections.md"
_TABLE = re.compile(r"(?<=\| module \| scopes \|\n\|---\|---\|\n)(?:\|.*\n)+")
_ISSUE, _ROLE = "rest/api/3/issue/REL-1", "rest/api/3/project/REL/role/1"
_PAGE, _SPACES, _SPACE = "api/v2/pages/1", "api/v2/spaces", "rest/api/space/REL"
_RESTRICTION, _GROUP = "rest/api/content/1/restriction", "rest/api/group/by-id"
_READ_PAGE = f"GET {_PAGE}, GET {_SPACES}"
_READING = (
    *("jql_search", "tracker_attachment", "tracker_export", "tracker_issue_info"),
    "tracker_project_info",
)
#: Requests of a module, without condition (the empty string) and by the condition.
REQUESTS: Mapping[str, Mapping[str, str]] = {
    **{module: {"": f"GET {_ISSUE}"} for module in _READING},
    "tracker_issue": {"": f"GET {_ISSUE}, PUT {_ISSUE}, GET rest/api/3/user"},
    "tracker_component": {
        "": "GET rest/api/3/project/REL, PUT rest/api/3/component/1",
        "for `lead`": "GET rest/api/3/user",
    },
    "tracker_version": {
        "": "GET rest/api/3/project/REL, PUT rest/api/3/version/1",
        "for `unresolved` with a version": f"PUT {_ISSUE}",
    },
    "tracker_user_info": {"": "GET rest/api/3/user, GET rest/api/3/mypermissions"},
    "tracker_project_role": {
        "": f"GET {_ROLE}, PUT {_ROLE}, GET rest/api/3/user",
        "for `mode: add`": f"POST {_ROLE}",
    },
    "wiki_space": {
        "": f"GET {_SPACES}, GET {_PAGE}, POST {_SPACE}",
        "to delete a space": f"DELETE {_SPACE}",
        "for `permissions`": f"GET rest/api/user/memberof, GET rest/api/user, GET {_GROUP},"
        f" POST {_SPACE}/permission",
    },
    "wiki_restriction": {
        "": f"{_READ_PAGE}, GET {_RESTRICTION}/byOperation, PUT {_RESTRICTION},"
        " GET rest/api/user/memberof",
    },
    "wiki_page_info": {"": _READ_PAGE},
    # the cloud has no user keys
    "wiki_user_info": {},
    "wiki_page": {
        "": f"{_READ_PAGE}, PUT {_PAGE}, GET {_PAGE}/ancestors",
        "for a folder as parent": "GET api/v2/folders/1",
        "to delete a page": f"DELETE {_PAGE}, GET {_PAGE}/descendants",
        "for `labels`": f"GET {_PAGE}/labels, POST rest/api/content/1/label",
        "for `attachments`": f"GET {_PAGE}/attachments, POST rest/api/content/1/child/attachment",
    },
    "wiki_tree": {"": f"PUT {_PAGE}/properties/1, GET {_PAGE}/descendants"},
    "wiki_export": {
        "": f"{_READ_PAGE}, GET {_PAGE}/descendants, GET {_PAGE}/attachments",
        "for `spaces`": f"GET {_GROUP}",
        "for `restrictions`": f"GET {_RESTRICTION}/byOperation",
    },
}
#: A module that also sends the requests of another one, and the condition.
_OTHERS = {
    "wiki_page": ("wiki_restriction", "for `restrictions`"),
    "wiki_tree": ("wiki_page", ""),
}


def scopes_of(module: str) -> list[str]:
    """Return the scopes of all requests of a module, without duplicates."""
    found = [scope for requests in REQUESTS[module].values() for scope in _scopes(module, requests)]
    other = _OTHERS.get(module)
    return list(dict.fromkeys([*found, *(scopes_of(other[0]) if other else ())]))


def scopes_of_request(module: str, method: str, path: str) -> list[str]:
    """Return the scopes of a request of a module."""
    if module.startswith("wiki"):
        return list(wiki.scopes_of(method, path))
    reads = "/search" in path
    return [tracker.scope_of(method, path, reads=reads)]


def _scopes(module: str, requests: str) -> list[str]:
    pairs = [request.split() for request in requests.split(", ")]
    scopes = [scopes_of_request(module, method, f"/{path}") for method, path in pairs]
    return list(dict.fromkeys(scope for some in scopes for scope in some))


def _row(module: str) -> str:
    parts, there = [], set()
    for condition, requests in REQUESTS[module].items():
        scopes = [scope for scope in _scopes(module, requests) if scope not in there]
        there |= set(scopes)
        names = ", ".join(f"`{scope}`" for scope in scopes)
        parts += [f"{condition} {names}".strip()] if scopes else []
    other = _OTHERS.get(module)
    if other:
        parts.append(f"{other[1]} those of `{other[0]}`".strip())
    return f"| `{module}` | {'; '.join(parts)} |\n"


def files() -> dict[Path, str]:
    """Return the path and content of the page."""
    text = PAGE.read_text(encoding="utf-8")
    rows = "".join(map(_row, REQUESTS))
    return {PAGE: _TABLE.sub(lambda _found: rows, text)}
