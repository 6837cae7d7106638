# SPDX-License-Identifier: GPL-3.0-or-later
"""Workflows: available transitions and their screens [tracker-24].

Seed: `workflows: {PROJECT or "*": {initial, transitions: [{id, name, to, from?, screen?, required?,
validator?, resolution?, sets?, then?}]}}`.

- `from`: list of statuses; all if absent
- `screen`: list of fields; if absent, the transition has no screen
- `required`: fields of the screen that require a value
- `validator`: {field: error message}: fields that also require a value, although the metadata does
  not report that
- `resolution`: value that a post function sets; null clears the resolution
- `sets`: {field: value}: further values that a post function sets
- `then`: status to which a post function moves the issue after the transition

In a project without a workflow, every status can change to every other status.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from sandbox.tracker.call import Call, Json, require
from sandbox.tracker.errors import refusal
from sandbox.tracker.fields.fields import Field
from sandbox.tracker.fields.meta import described
from sandbox.tracker.issues import comments
from sandbox.tracker.issues.changes import Changes
from sandbox.tracker.visible import Issue


def _workflow(call: Call, project: str) -> Json:
    for key in (project, "*"):
        found = call.store.get("tracker.workflow", key)
        if found is not None:
            return found
    statuses = sorted(call.store.items("tracker.status"), key=lambda item: int(item[1]["id"]))
    steps = [{"id": one["id"], "name": name, "to": name} for name, one in statuses]
    return {"initial": statuses[0][0], "transitions": steps}


def initial_status(call: Call, project: str) -> str:
    return str(_workflow(call, project)["initial"])


def _offered(call: Call, issue: Issue) -> list[Json]:
    """Return the transitions that are available to the account.

    Without the permission, the list is empty. The server reports no error.
    """
    if not call.may("transition", issue["project"]):
        return []
    return [
        step
        for step in _workflow(call, issue["project"])["transitions"]
        if issue["status"] in step.get("from", [issue["status"]])
        and ("from" in step or step["to"] != issue["status"])
    ]


def _screen(call: Call, step: Json) -> dict[str, Field]:
    known = call.views.catalogue.all
    return {number: known[number] for number in step.get("screen") or []}


def offered(call: Call, issue: Issue, *, fields: bool) -> list[Json]:
    shown = []
    for step in _offered(call, issue):
        entry: Json = {
            "id": str(step["id"]),
            "name": step["name"],
            "to": call.views.status(step["to"]),
            "hasScreen": bool(step.get("screen")),
            "isGlobal": "from" not in step,
            "isInitial": False,
            "isConditional": False,
        }
        if fields:
            needed = step.get("required") or ()
            entry["fields"] = {
                number: described(call, field, issue["project"], required=number in needed)
                for number, field in _screen(call, step).items()
            }
        shown.append(entry)
    return shown


def transitions(call: Call) -> Response:
    """GET /issue/{key}/transitions: the available transitions, or that with `transitionId`."""
    fields = "transitions.fields" in call.query_list("expand")
    found, wanted = offered(call, call.issue(), fields=fields), call.query("transitionId")
    if wanted:
        found = [record for record in found if record["id"] == wanted]
    return JSONResponse({"expand": "transitions", "transitions": found})


def transition(call: Call) -> Response:
    """POST /issue/{key}/transitions: perform a transition."""
    issue, members = call.issue(), call.members()
    given = members.get("transition")
    wanted = given.get("id") if isinstance(given, dict) else given
    require(wanted is not None, refusal(400, "Missing 'transition' identifier"))
    step = _chosen(call, issue, str(wanted))
    if not step.get("screen") and call.settings["transition_fields_ignored"]:
        members = {**members, "fields": {}}
    update = {**(members.get("update") or {})}
    added_comments = update.pop("comment", [])
    changes = Changes(call, issue, _screen(call, step))
    changes.take({**members, "update": update})
    names = call.views.catalogue
    messages = {
        number: f"{names.name(names.all[number])} is required."
        for number in step.get("required") or ()
    }
    changes.require({**messages, **(step.get("validator") or {})})
    if "resolution" in step:
        changes.issue["resolution"] = step["resolution"]
    changes.issue |= step.get("sets", {})
    changes.issue["status"] = step.get("then") or step["to"]
    changed = changes.save()
    _add_comments(call, changed, added_comments, screen=bool(step.get("screen")))
    return Response(status_code=204)


def _chosen(call: Call, issue: Issue, wanted: str) -> Json:
    for step in _offered(call, issue):
        if str(step["id"]) == wanted:
            return step
    steps = _workflow(call, issue["project"])["transitions"]
    name = next((step["name"] for step in steps if str(step["id"]) == wanted), f"Action {wanted}")
    message = (
        f"It seems that you have tried to perform a workflow operation ({name}) that is not valid "
        f"for the current state of this issue ({issue['key']}). The likely cause is that somebody "
        "has changed the issue recently, please look at the issue history for details."
    )
    raise refusal(400, message)


def _add_comments(call: Call, issue: Issue, verbs: list[Any], *, screen: bool) -> None:
    """Add the comments of a transition. Without a screen, a server drops them [tracker-24]."""
    if screen or call.cloud:
        for verb in verbs:
            comments.add(call, issue, verb.get("add"))
