# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to the plugin manager and the update centre [ci-22, ci-23]."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lxml import etree
from starlette.responses import JSONResponse, Response

from sandbox.ci.call import Action, Call, form_fields
from sandbox.ci.plugins import plugin_manager, update_center
from sandbox.ci.server import access, pages
from sandbox.context import Context


def plugin_actions() -> dict[str, Action]:
    """Return the actions. They require an administrator and are not in [W4.4]."""

    def post(handler: Callable[[Call], Response]) -> Action:
        return Action(handler, "POST", access.ADMINISTER, listed=False)

    manager, plugin = "pluginManager", "pluginManager/plugin/*"
    page = Action(_page, "GET", access.SYSTEM_READ, listed=False)
    return {
        f"{manager}": page,
        f"{manager}/installed": page,
        f"{manager}/updates": page,
        f"{manager}/installNecessaryPlugins": Action(
            _install_necessary, "POST", access.ADMINISTER, listed=False
        ),
        f"{manager}/prevalidateConfig": Action(
            _prevalidate, "POST", access.ADMINISTER, listed=False
        ),
        f"{manager}/installPlugins": Action(_install_json, "POST", access.ADMINISTER, listed=False),
        f"{manager}/install": Action(_install_form, "POST", access.ADMINISTER, listed=False),
        f"{manager}/checkUpdatesServer": post(_check_updates),
        f"{plugin}/doUninstall": post(_uninstall),
        f"{plugin}/makeEnabled": post(_switch(True)),
        f"{plugin}/makeDisabled": post(_switch(False)),
        "updateCenter/installStatus": Action(_status, "GET", access.SYSTEM_READ, listed=False),
    }


def _page(_call: Call) -> Response:
    return pages.page("Plugins - Jenkins", "<p></p>")


def _to_updates(call: Call) -> Response:
    return pages.redirect(f"{call.site.base}/pluginManager/updates/")


async def _wanted(call: Call) -> dict[str, str] | None:
    """Return the plugins in the attributes `plugin="name@version"` of an XML body.

    Returns `None` if the body is not XML, or if an attribute has no version.
    """
    try:
        root = etree.fromstring(await call.request.body())
    except etree.XMLSyntaxError:
        return None
    found = [str(node.get("plugin")) for node in root.iter() if node.get("plugin") is not None]
    if any("@" not in text for text in found):
        return None
    return dict(text.split("@", 1) for text in found)


async def _install_necessary(call: Call) -> Response:
    """Install missing plugins. The response is always 302, because the server only logs errors."""
    wanted = await _wanted(call)
    if wanted is None:
        return pages.oops("java.lang.IllegalArgumentException: malformed plugin attribute")
    context = call.site.context
    with context.store.transaction():
        update_center.install_necessary(context, wanted)
        update_center.batch_done(context)
    return _to_updates(call)


async def _prevalidate(call: Call) -> Response:
    """Return the plugins that `_install_necessary` would install."""
    wanted = await _wanted(call)
    if wanted is None:
        return pages.oops("java.lang.IllegalArgumentException: malformed plugin attribute")
    return JSONResponse(update_center.needed(call.site.context, wanted))


async def _install_json(call: Call) -> Response:
    """Install plugins. Plugins before an unknown name are queued although the request fails."""
    try:
        data = json.loads(await call.request.body())
        names = [str(name) for name in data["plugins"]]
    except (ValueError, KeyError, TypeError):
        return pages.failed("The plugins are missing")
    context = call.site.context
    correlation = update_center.new_correlation()
    for name in names:
        try:
            update_center.install(context, _requested(context, name), correlation)
        except _NoSuchPlugin as error:
            return JSONResponse({"status": "error", "message": str(error)})
    update_center.batch_done(context)
    return JSONResponse({"status": "ok", "data": {"correlationId": correlation}})


class _NoSuchPlugin(Exception):
    """A request names a plugin that no update site has, or an unknown site."""


def _requested(context: Context, name: str) -> dict[str, Any]:
    """Return the plugin that a request names: `NAME` of the site default, or `NAME.SITE`.

    Server fact [ci-22]: the server tries each dot, and fails if what follows is no site.
    """
    found = [] if "." in name else [update_center.site(context).get(name)]
    for dot in (number for number, letter in enumerate(name) if letter == "."):
        plugin, site = name[:dot], name[dot + 1 :]
        if site and not update_center.has_site(context, site):
            raise _NoSuchPlugin(f"No such update center: {site}")
        found.append(update_center.site(context, site).get(plugin))
    for record in found:
        if record is not None:
            return record
    raise _NoSuchPlugin(f"No such plugin: {name}")


async def _install_form(call: Call) -> Response:
    """Install the plugins of the HTML form: `plugin.NAME.default=on`."""
    context = call.site.context
    for field in await form_fields(call.request):
        if field.startswith("plugin."):
            name = field.removeprefix("plugin.").removesuffix(".default")
            try:
                update_center.install(context, _requested(context, name), None)
            except _NoSuchPlugin as error:
                return pages.failed(str(error))
    return _to_updates(call)


def _check_updates(call: Call) -> Response:
    update_center.fetch(call.site.context)
    return Response(status_code=200)


def _uninstall(call: Call) -> Response:
    if not plugin_manager.uninstall(call.site.context, call.name):
        return pages.not_found()
    return pages.redirect(f"{call.site.base}/pluginManager/installed")


def _switch(enabled: bool) -> Callable[[Call], Response]:
    def handler(call: Call) -> Response:
        found = plugin_manager.switch(call.site.context, call.name, enabled)
        return Response(status_code=200) if found else pages.not_found()

    return handler


def _status(call: Call) -> Response:
    correlation = call.request.query_params.get("correlationId")
    return JSONResponse(update_center.status(call.site.context, correlation))
