# SPDX-License-Identifier: GPL-3.0-or-later
"""Transitions: available transitions and their screens [tracker-24].

Seed: `workflows: {PROJECT or "*": {initial, transitions: [{id, name, to, from?, screen?, required?,
validator?, resolution?, then?}]}}`.

- `from`: list of statuses (absent: all)
- `screen`: list of fields (absent: no screen)
- `required`: fields of the screen that need a value
- `validator`: {field: error message}: fields that also need a value, but are not listed as required
- `resolution`: a post function sets it (null clears it)
- `then`: a post function moves the issue on to this status

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
    """Return the transitions that the account may execute now.

    Without the permission, the list is empty; the server reports no error.
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
        one: Json = {
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
            one["fields"] = {
                number: described(call, field, issue["project"], required=number in needed)
                for number, field in _screen(call, step).items()
            }
        shown.append(one)
    return shown


def transitions(call: Call) -> Response:
    """GET /issue/{key}/transitions; the list is empty if `transitionId` is not available."""
    fields = "transitions.fields" in call.query_list("expand")
    found, wanted = offered(call, call.issue(), fields=fields), call.query("transitionId")
    if wanted:
        found = [record for record in found if record["id"] == wanted]
    return JSONResponse({"expand": "transitions", "transitions": found})


def transition(call: Call) -> Response:
    """POST /issue/{key}/transitions: 204."""
    issue, members = call.issue(), call.members()
    given = members.get("transition")
    wanted = given.get("id") if isinstance(given, dict) else given
    require(wanted is not None, refusal(400, "Missing 'transition' identifier"))
    step = _chosen(call, issue, str(wanted))
    if not step.get("screen") and call.settings["transition_fields_ignored"]:
        members = {**members, "fields": {}}
    update = {**(members.get("update") or {})}
    spoken = update.pop("comment", [])
    changes = Changes(call, issue, _screen(call, step))
    changes.take({**members, "update": update})
    names = call.views.catalogue
    words = {
        number: f"{names.name(names.all[number])} is required."
        for number in step.get("required") or ()
    }
    changes.require({**words, **(step.get("validator") or {})})
    if "resolution" in step:
        changes.issue["resolution"] = step["resolution"]
    changes.issue["status"] = step.get("then") or step["to"]
    changed = changes.save()
    _speak(call, changed, spoken, screen=bool(step.get("screen")))
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


def _speak(call: Call, issue: Issue, verbs: list[Any], *, screen: bool) -> None:
    """Add the comments of a transition. A server silently drops them without a screen
    [tracker-24].
    """
    if screen or call.cloud:
        for verb in verbs:
            comments.add(call, issue, verb.get("add"))
