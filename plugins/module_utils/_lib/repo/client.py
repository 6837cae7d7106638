# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of the repository manager and of the platform's other APIs, such as `/access`.

Other code never compares dialects: it reads a capability from :class:`Dialect`.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from ..core import address
from ..core.errors import ToolchainError, error_text, invalid, looks_like_html, rejected
from ..core.globs import has_wildcards
from ..core.http.messages import Response, expected, json_or_none, unexpected_body
from ..core.json_text import json_objects
from ..core.module.task import Task
from .service import platform_of


@dataclass(frozen=True)
class Dialect:
    """Capabilities and addresses by which the generic interface and Artifactory differ.

    Artifactory has every capability, the generic interface has none.
    """

    api_key_header: str
    #: Prefix of container paths: `{containers}/{repo}/v2/...`.
    containers: str
    #: Properties are set at `{properties}/{repo}/{path}`.
    properties: str
    #: Key of the repository of build records.
    builds_key: str
    #: Address of the pattern search.
    patterns: str
    #: Files are deployed with checksum headers, and without their bytes if the server has them.
    checksum_headers: bool = True
    #: An archive is deployed to `folder/name.zip`; otherwise to `folder/`.
    archive_by_name: bool = True
    #: HEAD of a manifest returns its digest; otherwise only tags can be read.
    manifest_digests: bool = True
    #: A list of tags without a `Link` header is the last page; otherwise that is not certain.
    tag_links: bool = True
    #: Item queries (AQL) support properties as criteria and as fields.
    query_by_property: bool = True
    #: A build record without `statuses` was never promoted.
    record_shows_promotions: bool = True
    #: A JSON body can list the builds to delete; a query parameter cannot contain commas.
    builds_deleted_by_body: bool = True
    #: Build records can be published.
    publishes_builds: bool = True
    #: Items can be copied and moved.
    relocates_items: bool = True
    #: Projects have their own build records and repositories.
    has_projects: bool = True
    #: The trash can be listed by item; otherwise only by repository.
    trash_shows_items: bool = True
    #: Properties can be read and removed, not only set.
    full_properties: bool = True
    #: Properties set on a folder apply to its content, unless `recursive=0` is sent.
    recursive_by_default: bool = True
    #: `failFast` is always sent with a promotion; otherwise only if it is false. Server fact
    #: [repo-15]: the default of the field differs between releases.
    takes_fail_fast: bool = True
    #: `dryRun` is certain to promote nothing.
    rehearses_promotions: bool = True


JFROG = Dialect(
    api_key_header="X-JFrog-Art-Api",
    containers="api/docker",
    properties="api/storage",
    patterns="api/search/pattern",
    builds_key="artifactory-build-info",
)


def generic(vendor: str) -> Dialect:
    """Return the dialect of the written interface; the vendor is part of some names.

    That interface has no requests for builds to publish or items to copy, names no projects, and
    does not specify the effect of `dryRun`.
    """
    return Dialect(
        api_key_header=f"X-{vendor}-Art-Api",
        containers="api/container",
        properties="storage",
        patterns="search/pattern",
        builds_key=f"{vendor.lower()}-build-info",
        **{field.name: False for field in fields(Dialect) if field.default is True},
    )


