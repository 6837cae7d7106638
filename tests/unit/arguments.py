# SPDX-License-Identifier: GPL-3.0-or-later
"""Provide arguments for a module or a step that a test calls, on every supported ansible-core."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    ansible_internals,
    bookkeeping,
)


def given_to_a_module(arguments: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Provide these arguments to a module that is called in the block."""
    return ansible_internals.find().ready_for(arguments)


def run_of(**variables: Any) -> bookkeeping.Run:
    """Return the run of a step with these variables, which contain no templates."""

    def unchanged(value: Any) -> Any:
        return value

    return bookkeeping.Run(variables, unchanged, unchanged)
