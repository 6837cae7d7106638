# SPDX-License-Identifier: GPL-3.0-or-later
"""The base of errors whose message is shown to the user."""

from __future__ import annotations

from typing import ClassVar


class SentenceError(Exception):
    """The message is a sentence, or with `prefix` becomes one."""

    prefix: ClassVar[str] = ""
    #: Kind of the error in a result, "" for none.
    kind: ClassVar[str] = ""
