# SPDX-License-Identifier: GPL-3.0-or-later
"""Test fields that the server requires and that a task empties."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.fields import (
    FieldsPart,
    WantedField,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.editing.site import (
    Site,
    TrackerIssue,
)


def edits(value: Any, *, required: bool) -> list[Any]:
    editable = {"customfield_1": {"required": required}}
    issue = TrackerIssue("REL-1", {"customfield_1": "x"}, editable)
    site = cast(Site, SimpleNamespace(task=None))
    part = FieldsPart(site, [WantedField("customfield_1", "Team", value)])
    return part.edits(issue)


@pytest.mark.parametrize("empty", [None, "", []])
def test_a_required_field_is_not_emptied(empty: Any) -> None:
    with pytest.raises(
        ToolchainError, match="Team is a required field, but its value is empty"
    ) as caught:
        edits(empty, required=True)
    assert caught.value.kind == "rejected"
    assert len(edits(empty, required=False)) == len(edits("y", required=True)) == 1
