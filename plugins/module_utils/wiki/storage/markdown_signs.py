# SPDX-License-Identifier: GPL-3.0-or-later
"""Detect Markdown that was not converted to storage format."""

from __future__ import annotations

import re

from .parser import parse

_SIGN = re.compile(
    r"""
    ^[ ]{0,3}(?:\#{1,6}[ ]\S | ```\w* | ~~~ | [-*+][ ]\S | >[ ]\S | \|[^|\n]+\|[^|\n]+\|)
    | \]\((?:https?://|\.{0,2}/|\#|\w)
    | \*\*[^\s*][^*\n]*\*\*
    """,
    re.MULTILINE | re.VERBOSE,
)


def looks_like_markdown(body: str) -> bool:
    """Return whether text outside of elements looks like Markdown; the body must be well-formed."""
    bare = "\n".join(child for child in parse(body).children if isinstance(child, str))
    return _SIGN.search(bare) is not None
