# SPDX-License-Identifier: GPL-3.0-or-later
"""Credential stores of the system and of folders [ci-40].

A credential is stored as XML with plain secrets, which no response contains.
"""

from __future__ import annotations

import secrets
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lxml import etree
from starlette.responses import Response

from sandbox.ci.call import Action, Call
from sandbox.ci.formats.exports import Exported, constants
from sandbox.ci.jobs import configuration, jobs
from sandbox.ci.server import pages
from sandbox.context import Context
from sandbox.service import ErrorResponse

CREDENTIALS, DOMAINS = "ci.credential", "ci.credential_domain"
GLOBAL = "_"
_PERMISSION = "com.cloudbees.plugins.credentials.CredentialsProvider"
VIEW = f"{_PERMISSION}.View"
CREATE, UPDATE, DELETE = f"{_PERMISSION}.Create", f"{_PERMISSION}.Update", f"{_PERMISSION}.Delete"
MANAGE_DOMAINS = f"{_PERMISSION}.ManageDomains"

_PLAIN = "org.jenkinsci.plugins.plaincredentials.impl"
_IMPL = "com.cloudbees.plugins.credentials.impl"
_SSH = "com.cloudbees.jenkins.plugins.sshcredentials.impl.BasicSSHUserPrivateKey"
# Server fact [ci-40]: the classes, here with their elements; each also has scope, id, description.
_ELEMENTS: dict[str, tuple[str, ...]] = {
    f"{_IMPL}.UsernamePasswordCredentialsImpl": ("username", "password", "usernameSecret"),
    f"{_IMPL}.CertificateCredentialsImpl": ("keyStoreSource", "password"),
    f"{_PLAIN}.StringCredentialsImpl": ("secret",),
    f"{_PLAIN}.FileCredentialsImpl": ("fileName", "secretBytes"),
    _SSH: ("username", "passphrase", "privateKeySource", "usernameSecret"),
    "org.jenkinsci.plugins.github__branch__source.GitHubAppCredentials": (
        "appID",
        "privateKey",
        "owner",
        "apiUri",
    ),
}
_DEFAULTS = {"usernameSecret": "false"}
_TYPES = {
    "UsernamePasswordCredentialsImpl": "Username with password",
    "CertificateCredentialsImpl": "Certificate",
    "StringCredentialsImpl": "Secret text",
    "FileCredentialsImpl": "Secret file",
    "BasicSSHUserPrivateKey": "SSH Username with private key",
}
SECRETS = (
    "password",
    "secret",
    "secretBytes",
    "passphrase",
    "privateKey",
    "uploadedKeystoreBytes",
)
_REDACTED = "secret-redacted"


@dataclass(frozen=True)
class _Location:
    """The location that a path names. `rest` contains the segments after the domain."""

    folder: str
    domain: str
    rest: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.folder}|{self.domain}|"


def put(context: Context, entry: dict[str, Any]) -> None:
    """Store a credential of a seed, with the keys `folder, domain, config`.

    Without `config`, only the domain is created.
    """
    folder, domain = str(entry.get("folder") or ""), str(entry.get("domain") or GLOBAL)
    context.store.put(DOMAINS, f"{folder}|{domain}", {"name": domain})
    if entry.get("config"):
        root = _normalized(configuration.parsed(entry["config"]))
        _save(context, _Location(folder, domain, ()), root)


def action(call: Call) -> Action | None:
    """Return the action for a path in a store, or `None` for a path that requests data."""
    if call.rest[:2] != ["credentials", "store"]:
        return None
    if call.rest[3:] == ["createDomain"]:
        return Action(_create_domain, "POST", MANAGE_DOMAINS, listed=False)
    place = _place(call, call.rest)
    if place is None:
        return None
    method = call.request.method
    if place.rest == ("createCredentials",):
        return Action(_create, "POST", CREATE, listed=False)
    if place.rest[:1] != ("credential",) or len(place.rest) != 3:
        return None
    actions = {
        ("GET", "config.xml"): Action(_read, "GET", VIEW, listed=False),
        ("POST", "config.xml"): Action(_update, "POST", UPDATE, listed=False),
        ("DELETE", "config.xml"): Action(_delete, "DELETE", DELETE, listed=False),
        ("POST", "doDelete"): Action(_delete, "POST", DELETE, listed=False),
    }
    return actions.get((method, place.rest[2]))


def exported(call: Call, target: list[str]) -> Exported | None:
    """Return the object of a store, a domain or a credential, or `None` for another path."""
    if target[:2] != ["credentials", "store"]:
        return None
    call.require(VIEW)
    context = call.site.context
    if len(target) == 3 and _store(call, target) is not None:
        return _store_view(context, str(_store(call, target)))
    place = _place(call, target)
    if place is None or not _has_domain(context, place):
        return None
    if place.rest == ():
        rows = context.store.values(CREDENTIALS, place.key)
        return Exported("Domain", {"credentials": lambda: [_view(context, row) for row in rows]})
    row = context.store.get(CREDENTIALS, place.key + place.rest[1])
    is_one = place.rest[:1] == ("credential",) and len(place.rest) == 2 and row is not None
    return _view(context, row) if is_one and row is not None else None


def _store_view(context: Context, folder: str) -> Exported:
    """Return the object of a store. Server fact [ci-40]: `domains` is an object with a member per
    domain.
    """
    names = {GLOBAL, *(row["name"] for row in context.store.values(DOMAINS, f"{folder}|"))}
    return Exported("Store", constants(domains={name: {"urlName": name} for name in sorted(names)}))