def dialect_of(settings: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect that the connection options select; `None` for `auto`.

    Raises `invalid` if the option `vendor` cannot be part of a header name.
    """
    vendor = settings["vendor"]
    if re.fullmatch(r"[0-9A-Za-z._-]+", vendor) is None:
        raise invalid(
            "vendor must consist of letters, digits, dots, hyphens and underscores, because it is"
            " part of a header name"
        )
    named = {"jfrog": JFROG, "generic": generic(vendor)}
    return named.get(settings["dialect"])


def is_jfrog(headers: Mapping[str, str]) -> bool:
    """Return whether response headers identify Artifactory [repo-5].

    `False` proves nothing, because a proxy may have removed the headers.
    """
    named = "X-JFrog-Version" in headers or "X-Artifactory-Id" in headers
    return named or headers.get("Server", "").lower().startswith("artifactory")


#: Key of the transport's memory: whether the server identified itself as Artifactory.
_SPEAKS_JFROG = "speaks jfrog"
#: Endpoint that only the dialect `jfrog` has [repo-5].
_VERSION = "api/system/version"
#: Errors that all other requests to the server would get, too.
_OF_THE_SERVER = frozenset({"network", "timeout", "rate_limited"})
#: Statuses with which servers reject a request to an endpoint that they lack.
_NO_ENDPOINT = (400, 404, 405, 501)
#: Matches a character that a repository key cannot contain.
_NOT_IN_KEYS = re.compile(r"[/*?\s]")
INSIDE_ARCHIVE = (
    "which addresses a file inside an archive: an item deployed to this path could not be"
    " downloaded"
)
#: Matches a matrix parameter, as in `a.deb;deb.distribution=stable`.
_MATRIX = re.compile(r";[^;/=]+=[^;/]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
#: Matches the start of an HTML fragment. Text responses of the server never start with a tag.
_PART_OF_PAGE = re.compile(
    r"[\ufeff\s]*<(?:!--|(?:a|b|br|center|div|form|h\d|img|link|meta|p|script|span|style|table"
    r"|title)\b)",
    re.IGNORECASE,
)


# server fact [repo-4]: a server without a licence rejects half of the interface with 400 and this
# message
_EDITION = re.compile(r"available only in ", re.IGNORECASE)
#: Substrings of bodies that may report errors, to avoid parsing others. JSON may escape a key with
#: `\u`.
_MAY_REPORT_ERRORS = ('"errors"', '"messages"', "\\u")
_EDITION_NAME = re.compile(r"\bpro\b", re.IGNORECASE)


#: Statuses with which a server or a proxy rejects an unknown path.
_UNKNOWN = (404, 405)
#: Keys in `errors[]` that the platform's other APIs use, but not the repository manager [repo-31].
_PLATFORM_KEYS = ("code", "title", "detail")


class RepoClient:
    """Client of a repository manager with at most `connections` open connections."""

    def __init__(self, task: Task, *, connections: int = 4) -> None:
        settings = task.connection.settings
        self._named, self._generic = dialect_of(settings), generic(settings["vendor"])
        self._detection_lock = threading.Lock()
        self.connections, self.warn = connections, task.warn
        self.predictions = task.predictions
        #: Set to `False` after a response without properties or checksums, to save further
        #: requests for them: the generic dialect has neither.
        self.reports_properties = True
        self.reports_checksums = True
        possible = (JFROG, self._generic) if self._named is None else (self._named,)
        self.transport = task.transport(
            describe=describe,
            notice=self._note_dialect,
            api_key_headers={dialect.api_key_header for dialect in possible},
            connections=connections,
        )

    @property
    def dialect(self) -> Dialect:
        """Return the dialect of the server [C1.6].

        The dialect `auto` is detected from earlier responses, or with a request.
        """
        if self._named is not None:
            return self._named
        return JFROG if self._speaks_jfrog() else self._generic

    def rehearses_promotions(self) -> bool:
        """Return whether the server is certain to honour `dryRun` in a promotion.

        The option `dialect` is no proof: the server must also identify itself as Artifactory.
        """
        if not self.dialect.rehearses_promotions:
            return False
        try:
            return self._speaks_jfrog()
        except ToolchainError:
            return False

    def builds_key(self, project: str | None) -> str:
        """Return the key of the repository that stores a project's build records.

        `None` and `default` mean builds outside projects [repo-32].
        """
        self.require_projects(project)
        if project in (None, "default"):
            return self.dialect.builds_key
        return f"{project}-build-info"

    def require_projects(self, project: str | None) -> None:
        """Raise `rejected` if a project is given, but the server does not support projects.

        Such a server ignores the parameter and uses objects outside projects. Detecting the dialect
        after the first response saves a request, so call this method only then.
        """
        if project is not None and not self.dialect.has_projects:
            raise rejected(
                f"project: this server does not support projects, so '{project}' cannot exist"
                " (check the option dialect)"
            )

    def _note_dialect(self, headers: Mapping[str, str]) -> None:
        if is_jfrog(headers):
            self.transport.memory[_SPEAKS_JFROG] = True

    def _speaks_jfrog(self) -> bool:
        """Return whether the server is Artifactory.

        If no response has shown it, request the version, which only Artifactory has. The headers of
        the responses are not enough, because a proxy may have removed them.
        """
        memory = self.transport.memory
        with self._detection_lock:
            if _SPEAKS_JFROG in memory:
                return bool(memory[_SPEAKS_JFROG])
            try:
                response = self.transport.read(
                    "detecting the dialect of the server", _VERSION, expect=(200, *_NO_ENDPOINT)
                )
                memory[_SPEAKS_JFROG] = response.status == 200 and "version" in object_of(
                    response, "its version"
                )
            except ToolchainError as error:
                if _SPEAKS_JFROG not in memory:
                    if error.kind in _OF_THE_SERVER:
                        raise
                    raise error.with_hint("set the option dialect to avoid this request") from None
            return bool(memory[_SPEAKS_JFROG])

    def write(self, purpose: str, method: str, path: str, **parts: Any) -> Response:
        """Send a write with :meth:`Transport.write`.

        Also raises if a successful response contains an HTML page or reports errors.
        """
        return self.transport.write(purpose, method, path, validate=refuse_reported, **parts)


def describe(response: Response) -> str:
    """Return the error message of a response; "" if it has none.

    The message comes from `messages[]` (prefixed with their levels), from `errors[]`, or from a
    body that is text or HTML. The request id is appended if the server sends one.
    """
    messages = (f"{each['level']}: {each['message']}" for each in messages_of(response.text))
    text = "; ".join(messages) or error_text(response.text)
    if _names_edition(text):
        text = f"this edition of the server does not support it: {text}"
    request_id = response.headers.get("X-Request-Id")
    return f"{text} (request {request_id})" if text and request_id else text


def lacks_licence(response: Response) -> bool:
    """Return whether the server rejected a request because its licence excludes it [repo-4]."""
    return response.status == 400 and _names_edition(error_text(response.text))


def _names_edition(text: str) -> bool:
    edition = _EDITION.search(text)
    return edition is not None and _EDITION_NAME.search(text, edition.end()) is not None


def messages_of(body: str) -> list[dict[str, str]]:
    """Return the `messages` of a JSON body; empty if it has none.

    Every message is a dict with `level` (in upper case) and `message`.
    """
    decoded = json_or_none(body)
    entries = decoded.get("messages") if isinstance(decoded, Mapping) else None
    found = []
    for entry in entries if isinstance(entries, list) else ():
        level, message = "INFO", entry
        if isinstance(entry, Mapping):
            level, message = str(entry.get("level") or level).upper(), entry.get("message") or ""
        found.append({"level": level, "message": str(message)})
    return found


def errors_in(body: str) -> str:
    """Return the errors that a body reports, joined by semicolons; "" if it reports none.

    Server fact [repo-2]: a successful response may also contain `errors[]`, or `messages[]` of the
    level ERROR.
    """
    decoded = json_or_none(body) if any(part in body for part in _MAY_REPORT_ERRORS) else None
    if not isinstance(decoded, Mapping):
        return ""
    found = [each["message"] for each in messages_of(body) if each["level"] == "ERROR"]
    if found:
        return "; ".join(filter(None, found)) or "an error without a message"
    return error_text(body) if decoded.get("errors") else ""


def text_of(body: str) -> str:
    """Return a body as text, decoded if it is a JSON string; "" for `null`."""
    if body.strip() == "null":
        return ""
    decoded = json_or_none(body)
    return decoded if isinstance(decoded, str) else body.strip()


@dataclass(frozen=True)
class Interface:
    """An API of the platform next to the repository manager.

    :param segment: first path segment below the base address of the platform
    :param probe: path below the segment that every server with this API knows
    :param needs: required product and version, for messages
    """

    segment: str
    probe: str
    needs: str


ACCESS = Interface("access", "api/v1/system/ping", "Artifactory 7.49.3 or newer")
LIFECYCLE = Interface(
    "lifecycle", "api/v2/release_bundle/groups", "Artifactory 7.63.2 or newer, Pro or Enterprise"
)


class InterfaceMissing(ToolchainError):
    """The server does not have this API, or a proxy does not expose it."""


class PlatformClient:
    """Client of one API of the platform, with the login and the limits of the task.

    Server fact [repo-31]: a server without this API, or a proxy in front of it, also returns 404.
    The methods then raise :class:`InterfaceMissing`. Any other 404 means that an object is absent.
    """

    def __init__(self, task: Task, interface: Interface, *, connections: int = 4) -> None:
        self._interface, self._connection = interface, task.connection
        platform = platform_of(task.connection.url, task.connection.settings)
        self.base = f"{platform}/{interface.segment}"
        self.warn = task.warn
        self.transport = task.transport(
            describe=describe,
            api_key_headers=[JFROG.api_key_header],
            connections=connections,
            base=self.base,
        )

    def read(self, purpose: str, path: str, **parts: Any) -> Response:
        """Send a read to a path below the API; see :meth:`Transport.read`."""
        check = partial(self._check, parts.get("expect", ()))
        return self.transport.read(purpose, path, validate=check, **parts)

    def write(self, purpose: str, method: str, path: str, **parts: Any) -> Response:
        """Send a write to a path below the API; see :meth:`Transport.write`."""
        check = partial(self._check, parts.get("expect", ()))
        return self.transport.write(purpose, method, path, validate=check, **parts)

    def _check(self, expect: Collection[int], response: Response) -> None:
        refuse_page(response)
        if response.status in _UNKNOWN:
            is_page = looks_like_html(response.text)
            if is_page or not (_has_platform_error(response) or self._has_interface()):
                raise self.missing(response)
        if response.status in (401, 403) and response.status not in expect and self.lacks_token():
            error = self.transport.failure(response)
            raise error.with_hint(
                f"/{self._interface.segment} may require an access token: set token"
            )

    def lacks_token(self) -> bool:
        """Return whether the task logs in with something other than an access token."""
        return self._connection.has_credentials and not self._connection.sends_token

    def _has_interface(self) -> bool:
        """Return whether the server has the API, as found by a probe that is sent once."""
        memory, name = self.transport.memory, f"has {self._interface.segment}"
        if name not in memory:
            try:
                response = self.transport.read(
                    f"checking whether the server has {self.base}",
                    self._interface.probe,
                    expect=(200, 401, 403, *_UNKNOWN),
                    validate=refuse_page,
                )
                memory[name] = response.status not in _UNKNOWN or _has_platform_error(response)
            except ToolchainError as error:
                if error.kind != "protocol":
                    raise
                memory[name] = False
        return bool(memory[name])

    def missing(self, response: Response) -> InterfaceMissing:
        """Return the error for a response from a server without this API."""
        segment, needs = self._interface.segment, self._interface.needs
        error = response.error("not_found", "")
        return InterfaceMissing(
            "not_found",
            f"{response.request.purpose}: the server has no interface {self.base}"
            f" ({response.status}): it requires {needs}. If a proxy exposes only the repository"
            f" manager, make it expose /{segment} as well, or set platform_url; otherwise check"
            " url",
            status=error.status,
            method=error.method,
            url=error.url,
            detail=describe(response) or None,
        )


def _has_platform_error(response: Response) -> bool:
    """Return whether the body is an error in the format of the platform's other APIs."""
    decoded = json_or_none(response.body)
    found = json_objects(decoded.get("errors")) if isinstance(decoded, Mapping) else []
    return any(isinstance(record.get(member), str) for record in found for member in _PLATFORM_KEYS)


def refuse_page(response: Response) -> None:
    """Raise an error if the body of a successful response is HTML.

    The kind is `auth` for a login form, otherwise `protocol`.
    """
    if response.status >= 300:
        return
    text = response.text
    if _PART_OF_PAGE.match(text) or looks_like_html(text):
        raise unexpected_body(response, "JSON or text")


def refuse_reported(response: Response) -> None:
    """Raise an error if a response is an HTML page, or if its body reports errors.

    Server fact [repo-28]: a 401 with `messages` is about a missing permission, not about the login.
    """
    refuse_page(response)
    if response.status == 401 and messages_of(response.text):
        message = describe(response)
        raise response.error("permission", f"the server returned 401: {message}", message)
    if response.status >= 300:
        return
    reported = errors_in(response.text)
    if reported:
        message = f"the server returned {response.status}, but reports: {reported}"
        raise response.error("rejected", message, reported)


def object_of(response: Response, wanted: str) -> Mapping[str, Any]:
    """Return the JSON object in the body of a response.

    :param wanted: description of the object for the error message
    :raises ToolchainError: `protocol` if the body is not a JSON object
    """
    found: Mapping[str, Any] = expected(response, dict, wanted)
    return found


def objects_of(response: Response, member: str, wanted: str) -> list[Mapping[str, Any]]:
    """Return the objects in the list `member` of a JSON response; empty if it is `null`.

    Raises `protocol` if the member is missing or not a list.
    """
    decoded = object_of(response, wanted)
    if member not in decoded:
        raise unexpected_body(response, wanted)
    return listed_objects(response, decoded[member], wanted)


def listed_objects(response: Response, listed: Any, wanted: str) -> list[Mapping[str, Any]]:
    """Return the objects of a JSON list; empty if it is `null`.

    Raises `protocol` for any other value.
    """
    if not isinstance(listed, (list, type(None))):
        raise unexpected_body(response, wanted)
    return json_objects(listed)


def segments(path: str, option: str = "path") -> list[str]:
    """Return the segments of a path in a repository, ignoring leading and trailing slashes.

    Raises `invalid` for `..`, `.` and empty segments, because servers resolve them differently.

    :param option: option with the path, for the message
    """
    trimmed = path.strip("/")
    found = trimmed.split("/") if trimmed else []
    if not address.REMOVED_SEGMENTS.isdisjoint(found):
        raise invalid(
            f"{option}: '{path}' has an empty, '.' or '..' segment: write the path without it"
        )
    return found


def join(*parts: str) -> str:
    """Join the non-empty parts of a path with single slashes."""
    return "/".join([bare for part in parts if (bare := part.strip("/"))])


def item_path(repo: str, path: str, *, slash: bool = False) -> str:
    """Return the encoded URL path of an item, relative to the base address of the server.

    :param slash: whether to append a slash, which addresses a folder
    """
    return address.path(repo, *segments(path), slash=slash)


def refuse_matrix(option: str, path: str) -> None:
    """Raise `invalid` if a path contains matrix parameters (`;name=value`).

    Other clients set and search for properties with them. Here they would be part of a name.
    """
    found = _MATRIX.search(path)
    if found is not None:
        raise invalid(
            f"{option}: '{path}' contains '{found[0]}', which would be part of the name: put the"
            " values into the option properties"
        )


def refuse_glob(path: str, option: str = "path") -> None:
    """Raise `invalid` if a path that must name a single item is a pattern or has parameters."""
    refuse_matrix(option, path)
    if has_wildcards(path):
        raise invalid(
            f"{option}: '{path}' contains wildcards, but must name a single item: use"
            " artifact_cleanup to delete by pattern"
        )


def is_inside_archive(path: str) -> bool:
    """Return whether the server interprets a path as a file inside an archive (`a.zip!/b.txt`)."""
    return "!/" in path


def require_new_path(option: str, path: str) -> None:
    """Raise `invalid` if the path of a new item is probably a typo.

    The server itself accepts wildcards, surrounding blanks and control characters.
    """
    refuse_matrix(option, path)
    if is_inside_archive(path):
        raise invalid(f"{option}: '{path}' contains '!/', {INSIDE_ARCHIVE}")
    for segment in segments(path, option):
        if segment != segment.strip() or _CONTROL.search(segment):
            reason = "leading or trailing blanks in a segment, or a control character"
        elif has_wildcards(segment):
            reason = "wildcards, but must name a new item"
        else:
            continue
        raise invalid(f"{option}: '{path}' contains {reason}")


def repository_key(name: str, value: str) -> str:
    """Return the value of the option `name` unchanged. Raises `invalid` if no repository can have
    this key.
    """
    if _NOT_IN_KEYS.search(value) or value in ("", ".", ".."):
        raise invalid(
            f"{name}: '{value}' is not a valid repository key: write the key alone, without a path,"
            " blanks and wildcards"
        )
    return value
