# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse multipart forms in memory, like older servers."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?')
# `filename*=` is ignored [tracker-27].
_PARAMETER = re.compile(rb'[; ](name|filename)="([^"]*)"')


@dataclass(frozen=True)
class Part:
    """A field of a form. `filename`: None if it is not a file. `kind`: its media type."""

    name: str
    filename: str | None
    kind: str
    content: bytes


def parts_of(content_type: str, body: bytes) -> list[Part] | None:
    """Return the fields in order, or None if the body is not a multipart form."""
    found = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/form-data") or found is None:
        return None
    limit = b"\r\n--" + found[1].encode()
    parts = []
    for chunk in (b"\r\n" + body).split(limit)[1:]:
        head, _blank, content = chunk.partition(b"\r\n\r\n")
        names = {key: value.decode("utf-8", "replace") for key, value in _PARAMETER.findall(head)}
        media = re.search(rb"(?i)content-type: *([^\r\n]+)", head)
        kind = "application/octet-stream" if media is None else media[1].decode("latin-1")
        if b"name" in names:
            parts.append(Part(names[b"name"], names.get(b"filename"), kind, content))
    return parts


def base_name(filename: str) -> str:
    """Return a file name without folders, which servers remove [tracker-27, wiki-15]."""
    return re.split(r"[/\\]", filename)[-1]
