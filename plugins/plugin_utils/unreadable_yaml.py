# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of PyYAML for a document that it cannot read, other than those that name a line."""

from __future__ import annotations

import yaml

#: PyYAML does not wrap the Python errors for `2026-13-45`, `!!bool x`, `!!timestamp x` and nesting.
UNREADABLE = (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError)


def told(error: Exception) -> str:
    """Return why a document cannot be read, as the end of a sentence."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, KeyError | AttributeError):
        return "a value does not match its tag"
    return " ".join(str(error).split())
