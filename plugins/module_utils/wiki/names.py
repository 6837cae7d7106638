# SPDX-License-Identifier: GPL-3.0-or-later
"""Validate titles of pages and labels [wiki-13, wiki-14]."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from ..core.errors import invalid

_LONGEST = 255
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
#: Characters at which servers reject or truncate a label.
_NO_LABEL = re.compile(r"[()!#&*,.:;<>?@\[\]^]")


def composed(title: str) -> str:
    """Return the stripped title in NFC, because file names may be in NFD."""
    return unicodedata.normalize("NFC", title.strip())


def decomposed(title: str) -> str:
    return unicodedata.normalize("NFD", title.strip())


def wrong_title(title: str) -> str | None:
    """Return the reason why a title is invalid, or None."""
    if _CONTROL.search(title):
        return "the title contains a line break, a tab or another control character"
    if len(title) > _LONGEST:
        return f"the title has {len(title)} characters, but the wiki allows at most {_LONGEST}"
    return None if title.strip() else "the title is empty"


def wrong_label(label: str) -> str | None:
    """Return the reason why a label is invalid, or None."""
    if label.split() != [label] or _CONTROL.search(label):
        return f"'{label}' is not a valid label: it is empty or contains a blank"
    if (sign := _NO_LABEL.search(label)) is not None:
        return (
            f"'{label}' is not a valid label: it contains '{sign[0]}', but a label cannot contain"
            " ( ) ! # & * , . : ; < > ? @ [ ] ^"
        )
    return None if len(label) <= _LONGEST else f"a label has more than {_LONGEST} characters"


def require_labels(labels: Sequence[str] | None) -> None:
    """Raise `invalid` for an invalid entry of the option `labels`."""
    for number, label in enumerate(labels or ()):
        wrong = wrong_label(label)
        if wrong is not None:
            raise invalid(f"labels[{number}]: {wrong}")
