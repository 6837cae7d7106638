# SPDX-License-Identifier: GPL-3.0-or-later
"""Exceptions of PyYAML for invalid documents, except those that contain the line."""

from __future__ import annotations

import yaml

#: PyYAML raises Python's own exceptions for `2026-13-45`, `!!bool x`, `!!timestamp x` and deep
#: nesting.
UNREADABLE = (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError)


def describe(error: Exception) -> str:
    """Return the reason why a document is invalid, for the end of a message."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError | AttributeError):
        return "a value does not match its tag"
    return " ".join(str(error).split())
