# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin for configuration as code [ci-43]."""

from __future__ import annotations

import json
from typing import Any

import yaml
from starlette.responses import Response

from sandbox.ci.call import Action, Call
from sandbox.ci.jobs import ciphers
from sandbox.ci.server import access, pages
from sandbox.context import Context

CONFIGURATION = "ci.configuration"
_TOP = ("jenkins", "unclassified", "security", "tool", "credentials", "appearance")
_SECRETS = ("password", "secret", "privateKey", "token")


def put(context: Context, live: dict[str, Any]) -> None:
    """Store the configuration of a seed."""
    context.store.put(CONFIGURATION, "live", live)


def action(call: Call) -> Action | None:
    """Return the action for a path of the plugin, or `None`."""
    kind = call.site.context.settings("ci")["casc"]
    if call.rest[:1] != ["configuration-as-code"] or kind is None or call.job is not None:
        return None
    actions = {
        "export": Action(_export, "POST", access.SYSTEM_READ, listed=False),
        "check": Action(_check, "POST", access.ADMINISTER, listed=False),
        kind: Action(_configure, "POST", access.ADMINISTER, listed=False),
    }
    return actions.get("/".join(call.rest[1:]))


def _live(call: Call) -> dict[str, Any]:
    return call.site.context.store.get(CONFIGURATION, "live") or {}


def _export(call: Call) -> Response:
    text = yaml.safe_dump(_encrypted("", _live(call)), sort_keys=False)
    return Response(text, 200, None, "application/x-yaml")


def _encrypted(name: str, value: Any) -> Any:
    """Return the exported configuration with encrypted secrets. Server fact [ci-43]: a secret has
    the same encrypted string in each export.
    """
    if isinstance(value, dict):
        return {key: _encrypted(key, each) for key, each in value.items()}
    if isinstance(value, list):
        return [_encrypted(name, each) for each in value]
    if name in _SECRETS and value:
        return ciphers.encrypt(str(value), b"0" * 16)
    return value


async def _sent(call: Call) -> tuple[dict[str, Any], Response | None]:
    """Return the configuration in a request, and the error response if it is invalid."""
    sent = yaml.safe_load(await call.request.body())
    unknown = sorted(set(sent if isinstance(sent, dict) else {"?"}) - set(_TOP))
    if unknown:
        message = f"No configurator for the following root elements {', '.join(unknown)}"
        return {}, _response([{"line": -1, "message": message}], 400)
    return sent, None


def _response(messages: list[dict[str, Any]], status: int) -> Response:
    return Response(json.dumps(messages), status, None, "application/json")


async def _check(call: Call) -> Response:
    sent, refusal = await _sent(call)
    if refusal is not None:
        return refusal
    found = [
        {"line": 1, "message": f"'{name}' is deprecated"}
        for content in sent.values()
        for name in content
        if name == "slaveAgentPort"
    ]
    return _response(found, 200)


async def _configure(call: Call) -> Response:
    sent, refusal = await _sent(call)
    if refusal is not None:
        return refusal if call.rest[-1] == "configure" else pages.oops("ConfiguratorException")
    live = _live(call)
    for top, content in sent.items():
        known = dict(live.get(top) or {})
        for name, value in content.items():
            merged = isinstance(value, dict) and isinstance(known.get(name), dict)
            known[name] = {**known[name], **_decrypted(value)} if merged else _decrypted(value)
        live = {**live, top: known}
    ignored = call.site.context.settings("ci")["casc_ignores"]
    for top, name in (path.split(".") for path in ignored):
        live[top].pop(name, None)
    put(call.site.context, live)
    return pages.text("Configuration successfully applied.")


def _decrypted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decrypted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_decrypted(each) for each in value]
    plain = ciphers.decrypt(value) if isinstance(value, str) else None
    return value if plain is None else plain
