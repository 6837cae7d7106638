# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse manifests of container images, without requests [repo-34]."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.http.messages import json_or_none


@dataclass(frozen=True)
class ManifestContent:
    """References in a manifest.

    :param lists: digests of the manifests that an index lists
    :param subject: digest of the image to which the manifest is attached
    :param parts: all that the manifest lists, with annotations, such as signatures
    """

    lists: tuple[str, ...] = ()
    subject: str | None = None
    parts: frozenset[str] = frozenset()


def parse(content: bytes, *, index: bool) -> ManifestContent | None:
    """Return the references in a manifest; `None` if its content is not that of a manifest.

    :param index: whether the manifest must be an index
    """
    data = json_or_none(content)
    if not isinstance(data, Mapping) or (index and "manifests" not in data):
        return None
    entries = data.get("manifests") or []
    found = [_digest(entry) for entry in entries] if isinstance(entries, list) else [None]
    lists = tuple(digest for digest in found if digest is not None)
    if len(lists) < len(found):
        return None
    layers = data.get("layers")
    listed = [*entries, *(layers if isinstance(layers, list) else [])]
    parts = frozenset(json.dumps(entry, sort_keys=True) for entry in listed)
    return ManifestContent(lists, _digest(data.get("subject")), parts)


def _digest(descriptor: Any) -> str | None:
    digest = descriptor.get("digest") if isinstance(descriptor, Mapping) else None
    return digest if isinstance(digest, str) else None
