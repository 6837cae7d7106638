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
from ...core.errors import ToolchainError, looks_like_html, shorten
from ...core.http import messages
from ...core.http.download import head_of
from ...core.secret import clean_url
from ..client import TrackerClient

if TYPE_CHECKING:
    from ...core.http.bodies import Incoming

Taken = TypeVar("Taken")

_SECOND = 1_000_000_000  # nanoseconds
_SHOWN = 100
# Server fact [tracker-7]: paths of attachments on servers and in the cloud.
_OWN_PATH = re.compile(r"/((secure/attachment/[^/]+/|rest/api/[^/]+/attachment/content/)[^/]+)$")
_CONTENT = "rest/api/3/attachment/content"
_HTML = re.compile(r"\.x?html?$", re.IGNORECASE)
_ZONE = re.compile(r"([+-]\d\d)(\d\d)$")


@dataclass(frozen=True)
class Attachment:
    """An attachment as the server describes it.

    `size` is in bytes, `created` in seconds since 1970. Both are `None` if the server does not
    report them, as in the written interface.
    """

    number: str
    filename: str
    content: str
    size: int | None
    created: float | None
    is_html: bool

    @classmethod
    def of(cls, item: Mapping[str, Any], base: str) -> Attachment:
        """Parse the server's object.

        If the object has no name, the last segment of the address is the name [tracker-7].

        :param base: the URL of the server
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
        """Return the modification time for the file, in nanoseconds since 1970.

        The next run recognises the file by this time. If the creation time is unknown, it is `now`
        with a fingerprint of the attachment as the fraction of a second.
        """
        if self.created is not None:
            return int(self.created * 1000) * 1_000_000
        return now // _SECOND * _SECOND + self._fingerprint()

    def has_time(self, time: int) -> bool:
        """Return whether `time` is a time that `file_time` sets.

        Fractions of a second of a creation time are ignored, because some file systems drop them.
        """
        if self.created is not None:
            return time // _SECOND == int(self.created)
        return time % _SECOND == self._fingerprint()

    def _fingerprint(self) -> int:
        reported = f"{self.number} {self.size} {self.content}"
        return int.from_bytes(hashlib.sha256(reported.encode()).digest(), "big") % _SECOND


def _seconds(created: Any) -> float | None:
    """Return seconds since 1970, or `None`. Server fact [tracker-2]: the zone has no colon."""
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
        """Return the result of `use` for the content of an attachment.

        `use` must read all blocks: the content is compared with the reported size after the last
        block.
        """
        purpose = (
            f"downloading '{shorten(attachment.filename, _SHOWN)}' ({attachment.number}) of the"
            f" issue '{self._issue}'"
        )

        def checked(incoming: Incoming) -> Taken:
            return use(incoming, _checked(purpose, attachment, incoming))

        *earlier, last = self._addresses(attachment)
        for place in earlier:
            try:
                return self._client.download(purpose, place, checked)
            except ToolchainError as error:
                if error.kind != "not_found":
                    raise
        self._require_web_address(purpose, last)
        return self._client.download(purpose, last, checked)

    def _addresses(self, attachment: Attachment) -> list[str]:
        """Return the addresses to try: those on our server if the given address names another
        server, and the given address.

        Server fact [tracker-7]: addresses begin with the configured base URL, which differs from
        ours behind a proxy. The attachment is also available under our URL, for which the login is
        valid.
        """
        url, base = attachment.content, self._client.url
        found = _OWN_PATH.search(address.path_of(url))
        if self._client.site != base and found is not None:
            # A site refuses the tokens that a gateway accepts [tracker-40].
            return [f"{base}/{found[1]}", f"{base}/{_CONTENT}/{attachment.number}"]
        if found is None or address.origin(url) == address.origin(base):
            return [url]
        return [f"{base}/{found[1]}", url]

    def _require_web_address(self, purpose: str, url: str) -> None:
        there, secure = address.origin(url), self._client.url.startswith("https:")
        if there == address.NOWHERE or (secure and there[0] != "https"):
            wanted = "https" if secure else "http or https"
            raise ToolchainError(
                "protocol",
                f"{purpose}: its address {clean_url(url)} cannot be parsed, or does not begin with"
                f" {wanted}",
            )


def _checked(purpose: str, attachment: Attachment, incoming: Incoming) -> Iterator[bytes]:
    """Yield the blocks of a body.

    Raises:
        ToolchainError: `auth` or `protocol` if the body is not the attachment.
    """
    head, count = b"", 0
    for block in incoming.iter_content():
        if not head:
            head = block
            if attachment.size is None:
                _refuse(purpose, attachment, incoming, head, 0)
        count += len(block)
        if attachment.size is not None and count > attachment.size:
            break  # whatever it is, it shall not fill the disk
        yield block
    if attachment.size not in (None, count):
        _refuse(purpose, attachment, incoming, head, count)


def _refuse(
    purpose: str, attachment: Attachment, incoming: Incoming, head: bytes, count: int
) -> None:
    """Raise an error if the body cannot be the attachment.

    Server fact [tracker-7]: some servers send their login page with status 200 instead of rejecting
    the login.
    """
    response = head_of(purpose, incoming, head)
    disposition = response.headers.get("Content-Disposition", "").lower()
    offered = attachment.size is None and disposition.startswith("attachment")
    if looks_like_html(response.text) and not offered:
        refusal = messages.unexpected_body(response, "the attachment")
        if refusal.kind == "auth" or not attachment.is_html:
            raise refusal
    if attachment.size is not None:
        sent = f"more than {attachment.size}" if count > attachment.size else str(count)
        raise response.error(
            "protocol",
            f"the server sent {sent} bytes, but reports a size of {attachment.size} bytes",
        )
