# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse properties, and handle requests that change them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from sandbox.context import context
from sandbox.repo.items import storage
from sandbox.repo.items.tree import Tree
from sandbox.repo.permissions import ANNOTATE
from sandbox.repo.responses import SERVICE, error, flag
from sandbox.service import json_body

if TYPE_CHECKING:
    from starlette.requests import Request

    from sandbox.repo.items.tree import Node

# server fact [repo-18]: characters that are forbidden in a property name
_FORBIDDEN = re.compile(r"[)(}{\]\[*+^$\\/~`!@#%&<>;=,±§ ]")


def parse(text: str, separators: str) -> dict[str, list[str]]:
    """Parse properties such as `k=v1,v2|k2=v` as the server does [repo-18].

    A backslash escapes the next `|`, `;`, `=` or `,`. An entry with several unescaped equals signs
    is dropped. `k` and `k=` have a single empty value.

    :param separators: characters that separate the entries
    """
    found: dict[str, list[str]] = {}
    for entry in _split(text, separators):
        parts = _split(entry.strip(), "=")
        if len(parts) > 2 or not parts[0]:
            continue
        values = _split(parts[1], ",") if len(parts) == 2 else [""]
        found[_unescape(parts[0])] = list(dict.fromkeys(_unescape(value) for value in values))
    return found


def _split(text: str, separators: str) -> list[str]:
    return re.split(rf"(?<!\\)[{re.escape(separators)}]", text)


def _unescape(text: str) -> str:
    return re.sub(r"\\([,=|;])", r"\1", text)


def check_names(properties: dict[str, Any]) -> None:
    """Raise a 400 if a property name contains a forbidden character [repo-18]."""
    for name in properties:
        if _FORBIDDEN.search(name):
            raise error(400, f"Invalid property key '{name}'")


def _targets(request: Request, default: int) -> list[Node]:
    """Return the requested item, and its content if the parameter `recursive` is set.

    :param default: value of `recursive` if it is missing
    """
    current = context(request)
    node = storage.local_item(request, ANNOTATE)
    if node["folder"] and flag(request, "recursive", default):
        return [node, *Tree(current).below(node["repo"], node["path"])]
    return [node]


def _change(request: Request, nodes: list[Node], changes: dict[str, list[str]]) -> None:
    current = context(request)
    with current.store.transaction():
        for node in nodes:
            Tree(current).set_properties(node, changes)


def put(request: Request) -> Response:
    """Handle PUT ?properties= [W4.1]: set properties of an item.

    Server fact [repo-18]: on real servers, a change of a folder is recursive unless `recursive=0`,
    and `;` is a separator like `|`.
    """
    real = context(request).real(SERVICE)
    text = request.query_params.get("properties")
    if text is None or b"|" in request.scope["query_string"]:
        raise error(400, "Bad Request")
    changes = parse(text, "|;" if real else "|")
    check_names(changes)
    _change(request, _targets(request, int(real)), changes)
    return Response(status_code=204)


def delete(request: Request) -> Response:
    """Handle DELETE ?properties=a,b: remove properties; only real servers have this request."""
    names = [name for name in request.query_params.get("properties", "").split(",") if name]
    if not names:
        raise error(400, "Bad Request")
    _change(request, _targets(request, 1), {name: [] for name in names})
    return Response(status_code=204)


async def patch(request: Request) -> Response:
    """Handle PATCH /api/metadata/{repo}/{path} [repo-18]: set properties; null removes one."""
    data = json_body(await request.body())
    props = data.get("props") if isinstance(data, dict) else None
    if not isinstance(props, dict):
        raise error(400, "Bad Request")
    check_names(props)
    recursive = flag(request, "recursiveProperties", 1)
    nodes = _targets(request, 1) if recursive else [storage.local_item(request, ANNOTATE)]
    changes: dict[str, list[str]] = {
        name: []
        if value is None
        else [str(item) for item in value]
        if isinstance(value, list)
        else [str(value)]
        for name, value in props.items()
    }
    _change(request, nodes, changes)
    return Response(status_code=204)
