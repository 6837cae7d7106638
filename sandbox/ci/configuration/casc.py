# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin for configuration as code [ci-43]."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
# Server fact [ci-43]: sections that configure something and that no export shows.
_UNSHOWN = ("configuration-as-code", "groovy", "items", "jobs")
# Server fact [ci-43]: obsolete symbols, with those that exports show.
_SYMBOLS = {"dumb": "permanent", "slave": "permanent", "jnlp": "inbound"}
# Server fact [ci-43]: defaults that the export leaves out, by symbol, and members that it adds
# because a constructor has set them.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "permanent": {"numExecutors": 1, "mode": "NORMAL"},
    "inbound": {"webSocket": False},
    "local": {},
    "ldap": {"userSearch": "uid={0}"},
}
_ADDED: dict[str, dict[str, Any]] = {
    "permanent": {"retentionStrategy": "always"},
    "local": {"allowsSignup": False, "enableCaptcha": False},
    "ldap": {"disableMailAddressResolver": False},
}
# Server fact [ci-43]: sets, which the server sorts, and the kinds of their members in order.
_SETS = ("agentProtocols", "disabledAdministrativeMonitors", "entries", "labelAtoms", "permissions")
_ACCOUNTS = ("user", "group", "userOrGroup")
_VARIABLE = re.compile(r"(\^?)\$\{([^}:]*)(?::-([^}]*))?\}")


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
    shown = {name: _shown(name, value) for name, value in _live(call).items()}
    text = yaml.safe_dump({name: value for name, value in shown.items() if value is not None})
    headers = {"Content-Disposition": "attachment; filename=jenkins.yaml"}
    return Response(text, 200, headers, "application/x-yaml; charset=utf-8")


def _shown(name: str, value: Any) -> Any:
    """Return an exported value, or `None` for one that the export leaves out [ci-43].

    Names are sorted. Empty strings and lists are left out. Secrets have the same encrypted string
    in each export.
    """
    if isinstance(value, dict):
        return _shown_object(value)
    if isinstance(value, list):
        items = [shown for item in value if (shown := _shown_item(name, item)) is not None]
        return (sorted(items, key=_rank) if name in _SETS else items) or None
    if name in _SECRETS and value:
        return ciphers.encrypt(str(value), b"0" * 16)
    if isinstance(value, str):
        return value.replace("${", "^${") if value.strip() else None
    return value


def _shown_object(value: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, item in value.items():
        shown = _shown(name, item)
        if name == "launcher" and isinstance(shown, str):
            shown = _SYMBOLS.get(shown, shown)
        if isinstance(shown, dict) and len(shown) == 1 and name not in _TOP:
            shown = _symbol(shown)
        if shown is not None:
            found[name] = shown
    return found


def _shown_item(name: str, item: Any) -> Any:
    if isinstance(item, dict) and {"key", "value"} <= set(item) and name == "env":
        return {**_shown_object(item), "value": _shown("value", item["value"]) or ""}
    shown = _shown(name, item)
    return _symbol(shown) if isinstance(shown, dict) and len(shown) == 1 else shown


def _symbol(shown: dict[str, Any]) -> Any:
    """Return an object `{kind: members}` with its defaults; only `kind` if it has no members."""
    ((kind, members),) = shown.items()
    if not isinstance(members, dict):
        return shown
    kind = _SYMBOLS.get(kind, kind)
    defaults = _DEFAULTS.get(kind, {})
    kept = {name: item for name, item in members.items() if defaults.get(name) != item}
    kept = {**_ADDED.get(kind, {}), **kept}
    return {kind: dict(sorted(kept.items()))} if kept else kind


def _rank(item: Any) -> tuple[int, str]:
    """Return the place of a member in a set: users before groups, then by name."""
    if not isinstance(item, dict):
        return 0, str(item)
    ((kind, entry),) = item.items()
    place = _ACCOUNTS.index(kind) if kind in _ACCOUNTS else len(_ACCOUNTS)
    return place, str(entry.get("name") if isinstance(entry, dict) else entry)


async def _sent(call: Call) -> tuple[dict[str, Any], Response | None]:
    """Return the configuration in a request, and the error response if it is invalid."""
    body = await call.request.body()
    if not body:
        return {}, _response([{"line": -1, "message": "Request body cannot be empty."}], 400)
    sent = yaml.safe_load(body)
    known = (*_TOP, *_UNSHOWN)
    names = sent if isinstance(sent, dict) else {"?": None}
    unknown = [name for name in names if name.lower() not in known and not name.startswith("x-")]
    if unknown:
        roots = f"root element{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}"
        message = f"No configurator found for the following {roots}"
        return {}, _response([{"line": -1, "message": message}], 400)
    sections = {name.lower(): value for name, value in sent.items()}
    return {name: value for name, value in sections.items() if name in _TOP}, None


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
    try:
        sent = _merged(call.site.context.settings("ci")["casc_files"], sent)
    except _ConflictError as error:
        if call.rest[-1] == "configure":
            return _response([{"line": -1, "message": str(error)}], 400)
        return pages.oops(str(error))
    live = _live(call)
    variables = call.site.context.settings("ci")["casc_variables"]
    for top, content in sent.items():
        known = dict(live.get(top) or {})
        for name, value in content.items():
            _set(known, name, _resolved(_decrypted(value), variables), merged=top != "jenkins")
        live = {**live, top: known}
    ignored = call.site.context.settings("ci")["casc_ignores"]
    for top, name in (path.split(".") for path in ignored):
        live[top].pop(name, None)
    put(call.site.context, live)
    return pages.text("Configuration successfully applied.")


class _ConflictError(Exception):
    """A single value is in the server's own files too."""


def _merged(own: Any, sent: Any) -> Any:
    """Merge the server's own files with a request. Server fact [ci-43]: lists are joined, and any
    other value that both have is an error.
    """
    if isinstance(own, dict) and isinstance(sent, dict):
        both = {name: _merged(own[name], sent[name]) for name in sent if name in own}
        return {**own, **sent, **both}
    if isinstance(own, list) and isinstance(sent, list):
        return [*own, *sent]
    nested = isinstance(own, (dict, list)) or isinstance(sent, (dict, list))
    kind = "incompatible configuration elements" if nested else "conflicting configuration at"
    raise _ConflictError(f"Found {kind} YamlSource: request")


def _set(known: dict[str, Any], name: str, value: Any, *, merged: bool) -> None:
    """Set a member, whose name has any case. Server fact [ci-43]: the members of sections such as
    `unclassified.mailer` are set one by one, other objects are created again.
    """
    name = next((other for other in known if other.lower() == name.lower()), name)
    both = isinstance(value, dict) and isinstance(known.get(name), dict)
    known[name] = {**known[name], **value} if merged and both else value


def _resolved(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace `${NAME}` and `${NAME:-default}`; an unknown name is empty. `^${` is `${` [ci-43]."""
    if isinstance(value, dict):
        return {key: _resolved(each, variables) for key, each in value.items()}
    if isinstance(value, list):
        return [_resolved(each, variables) for each in value]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        escape, name, default = found.groups()
        return found[0][1:] if escape else variables.get(name, default or "")

    return _VARIABLE.sub(replaced, value)


def _decrypted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decrypted(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_decrypted(each) for each in value]
    plain = ciphers.decrypt(value) if isinstance(value, str) else None
    return value if plain is None else plain
