# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe and download the attachments of an issue [W2.2, W4.2]."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from ...core import address
from ...core.errors import ToolchainError, looks_like_html, protocol, shorten
from ...core.http import messages
from ...core.http.file_download import head_of
from ...core.secret import clean_url
from ..client import TrackerClient

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming

Taken = TypeVar("Taken")

_SECOND = 1_000_000_000  # nanoseconds
_SHOWN = 100
# Server fact [tracker-7]: the path of an attachment on a server or in the cloud.
_OWN_PATH = re.compile(r"/((secure/attachment/[^/]+/|rest/api/[^/]+/attachment/content/)[^/]+)$")
_CONTENT = "rest/api/3/attachment/content"
_HTML = re.compile(r"\.x?html?$", re.IGNORECASE)
_ZONE = re.compile(r"([+-]\d\d)(\d\d)$")


@dataclass(frozen=True)
class Attachment:
    """An attachment as the server describes it.

    `number`: its id. `content`: URL of the content. `size`: in bytes. `created`: in seconds since
    1970. Size and time are None if the server does not report them, like the written interface.
    """

    number: str
    filename: str
    content: str
    size: int | None
    created: float | None
    is_html: bool

    @classmethod
    def of(cls, item: Mapping[str, Any], base: str) -> Attachment:
        """Parse the server's JSON object.

        If it has no file name, the last segment of the URL is the name [tracker-7].

        :param base: URL of the server
        """
        content = address.target(f"{base}/", str(item["content"]))
        last = unquote(address.path_of(content).rpartition("/")[2])
        filename = str(item.get("filename") or last)
        size = str(item.get("size"))
        return cls(
            str(item["id"]),
            filename,
            content,
            int(size) if size.isdecimal() else None,
            _seconds(item.get("created")),
            "html" in str(item.get("mimeType")) or _HTML.search(filename) is not None,
        )

    def file_time(self, now: int) -> int:
        """Return the modification time for the downloaded file, in nanoseconds since 1970.

        The next run recognises the file by this time. It is the creation time of the attachment. If
        that is unknown, it is `now` with a fingerprint of the attachment as fraction of a second.
        """
        if self.created is not None:
            return int(self.created * 1000) * 1_000_000
        return now // _SECOND * _SECOND + self._fingerprint()

    def has_time(self, time: int) -> bool:
        """Return whether a modification time was set by `file_time()`.

        Only whole seconds of a creation time are compared, because some file systems drop the
        fraction.

        :param time: in nanoseconds since 1970
        """
        if self.created is not None:
            return time // _SECOND == int(self.created)
        return time % _SECOND == self._fingerprint()

    def _fingerprint(self) -> int:
        reported = f"{self.number} {self.size} {self.content}"
        return int.from_bytes(hashlib.sha256(reported.encode()).digest(), "big") % _SECOND


def _seconds(created: Any) -> float | None:
    """Parse a time. Return seconds since 1970, or None if it is invalid or has no time zone.

    Server fact [tracker-2]: the offset of the time zone has no colon.
    """
    text = _ZONE.sub(r"\1:\2", str(created).replace("Z", "+00:00"))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if moment.tzinfo is None else moment.timestamp()


class AttachmentContents:
    """Download the attachments of an issue."""

    def __init__(self, client: TrackerClient, issue: str) -> None:
        self._client, self._issue = client, issue

    def read(
        self, attachment: Attachment, use: Callable[[Incoming, Iterator[bytes]], Taken]
    ) -> Taken:
        """Download an attachment and return the result of `use`.

        `use` must read all blocks, because the size is checked after the last block.

        :param use: called with the response and its blocks
        """
        purpose = (
            f"downloading '{shorten(attachment.filename, _SHOWN)}' ({attachment.number}) of the"
            f" issue '{self._issue}'"
        )

        def checked(incoming: Incoming) -> Taken:
            return use(incoming, _checked(purpose, attachment, incoming))

        # Server fact [tracker-7]: the server builds URLs with its configured base URL. Behind a
        # proxy that may differ from the URL of the connection, for which the login is valid. The
        # attachment is also available below the URL of the connection.
        url, base = attachment.content, self._client.url
        found = _OWN_PATH.search(address.path_of(url))
        if self._client.site != base and found is not None:
            # The site rejects the tokens that the gateway accepts [tracker-40].
            url = f"{base}/{_CONTENT}/{attachment.number}"
        elif address.origin(url) == address.origin(base):
            found = None
        if found is not None:
            try:
                return self._client.download(purpose, f"{base}/{found[1]}", checked)
            except ToolchainError as error:
                if error.kind != "not_found":
                    raise
        target, secure = address.origin(url), base.startswith("https:")
        if target == address.NOWHERE or (secure and target[0] != "https"):
            scheme = "https" if secure else "http or https"
            raise protocol(
                f"{purpose}: the server reports the address {clean_url(url)}, which is not a valid"
                f" {scheme} URL"
            )
        return self._client.download(purpose, url, checked)


def _checked(purpose: str, attachment: Attachment, incoming: Incoming) -> Iterator[bytes]:
    """Yield the blocks of a response body.

    Raises `auth` or `protocol` if the body is not the attachment.
    """
    head, count = b"", 0
    for block in incoming.iter_content():
        if not head:
            head = block
            if attachment.size is None:
                _require_attachment(purpose, attachment, incoming, head, 0)
        count += len(block)
        if attachment.size is not None and count > attachment.size:
            break  # a wrong body must not fill the disk
        yield block
    if attachment.size not in (None, count):
        _require_attachment(purpose, attachment, incoming, head, count)


def _require_attachment(
    purpose: str, attachment: Attachment, incoming: Incoming, head: bytes, count: int
) -> None:
    """Raise `auth` or `protocol` if a response body cannot be the attachment.

    Server fact [tracker-7]: some servers send their login page with status 200 instead of rejecting
    the login.

    :param head: first block of the body
    :param count: size of the body in bytes, if the attachment has a known size
    """
    response = head_of(purpose, incoming, head)
    disposition = response.headers.get("Content-Disposition", "").lower()
    offered = attachment.size is None and disposition.startswith("attachment")
    if looks_like_html(response.text) and not offered:
        error = messages.unexpected_body(response, "the attachment")
        if error.kind == "auth" or not attachment.is_html:
            raise error
    if attachment.size is not None:
        sent = f"more than {attachment.size}" if count > attachment.size else str(count)
        raise response.error(
            "protocol",
            f"the server sent {sent} bytes, but reports a size of {attachment.size} bytes",
        )
