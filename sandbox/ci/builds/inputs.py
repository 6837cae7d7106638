# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers for the input that a pipeline build waits for [ci-28]."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import Response

from sandbox.ci.builds import builds
from sandbox.ci.call import Action, Call, form_fields
from sandbox.ci.jobs import jobs
from sandbox.ci.server import access, pages
from sandbox.service import ErrorResponse


def input_actions() -> dict[str, Action]:
    return {
        "input/*/proceedEmpty": Action(_proceed_empty, "POST", access.ITEM_READ, listed=False),
        "input/*/proceed": Action(_proceed, "POST", access.ITEM_READ, listed=False),
        "input/*/submit": Action(_submit, "POST", access.ITEM_READ, listed=False),
        "input/*/abort": Action(_abort, "POST", access.ITEM_READ, listed=False),
    }


def _pending_input(call: Call, *, to_abort: bool = False) -> dict[str, Any]:
    """Return the pending input that the request names. Raise an error page if there is none, or if
    the user may not respond to it.
    """
    build = call.found_build
    pending: dict[str, Any] | None = build.get("input")
    if pending is None or call.name != pending["id"]:
        raise ErrorResponse(pages.not_found())
    if build["done"]:
        raise ErrorResponse(pages.failed("This input has been already given"))
    if not _may_respond(call, pending, to_abort=to_abort):
        # server fact [ci-28]: an error page with 400, not 403
        named = pending.get("submitter")
        who = f"be {named}" if named else "have Job/Build permissions"
        what = "cancel" if to_abort else "submit"
        raise ErrorResponse(pages.failed(f"You need to {who} to {what} this."))
    return pending


def _may_respond(call: Call, pending: dict[str, Any], *, to_abort: bool) -> bool:
    """Return whether the user may respond. Server fact [ci-28]: administrators always may."""
    job = call.found_build["job"]
    if to_abort and call.login.may(access.ITEM_CANCEL, job):
        return True
    if not pending.get("submitter"):
        return call.login.may(access.ITEM_BUILD, job)
    users = {user.strip().lower() for user in pending["submitter"].split(",")}
    is_named = call.login.user is not None and call.login.user.lower() in users
    return is_named or call.login.may(access.ADMINISTER)


def _proceed_empty(call: Call) -> Response:
    _pending_input(call)
    _continue(call)
    return Response(status_code=200)


async def _proceed(call: Call) -> Response:
    pending = _pending_input(call)
    sent = (await form_fields(call.request)).get("json", ["{}"])[-1]
    names = {entry["name"] for entry in json.loads(sent).get("parameter", [])}
    unknown = names - {entry["name"] for entry in pending.get("parameters") or []}
    if unknown:
        return pages.oops(f"No such parameter definition: {', '.join(sorted(unknown))}")
    _continue(call)
    return Response(status_code=200)


async def _submit(call: Call) -> Response:
    if "proceed" not in await form_fields(call.request):
        return _abort(call)
    response = await _proceed(call)
    return (
        response if response.status_code != 200 else pages.redirect(call.absolute("../../console"))
    )


def _abort(call: Call) -> Response:
    _pending_input(call, to_abort=True)
    builds.abort(call.site.context, call.build_key, f"Rejected by {call.login.user}")
    return Response(status_code=200)


def _continue(call: Call) -> None:
    """Continue the build, which then ends after its configured duration."""
    context, build = call.site.context, call.found_build
    job = jobs.get(context, build["job"]) or jobs.DEFAULTS
    end = context.now_ms() + int(job["build_seconds"] * 1000)
    note = f"Approved by {call.login.user}"
    changed = {"input": None, "end_ms": end, "notes": [*build["notes"], note]}
    context.store.put(builds.BUILDS, call.build_key, {**build, **changed})
