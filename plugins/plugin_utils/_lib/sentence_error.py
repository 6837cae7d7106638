# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of errors whose message is shown to the user."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar


class SentenceError(Exception):
    """The message is a sentence, or with `prefix` becomes one."""

    prefix: ClassVar[str] = ""
    kind: ClassVar[str] = "invalid"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of a message about an unknown name: the most similar known name, or
    `otherwise` if none is similar.
    """
    near = difflib.get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]}?)" if near else otherwise
