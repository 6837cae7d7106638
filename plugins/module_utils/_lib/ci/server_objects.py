# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write objects of the CI server whose configuration is XML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..core.errors import ToolchainError
from ..core.http.messages import Response, json_or_none
from ..core.http.transport import Transport
from ..core.http.writes import Verify
from ..core.json_text import member
from ..core.module.authorship import Author, author
from . import xml_reader
from .client import document_text, object_of, refuse_page, require_confirmation
from .xml_reader import XmlElement

#: The server translates the reason for which a node is offline [ci-41].
_ENGLISH = {"Accept-Language": "en"}
_XML = {"Content-Type": "application/xml; charset=utf-8"}
#: Characters that require XML 1.1. Very old servers can only read XML 1.0 [ci-14].
_NEWER = re.compile(r"&#|[\x01-\x08\x0b\x0c\x0e-\x1f]")
_DONE = (200, 201, 202, 204)
#: The server redirects after a form [ci-41], or the configuration of a job [ci-21].
REDIRECTED = (*_DONE, 302, 303)


@contextmanager
def naming_class(name: str) -> Iterator[None]:
    """Add a hint to an error of the server for an object of the class `name`.

    Server facts [ci-21, ci-42]: a class that the server does not know is an uncaught exception.
    """
    try:
        yield
    except ToolchainError as error:
        if error.status == 500:
            error.with_hint(f"the plugin with the class {name} may be missing")
        raise


class ServerObjects:
    """Sends requests for objects of the server."""

    def __init__(self, server: Transport) -> None:
        self._server = server

    def read(self, purpose: str, path: str, tree: str | None = None) -> Response | None:
        """Send a read. Return `None` if the CI server responds with 404.

        Raises `not_found` if another server, for example a proxy, responds with 404.
        """
        query = {} if tree is None else {"tree": tree}
        response = self._server.read(
            purpose, path, query=query, headers=_ENGLISH, expect=(200, 404)
        )
        if response.status != 404:
            return response
        # server fact [ci-3]: a response without these headers comes from a proxy
        if "X-Jenkins" not in response.headers and "X-Hudson" not in response.headers:
            raise response.error(
                "not_found",
                "the server returned 404, but it is not a CI server: check url",
            )
        return None

    def shown(self, purpose: str, path: str, tree: str) -> Mapping[str, Any] | None:
        """Return the JSON of an object, or `None` if the object does not exist."""
        response = self.read(purpose, f"{path}/api/json".lstrip("/"), tree)
        return None if response is None else object_of(response)

    def author(self, purpose: str, path: str) -> Author:
        """Return who changed a job or node last, from the plugin jobConfigHistory [ci-46].

        Its times have no zone, so they are unknown.
        """
        history = "jobConfigHistory"
        response = self.read(purpose, f"{path}/{history}/api/json", f"{history}[date,user,userID]")
        listed = member(None if response is None else json_or_none(response.body), history)
        found = listed if isinstance(listed, list) else ()
        entries = [entry for entry in found if isinstance(member(entry, "date"), str)]
        last = max(entries, key=lambda entry: str(entry["date"]), default=None)
        return author([member(last, "userID"), member(last, "user")])

    def text(self, purpose: str, path: str) -> str | None:
        """Return the XML configuration of an object, or `None` if the object does not exist.

        Raises `protocol` if the response is not XML, for example empty.
        """
        response = self.read(purpose, f"{path}/config.xml")
        if response is None:
            return None
        refuse_page(response)
        text = document_text(response)
        try:
            xml_reader.parse(text)
        except xml_reader.UnreadableXml as error:
            message = f"cannot parse the server's configuration: {error}"
            raise response.error("protocol", message) from None
        return text

    def document(self, purpose: str, path: str) -> XmlElement | None:
        """Return the parsed configuration of an object, or `None` if the object does not exist."""
        text = self.text(purpose, path)
        return None if text is None else xml_reader.parse(text)

    def send(
        self, purpose: str, path: str, root: XmlElement | str, verify: Verify, **parts: Any
    ) -> None:
        """Send the XML configuration of an object."""
        text = root if isinstance(root, str) else xml_reader.written_in_lines(root)
        version = "1.1" if _NEWER.search(text) else "1.0"
        body = f"<?xml version='{version}' encoding='UTF-8'?>\n{text}".encode()
        self.write(purpose, path, verify, headers=_XML, body=body, **parts)

    def delete(self, purpose: str, path: str, gone: Verify) -> None:
        try:
            self.write(purpose, f"{path}/doDelete", gone, form={})
        except ToolchainError as error:
            # another client may have deleted the object at the same time
            if error.status not in (400, 404) or not gone():
                raise

    def write(
        self, purpose: str, path: str, verify: Verify, method: str = "POST", **parts: Any
    ) -> None:
        parts.setdefault("expect", REDIRECTED if "form" in parts else _DONE)
        self._server.write(
            purpose,
            method,
            path,
            validate=partial(require_confirmation, self._server),
            verify=verify,
            **parts,
        )
