# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the issues that the lookup `trace` lists."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.lookup import trace
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import lookups


def test_issue_of_two_keys_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    issue = {"id": "7", "key": "REL-7", "fields": {"summary": "Moved"}}
    found = {"OLD-1": issue, "REL-7": issue}
    monkeypatch.setattr(lookups, "run_query", lambda *_given: found)
    records: list[dict[str, Any]] = [{"issues": {"affectedIssues": [{"key": "OLD-1"}]}}]
    commits = [{"message": "REL-7: fix"}, {"message": "GONE-1: no issue"}]
    (listed,) = trace._issues(lambda _name: None, records, commits) or []
    assert (listed["key"], listed["summary"]) == ("OLD-1", "Moved")
