# SPDX-License-Identifier: GPL-3.0-or-later
"""Handlers for the paths of the CI server, except its JSON and XML data."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from sandbox.ci.builds import queue, triggers
from sandbox.ci.builds.build_actions import is_missing, missing
from sandbox.ci.call import Action, Call, Handler, form_fields, submitted
from sandbox.ci.configuration import casc, credentials, list_views, nodes
from sandbox.ci.formats import views
from sandbox.ci.jobs import items, jobs, scans
from sandbox.ci.plugins.plugin_actions import plugin_actions
from sandbox.ci.plugins.versions import older
from sandbox.ci.scripts import scripts
from sandbox.ci.server import access, api_tokens, pages, restart
from sandbox.multipart import Form

SCRIPT_STATE = "ci.scriptstate"
# The public key of the installation.
_IDENTITY = base64.b64encode(b"the public key of the sandbox").decode("ascii")


# Paths that contain a `*`. `find` stores the part that matches it in `call.name`.
_REST, _MIDDLE = ("artifact",), ("pluginManager", "plugin")


def root_actions() -> dict[str, Action]:
    post, get = "POST", "GET"
    return {
        "": Action(_root, get, access.READ),
        "login": Action(_login_page, get, ""),
        "scriptText": Action(_script_text, post, access.ADMINISTER),
        "safeRestart": Action(_safe_restart, post, access.MANAGE),
        "quietDown": Action(_quiet_down, post, access.ADMINISTER, listed=False),
        "cancelQuietDown": Action(_cancel_quiet_down, post, access.ADMINISTER, listed=False),
        "queue/cancelItem": Action(_cancel_item, post, access.READ, listed=False),
        "queue/item/*/cancelQueue": Action(_cancel_queue, post, access.READ, listed=False),
        "createItem": Action(items.create, post, access.ITEM_CREATE, listed=False),
        **plugin_actions(),
    }


def job_actions() -> dict[str, Action]:
    post, configure = "POST", access.ITEM_CONFIGURE
    return {
        "": Action(_dashboard, "GET", access.ITEM_READ),
        "build": Action(_trigger(triggers.build), post, access.ITEM_BUILD),
        "buildWithParameters": Action(
            _trigger(triggers.build_with_parameters), post, access.ITEM_BUILD
        ),
        "config.xml": Action(items.read_config, "GET", access.ITEM_CONFIG),
        "POST config.xml": Action(items.write_config, post, configure, listed=False),
        "configure": Action(_dashboard, "GET", access.ITEM_CONFIG, listed=False),
        "createItem": Action(items.create, post, access.ITEM_CREATE, listed=False),
        "enable": Action(items.switch(False), post, configure, listed=False),
        "disable": Action(items.switch(True), post, configure, listed=False),
        "submitDescription": Action(items.describe, post, configure, listed=False),
        "confirmRename": Action(items.rename, post, configure, listed=False),
        "doRename": Action(items.rename, post, configure, listed=False),
        "doDelete": Action(items.delete, post, access.ITEM_DELETE, listed=False),
        **scans.scan_actions(),
        "DELETE ": Action(items.delete, "DELETE", access.ITEM_DELETE, listed=False),
    }


def find(call: Call, table: dict[str, Action]) -> Action | None:
    """Return the action for the path of a request. An action for its method takes precedence."""
    rest = call.rest
    for kind in (api_tokens, casc, credentials, nodes, list_views) if call.build is None else ():
        action: Action | None = kind.action(call)
        if action is not None:
            return action
    if tuple(rest[:1]) == _REST and call.build is not None:
        call.name = "/".join(rest[1:])
        rest = [*_REST, "*"]
    elif tuple(rest[:2]) == _MIDDLE and len(rest) == 4:
        call.name = rest[2]
        rest = [*_MIDDLE, "*", rest[3]]
    elif rest[:1] == ["input"] and len(rest) == 3 and call.build is not None:
        call.name = rest[1]
        rest = ["input", "*", rest[2]]
    elif rest[:2] == ["queue", "item"] and len(rest) == 4:
        call.name = rest[2]
        rest = ["queue", "item", "*", rest[3]]
    if call.build is not None and is_missing(call):
        return Action(missing, "ANY", access.ITEM_CANCEL)
    address = "/".join(rest)
    return table.get(f"{call.request.method} {address}", table.get(address))


def form_page() -> Response:
    """Return the form page of `safeRestart`. Server fact [ci-19]: GET has no other effect."""
    return pages.page("Restart Jenkins", pages.RETRY_FORM)


def _dashboard(call: Call) -> Response:
    title = "Dashboard" if call.job is None else call.job["full_name"]
    return pages.page(f"{title} [Jenkins]", "<p></p>")


def _root(call: Call) -> Response:
    """Return the start page, whose header `X-Instance-Identity` identifies the server."""
    response = _dashboard(call)
    response.headers["X-Instance-Identity"] = _IDENTITY
    return response


def _login_page(call: Call) -> Response:
    """Return the login page, which needs no login.

    Server facts [ci-3, ci-17]: its headers contain the version and, if the SSH server is enabled,
    its address.
    """
    endpoint = call.site.context.settings("ci")["ssh_endpoint"]
    headers = {} if endpoint is None else {"X-SSH-Endpoint": endpoint}
    form = "<form action='j_spring_security_check'></form>"
    return pages.page("Sign in [Jenkins]", form, headers=headers)


async def _script_text(call: Call) -> Response:
    """Handle POST /scriptText [W4.4, ci-16]. The status is 200 even if the script throws."""
    context = call.site.context
    script = (await form_fields(call.request)).get("script", [""])[-1]
    if script == "":
        return pages.text("")
    state = context.store.get(SCRIPT_STATE, "state") or {}
    settings = context.settings("ci")
    server = scripts.Server(settings["version"], settings["java"])
    rules = [*settings["scripts"], api_tokens.listing(call)]
    text = scripts.play(script, rules, state, server)
    context.store.put(SCRIPT_STATE, "state", state)
    return pages.text(text)


async def _safe_restart(call: Call) -> Response:
    """Handle POST /safeRestart [W4.4, ci-19], with the field `cancel` to cancel the restart."""
    if "cancel" in await form_fields(call.request):
        return _cancel_quiet_down(call)
    if not call.site.context.settings("ci")["restart_supported"]:
        return pages.oops("Restart is not supported as currently configured")
    restart.request_restart(call.site.context)
    return pages.redirect(f"{call.site.base}/")


def _quiet_down(call: Call) -> Response:
    restart.quiet_down(call.site.context)
    return pages.redirect(f"{call.site.base}/")


def _cancel_quiet_down(call: Call) -> Response:
    restart.cancel_quiet_down(call.site.context)
    return pages.redirect(f"{call.site.base}/")


async def _cancel_item(call: Call) -> Response:
    """Cancel a queue item.

    Server facts [ci-25]: the status is 204 for a cancelled item, 404 for an item that is not in the
    queue or not visible to the user, and 422 if the permission is missing. Releases before 2.211
    always redirect back with 302.
    """
    number = (await form_fields(call.request)).get("id", [""])[-1]
    status = _cancelled(call, number)
    if _responds_as_before(call):
        return _back(call)
    if status == 404:
        return pages.failed(f"Provided id ({number}) not found", 404)
    if status == 422:
        return pages.failed(f"Item for id ({number}) is not cancellable", 422)
    return Response(status_code=204)


def _cancel_queue(call: Call) -> Response:
    """Handle POST /queue/item/N/cancelQueue [ci-25]. The status is 204, or 302 in old releases."""
    _cancelled(call, call.name)
    if _responds_as_before(call):
        return _back(call)
    return Response(status_code=204)


def _responds_as_before(call: Call) -> bool:
    return older(call.site.context.settings("ci")["version"], "2.211")


def _back(call: Call) -> Response:
    return pages.redirect(call.request.headers.get("referer") or f"{call.site.base}/")


def _cancelled(call: Call, number: str) -> int:
    """Cancel a queue item and return the status that `_cancel_item` describes."""
    context = call.site.context
    item = queue.get(context, int(number)) if number.isdigit() else None
    if item is None or item["left_ms"] is not None or not call.login.sees(item["job"]):
        return 404
    if not call.login.may(access.ITEM_CANCEL, item["job"]):
        return 422
    queue.cancel(context, item)
    return 204


def _trigger(
    function: Callable[[views.ViewContext, dict[str, Any], Form, str | None], Response],
) -> Handler:
    async def handler(call: Call) -> Response:
        job = call.found_job
        if job["kind"] in jobs.COMPUTED and function is triggers.build:
            return scans.start(call)
        if jobs.is_container(job):
            return pages.not_found()
        return function(call.site, job, await submitted(call.request), call.login.user)

    return handler
