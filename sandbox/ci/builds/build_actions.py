# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers for the paths of a build: stop it, return its log, its artifacts and its inputs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from sandbox.ci.builds import artifacts, builds, inputs
from sandbox.ci.call import Action, Call
from sandbox.ci.jobs import items, jobs
from sandbox.ci.server import access, pages


def build_actions() -> dict[str, Action]:
    read, cancel = access.ITEM_READ, access.ITEM_CANCEL
    return {
        "": Action(_page, "GET", read),
        "stop": Action(_stop, "POST", cancel),
        "term": Action(_term, "POST", cancel),
        "kill": Action(_kill, "POST", cancel),
        "consoleText": Action(_console_text, "GET", read, listed=False),
        "logText/progressiveText": Action(_progressive_text, "GET", read, listed=False),
        "artifact/*": Action(artifacts.get, "GET", read, listed=False),
        "buildNumber": Action(_number, "GET", read, listed=False),
        "doDelete": Action(items.delete_build, "POST", access.RUN_DELETE, listed=False),
        "toggleLogKeep": Action(items.toggle_keep, "POST", access.RUN_UPDATE, listed=False),
        **inputs.input_actions(),
    }


def _page(call: Call) -> Response:
    return pages.page(f"{call.found_build['job']} #{call.found_build['number']}", "<p></p>")


def _number(call: Call) -> Response:
    return pages.text(str(call.found_build["number"]))


def is_missing(call: Call) -> bool:
    """Return whether the path exists only for pipeline builds, and this build is none."""
    return call.rest in (["term"], ["kill"]) and _definition(call)["kind"] != jobs.PIPELINE


def missing(call: Call) -> Response:
    """Redirect a POST to the same path with a trailing slash, which returns 404 [ci-10]."""
    here = call.request.scope["path"]
    if call.request.method != "POST" or here.endswith("/"):
        return pages.not_found()
    return pages.redirect(call.absolute(f"{here}/"))


def _definition(call: Call) -> dict[str, Any]:
    return jobs.get(call.site.context, call.found_build["job"]) or jobs.DEFAULTS


def _end(call: Call, how: str, words: str) -> Response:
    """End the build. Server fact [ci-10]: the response is a redirect to the `Referer` or to `.`,
    even if the build is not running.
    """
    context, build = call.site.context, call.found_build
    if not build["done"]:
        if how in _definition(call)["survives"]:
            builds.note(context, call.build_key, f"{words} (still running)")
        else:
            builds.abort(context, call.build_key, words)
    return pages.redirect(call.request.headers.get("referer") or call.absolute("."))


def _stop(call: Call) -> Response:
    """Handle POST {build}/stop [W4.4]."""
    return _end(call, "stop", f"Aborted by {call.login.user}")


def _term(call: Call) -> Response:
    """Handle POST {build}/term [W4.4]."""
    return _end(call, "term", "Click here to forcibly kill entire build")


def _kill(call: Call) -> Response:
    """Handle POST {build}/kill [W4.4]."""
    return _end(call, "kill", "Hard kill!")


def _console_text(call: Call) -> Response:
    """Return the complete log without notes. Server fact [ci-13]: the response has no length."""
    data = builds.console(call.site.context, call.found_build)[0].replace(builds.NOTE, b"")

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(data), 65536):
            yield data[start : start + 65536]

    return StreamingResponse(pieces(), media_type="text/plain;charset=utf-8")


def _progressive_text(call: Call) -> Response:
    data, more = builds.console(call.site.context, call.found_build)
    return builds.progressive_text(data, more, call.request.query_params.get("start"))
