# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchers of issues [tracker-31]."""

from __future__ import annotations

import json

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.references import account_name

_UNRIGHTFUL = "You do not have permission to manage watchers for this issue."


def watchers(call: Call) -> Response:
    issue = call.issue()
    found = issue.get("watchers") or []
    address = f"{call.views.base}/rest/api/2/issue/{issue['key']}/watchers"
    shown = {"self": address, "isWatching": call.user in found, "watchCount": len(found)}
    return JSONResponse({**shown, "watchers": [call.views.user(name) for name in found]})


def add(call: Call) -> Response:
    """POST: add a watcher. The body is the name as a JSON string; by default the account itself."""
    return _stored(call, json.loads(call.body) if call.body else call.user, there=True)


def remove(call: Call) -> Response:
    return _stored(call, call.query("accountId" if call.cloud else "username"), there=False)


def _stored(call: Call, given: object, *, there: bool) -> Response:
    issue, wanted = call.issue(), str(given)
    name = (account_name(wanted) or wanted) if call.cloud else wanted
    message = f"The user '{wanted}' does not exist."
    require(call.store.get("tracker.user", name) is not None, refusal(404, message))
    allowed = name == call.user or call.may("watch", issue["project"])
    require(allowed, refusal(403 if call.cloud else 401, _UNRIGHTFUL))
    others = [watcher for watcher in issue.get("watchers") or [] if watcher != name]
    known = [*others, name] if there else others
    call.store.put("tracker.issue", issue["key"], {**issue, "watchers": known})
    return Response(status_code=204)
