# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated Access service, and the older interface of the repository manager, for unit tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

NO_ACCESS = Reply(404, {"errors": [{"status": 404, "message": "Not Found"}]})
#: Kind to the member of a row of a list by Access, and the address of the older interface.
_KINDS = {
    "groups": ("group_name", "api/security/groups"),
    "users": ("username", "api/security/users"),
    "permissions": ("name", "api/v2/security/permissions"),
}


def absent() -> Reply:
    return Reply(404, {"errors": [{"code": "NOT_FOUND", "message": "not found"}]})


class Directory:
    """Objects by kind and name, in the shape of the interface that serves them.

    :param old: only the older interface is there
    """

    def __init__(self, server: Server, *, old: bool = False) -> None:
        self.old, self.server = old, server
        self.rows: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in _KINDS}
        self.writes: list[tuple[str, str, Any]] = []
        self.apply: Callable[[str, str, Any], Reply | None] = lambda _m, _p, _b: None
        self.me = "admin"
        server.stub.response = self.response

    def response(self, seen: Seen) -> Reply:
        path = unquote(seen.path).removeprefix("/base/")
        if path == "api/repositories":
            rows = [{"key": key, "type": "LOCAL"} for key in ("a-local", "b-local")]
            return Reply(body=json.dumps(rows))
        if path.startswith("access/"):
            return NO_ACCESS if self.old else self._new(seen, path.removeprefix("access/api/"))
        for kind, (_key, old) in _KINDS.items():
            if path == old or path.startswith(f"{old}/"):
                return self._serve(seen, kind, path.removeprefix(old).strip("/"), "name")
        return Reply(404, {"errors": [{"status": 404, "message": "Not Found"}]})

    def _new(self, seen: Seen, path: str) -> Reply:
        if path == "v1/tokens/me":
            return Reply(body={"token_id": "x", "subject": f"jfac@1/users/{self.me}"})
        _v2, kind, *rest = path.split("/", 2)
        return self._serve(seen, kind, "/".join(rest), _KINDS[kind][0])

    def _serve(self, seen: Seen, kind: str, name: str, key: str) -> Reply:
        rows = self.rows[kind]
        if seen.method != "GET":
            body = json.loads(seen.body) if seen.body else None
            self.writes.append((seen.method, f"{kind}/{name}".rstrip("/"), body))
            found = self.apply(seen.method, f"{kind}/{name}".rstrip("/"), body)
            return self._write(seen.method, kind, name, body) if found is None else found
        if not name:
            listed = [{key: row} for row in rows]
            return Reply(body=json.dumps(listed) if self.old else {kind: listed})
        found_row = rows.get(name)
        return absent() if found_row is None else Reply(body=found_row)

    def _write(self, method: str, kind: str, name: str, body: Any) -> Reply:
        rows, (first, _slash, part) = self.rows[kind], name.partition("/")
        if method == "DELETE" and not part:
            return Reply(204) if rows.pop(first, None) is not None else absent()
        if part in ("members", "groups"):
            held = set(rows[first].get(part, [])) - set(body.get("remove", []))
            rows[first][part] = sorted(held | set(body.get("add", [])))
        elif method == "POST" and not first:
            rows[str(body.get("name") or body["username"])] = body
        elif part:
            resources = rows[first]["resources"]
            resources.pop(part, None) if method == "DELETE" else resources.update({part: body})
        elif method == "PUT" or first not in rows:
            rows[first] = {"name": first, **body}
        else:
            rows[first].update(body)
        return Reply(200)

    @property
    def reads(self) -> list[str]:
        return [name for name in self.server.asked if name.startswith("GET")]
