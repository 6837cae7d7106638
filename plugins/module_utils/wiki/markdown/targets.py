# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets of links and images."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol
from urllib.parse import unquote

from .attachment_names import AttachmentNames
from .document import target_key

_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:|//)")


@dataclass(frozen=True)
class LinkTarget:
    """Target of a link or an image.

    `kind`: `text` has no target. `anchor`: target on the page.
    `name`: an address, the title of a page ("" is the same page), or the name of an attachment.
    """

    kind: Literal["address", "page", "file", "text"]
    name: str
    anchor: str = ""


class LinkResolver(Protocol):
    """Resolve the addresses of links and images."""

    def link(self, address: str, line: int) -> LinkTarget:
        """Return the target of a link."""

    def image(self, address: str, line: int) -> LinkTarget:
        """Return the source of an image."""

    def warn(self, problem: str, line: int) -> None:
        """Report content that is not converted."""


@dataclass
class SingleText:
    """Resolver for a single document: keep links, and resolve images to attachments.

    :param targets: the targets on the page
    :param report: reports a warning with its line
    """

    targets: Mapping[str, str]
    report: Callable[[str], None]
    names: AttachmentNames = field(default_factory=AttachmentNames)

    def link(self, address: str, line: int) -> LinkTarget:
        if not address.startswith("#"):
            return LinkTarget("address", address)
        fragment = unquote(address[1:])
        known = self.targets.get(target_key(fragment))
        if known is None and fragment:
            self.warn(f"{no_target(fragment)} top of the page instead", line)
        return LinkTarget("page", "", known or "")

    def image(self, address: str, line: int) -> LinkTarget:
        path = posixpath.normpath(unquote(address.partition("?")[0]).lstrip("/"))
        if is_external(address) or posixpath.basename(path) in ("", ".", ".."):
            return LinkTarget("address", address)
        return LinkTarget("file", self.names.name(path))

    def warn(self, problem: str, line: int) -> None:
        """Report content that is not converted."""
        self.report(f"line {line}: {problem}")


def no_target(fragment: str) -> str:
    """Return the start of the warning about a link to a missing heading or id."""
    return f"there is no heading or id '#{fragment}'; the link leads to the"


def is_external(address: str) -> bool:
    """Return whether an address has a scheme or a host."""
    return _SCHEME.match(address) is not None