def _view(context: Context, row: dict[str, Any]) -> Exported:
    root = configuration.parsed(row["xml"])
    name, text = str(root.tag).rpartition(".")[2], root.findtext("description") or ""
    is_used = root.findtext("id") in context.settings("ci")["used_credentials"]
    return Exported(
        "com.cloudbees.plugins.credentials.CredentialsStoreAction$CredentialsWrapper",
        constants(
            id=root.findtext("id"),
            typeName=_TYPES.get(name, name),
            displayName=_display_name(root, name, text),
            description=text,
            fingerprint={"hash": row["fingerprint"]} if is_used else None,
        ),
    )


def _display_name(root: etree._Element, name: str, description: str) -> str | None:
    """Return the name that the web interface shows: user or file, then the description [ci-40]."""
    shown = root.findtext("username") or root.findtext("fileName")
    if not shown or root.findtext("usernameSecret") == "true":
        return description or root.findtext("id")
    hidden = "/******" if name == "UsernamePasswordCredentialsImpl" else ""
    return f"{shown}{hidden}" + (f" ({description})" if description else "")


def _store(call: Call, rest: list[str]) -> str | None:
    """Return the folder of a store, "" for the system store, or `None` if it does not exist."""
    if call.job is None:
        return "" if rest[2:3] == ["system"] else None
    is_folder = call.job["kind"] in jobs.CONTAINERS
    return str(call.job["full_name"]) if is_folder and rest[2:3] == ["folder"] else None


def _place(call: Call, rest: list[str]) -> _Location | None:
    folder = _store(call, rest)
    if folder is None or rest[3:4] != ["domain"] or len(rest) < 5:
        return None
    return _Location(folder, rest[4], tuple(rest[5:]))


def _existing_location(call: Call) -> _Location:
    """Return the location that a request names. Raise 404 if its domain does not exist."""
    place = _place(call, call.rest)
    if place is None or not _has_domain(call.site.context, place):
        raise ErrorResponse(pages.not_found())
    return place


def _has_domain(context: Context, place: _Location) -> bool:
    known = context.store.get(DOMAINS, f"{place.folder}|{place.domain}")
    return place.domain == GLOBAL or known is not None


def _credential(call: Call) -> tuple[_Location, dict[str, Any]]:
    place = _existing_location(call)
    row = call.site.context.store.get(CREDENTIALS, place.key + place.rest[1])
    if row is None:
        raise ErrorResponse(pages.not_found())
    return place, row


def _save(context: Context, place: _Location, root: etree._Element) -> None:
    text = etree.tostring(root, encoding="unicode")
    # server fact [ci-40]: each save encrypts the secret in another way, so the fingerprint differs
    row = {"xml": text, "fingerprint": secrets.token_hex(16)}
    context.store.put(CREDENTIALS, place.key + (root.findtext("id") or ""), row)


async def _sent(call: Call) -> etree._Element:
    kind = call.request.headers.get("content-type", "").partition(";")[0].strip()
    if kind not in ("application/xml", "text/xml"):
        raise ErrorResponse(pages.failed("No Content-Type header set"))
    try:
        return _normalized(configuration.parsed((await call.request.body()).decode()))
    except configuration.Unreadable as error:
        raise ErrorResponse(pages.oops(str(error))) from error


def _normalized(root: etree._Element) -> etree._Element:
    """Return a credential as it is stored: known elements, with defaults.

    Server fact [ci-40]: a redacted secret is stored as an empty secret.
    """
    known = _ELEMENTS.get(str(root.tag))
    if known is None:
        message = "com.thoughtworks.xstream.mapper.CannotResolveClassException"
        raise configuration.Unreadable(f"{message}: {root.tag}")
    saved = etree.Element(root.tag)
    for name in ("scope", "id", "description", *known):
        child = root.find(name)
        if child is not None:
            saved.append(deepcopy(child))
        elif name in _DEFAULTS:
            etree.SubElement(saved, name).text = _DEFAULTS[name]
    for redacted in list(saved.iter(_REDACTED)):
        holder = redacted.getparent()
        if holder is not None:
            holder.clear()
    return saved


async def _create(call: Call) -> Response:
    """Handle POST createCredentials: 409 if the id exists or the domain does not [ci-40]."""
    context, place = call.site.context, _place(call, call.rest)
    root = await _sent(call)
    if place is None or not _has_domain(context, place):
        return Response(status_code=409)
    if context.store.get(CREDENTIALS, place.key + (root.findtext("id") or "")) is not None:
        return Response(status_code=409)
    _save(context, place, root)
    return Response(status_code=200)


def _read(call: Call) -> Response:
    _where, row = _credential(call)
    root = configuration.parsed(row["xml"])
    for element in list(root.iter(*SECRETS)):
        if element.text and not len(element):
            element.text = None
            etree.SubElement(element, _REDACTED)
    etree.indent(root)
    # server fact [ci-40]: no declaration, no charset, and no characters beyond ISO-8859-1
    text = etree.tostring(root, encoding="unicode").encode("iso-8859-1", "replace")
    return Response(text, 200, None, "application/xml")


async def _update(call: Call) -> Response:
    place, _row = _credential(call)
    _save(call.site.context, place, await _sent(call))
    return Response(status_code=200)


def _delete(call: Call) -> Response:
    place, _row = _credential(call)
    call.site.context.store.delete(CREDENTIALS, place.key + place.rest[1])
    if call.request.method == "DELETE":
        return Response(status_code=200)
    return pages.redirect(call.absolute("."))


async def _create_domain(call: Call) -> Response:
    folder, context = _store(call, call.rest), call.site.context
    if folder is None:
        raise ErrorResponse(pages.not_found())
    name = configuration.parsed((await call.request.body()).decode()).findtext("name") or ""
    if context.store.get(DOMAINS, f"{folder}|{name}") is not None:
        return Response(status_code=409)
    context.store.put(DOMAINS, f"{folder}|{name}", {"name": name})
    return Response(status_code=200)
