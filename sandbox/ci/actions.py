# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands behind the CI server's addresses, beside its data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from sandbox.ci import (
    access,
    builds,
    configuration,
    jobs,
    pages,
    queue,
    restart,
    scripts,
    triggers,
    views,
)
from sandbox.ci.call import Action, Call, Handler, form_fields

SCRIPT_STATE = "ci.scriptstate"


def root_actions() -> dict[str, Action]:
    post, get = "POST", "GET"
    return {
        "": Action(_dashboard, get, access.READ),
        "login": Action(_login_page, get, ""),
        "scriptText": Action(_script_text, post, access.ADMINISTER),
        "safeRestart": Action(_safe_restart, post, access.MANAGE),
        "quietDown": Action(_quiet_down, post, access.ADMINISTER, listed=False),
        "cancelQuietDown": Action(_cancel_quiet_down, post, access.ADMINISTER, listed=False),
        "queue/cancelItem": Action(_cancel_item, post, access.READ, listed=False),
    }


def job_actions() -> dict[str, Action]:
    return {
        "": Action(_dashboard, "GET", access.ITEM_READ),
        "build": Action(_trigger(triggers.build), "POST", access.ITEM_BUILD),
        "buildWithParameters": Action(
            _trigger(triggers.build_with_parameters), "POST", access.ITEM_BUILD
        ),
        "config.xml": Action(_config_xml, "GET", access.ITEM_CONFIG),
    }


def build_actions() -> dict[str, Action]:
    read, cancel = access.ITEM_READ, access.ITEM_CANCEL
    return {
        "": Action(_dashboard, "GET", read),
        "stop": Action(_stop, "POST", cancel),
        "term": Action(_term, "POST", cancel),
        "kill": Action(_kill, "POST", cancel),
        "consoleText": Action(_console_text, "GET", read, listed=False),
        "logText/progressiveText": Action(_progressive_text, "GET", read, listed=False),
    }


def form_page() -> Response:
    """Server fact [ci-19]: GET on safeRestart shows a form and does nothing."""
    return pages.page("Restart Jenkins", pages.RETRY_FORM)


def _dashboard(call: Call) -> Response:
    title = "Dashboard" if call.job is None else call.job["full_name"]
    return pages.page(f"{title} [Jenkins]", "<p></p>")


def _login_page(call: Call) -> Response:
    """Server facts [ci-3, ci-17]: readable by anyone, with the version headers, and with the
    address of the SSH server where there is one.
    """
    endpoint = call.world.context.settings("ci")["ssh_endpoint"]
    headers = {} if endpoint is None else {"X-SSH-Endpoint": endpoint}
    form = "<form action='j_spring_security_check'></form>"
    return pages.page("Sign in [Jenkins]", form, headers=headers)


async def _script_text(call: Call) -> Response:
    """POST /scriptText [W4.4, ci-16]: 200 in any case."""
    context = call.world.context
    script = (await form_fields(call.request)).get("script", [""])[-1]
    if script == "":
        return pages.text("")
    state = context.store.get(SCRIPT_STATE, "state") or {}
    settings = context.settings("ci")
    server = scripts.Server(settings["version"], settings["java"])
    text = scripts.play(script, settings["scripts"], state, server)
    context.store.put(SCRIPT_STATE, "state", state)
    return pages.text(text)


async def _safe_restart(call: Call) -> Response:
    """POST /safeRestart [W4.4, ci-19]: 302, which proves nothing.

    With `cancel` it calls the restart off.
    """
    if "cancel" in await form_fields(call.request):
        return _cancel_quiet_down(call)
    if not call.world.context.settings("ci")["restart_supported"]:
        return pages.oops("Restart is not supported as currently configured")
    restart.request_restart(call.world.context)
    return pages.redirect(f"{call.world.base}/")


def _quiet_down(call: Call) -> Response:
    restart.quiet_down(call.world.context)
    return pages.redirect(f"{call.world.base}/")


def _cancel_quiet_down(call: Call) -> Response:
    restart.cancel_quiet_down(call.world.context)
    return pages.redirect(f"{call.world.base}/")


async def _cancel_item(call: Call) -> Response:
    """Server fact [ci-25]: 204; 404 unknown; 422 when it cannot be cancelled any more."""
    number = (await form_fields(call.request)).get("id", [""])[-1]
    item = queue.get(call.world.context, int(number)) if number.isdigit() else None
    if item is None:
        return pages.not_found()
    call.require(access.ITEM_CANCEL)
    cancelled = queue.cancel(call.world.context, item)
    return Response(status_code=204) if cancelled else pages.failed("not cancellable", 422)


def _trigger(
    function: Callable[[views.World, dict[str, Any], triggers.Form, str | None], Response],
) -> Handler:
    async def handler(call: Call) -> Response:
        job = call.found_job
        if jobs.is_container(job):
            return pages.not_found()
        return function(call.world, job, await form_fields(call.request), call.login.user)

    return handler


def _config_xml(call: Call) -> Response:
    with_secrets = call.login.may(access.ITEM_CONFIGURE)
    text = configuration.document(call.found_job, with_secrets)
    return Response(text, 200, None, "application/xml")


def _back(call: Call) -> Response:
    """Server fact [ci-10]: 302 to the Referer or `.`, also when nothing was running."""
    return pages.redirect(call.request.headers.get("referer") or ".")


def _definition(call: Call) -> dict[str, Any]:
    return jobs.get(call.world.context, call.found_build["job"]) or jobs.DEFAULTS


def _end(call: Call, how: str, words: str) -> Response:
    context, build = call.world.context, call.found_build
    if not build["done"]:
        if how in _definition(call)["survives"]:
            builds.note(context, call.build_key, f"{words} (still running)")
        else:
            builds.abort(context, call.build_key, words)
    return _back(call)


def _stop(call: Call) -> Response:
    """POST {build}/stop [W4.4]."""
    return _end(call, "stop", f"Aborted by {call.login.user}")


def _term(call: Call) -> Response:
    """POST {build}/term [W4.4]; server fact [ci-10]: only pipelines have it."""
    return _pipeline_only(call, "term", "Click here to forcibly kill entire build")


def _kill(call: Call) -> Response:
    """POST {build}/kill [W4.4]; server fact [ci-10]: only pipelines have it."""
    return _pipeline_only(call, "kill", "Hard kill!")


def _pipeline_only(call: Call, how: str, words: str) -> Response:
    if _definition(call)["kind"] != jobs.PIPELINE:
        return pages.not_found()
    return _end(call, how, words)


def _console_text(call: Call) -> Response:
    data, _more = builds.console(call.world.context, call.found_build)
    return Response(data, 200, None, "text/plain;charset=utf-8")


def _progressive_text(call: Call) -> Response:
    """Server fact [ci-13]: `X-Text-Size` is the next offset; a start beyond it restarts from 0."""
    data, more = builds.console(call.world.context, call.found_build)
    given = call.request.query_params.get("start") or "0"
    start = int(given) if given.isdigit() and int(given) <= len(data) else 0
    headers = {"X-Text-Size": str(len(data))}
    if more:
        headers["X-More-Data"] = "true"
    return Response(data[start:], 200, headers, "text/plain;charset=utf-8")
