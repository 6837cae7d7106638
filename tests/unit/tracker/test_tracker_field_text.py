# SPDX-License-Identifier: GPL-3.0-or-later
"""Test values of fields as text in tables: release notes and CSV files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.documents import (
    to_document,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.field_text import (
    field_text,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.jql_search import (
    IssueFile,
)

OTHER = {"id": "9", "key": "A-9", "fields": {"summary": "x"}}
LINK = {"id": "10001", "type": {"name": "Blocks"}}
SPRINT = (
    "com.atlassian.greenhopper.service.sprint.Sprint@1f2e[id=7,rapidViewId=2,state=ACTIVE,name=May]"
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ([], ""),
        ({}, ""),
        (0.0, "0"),
        (2.5, "2.5"),
        (True, "true"),
        ("2026-06-01", "2026-06-01"),
        ("2026-04-01T09:30:00.000+0200", "2026-04-01T09:30:00+02:00"),
        ("at 2026-04-01T09:30:00.000+0200", "at 2026-04-01T09:30:00.000+0200"),
        ({"displayName": "Ann", "name": "ann", "key": "k"}, "Ann"),
        ({"name": "High", "id": "2"}, "High"),
        ({"value": "UI", "child": {"value": "Menu"}}, "UI - Menu"),
        ({"value": "UI", "child": None}, "UI"),
        (OTHER, "A-9"),
        ([OTHER, {**OTHER, "key": "A-8"}], "A-9, A-8"),
        ([{**LINK, "outwardIssue": OTHER}, {**LINK, "inwardIssue": OTHER}], "A-9, A-9"),
        (to_document("a\n\nb"), "a\n\nb"),
        ({"self": "x", "votes": 3, "hasVoted": False}, "3"),
        ({"watchCount": 0, "isWatching": False}, "0"),
        (
            {"originalEstimate": "2d", "timeSpent": "1h", "timeSpentSeconds": 3600},
            "estimate 2d, spent 1h",
        ),
        ({"progress": 3600, "total": 7200, "percent": 50}, "50%"),
        ({"progress": 0, "total": 0}, ""),
        ([{"id": "7", "filename": "a.txt"}], "a.txt"),
        ([SPRINT], "May"),
        ([{"id": 7, "name": "May", "state": "active"}], "May"),
        ({"odd": 1}, None),
        ([{"odd": 1}, "x"], None),
    ],
)
def test_text_of_a_field(value: Any, text: str | None) -> None:
    assert field_text(value) == text


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ('=HYPERLINK("x")', '"\'=HYPERLINK(""x"")"'),
        ("+1 from me", "'+1 from me"),
        ("-x", "'-x"),
        ("@ann", "'@ann"),
        ("\tx", "'\tx"),
        ("\n=1", '"\'\n=1"'),
        ("\uff1d1", "'\uff1d1"),
        # programs end a row at a bare CR outside of quotes
        ("a\r=1", '"a\r=1"'),
        ("a\r\n=1", '"a\r\n=1"'),
        (-5.0, "-5"),
        ("-2.5", "-2.5"),
        ("a=b", "a=b"),
        ([{"name": "=1+1"}], "'=1+1"),
        ({"odd": 1}, json.dumps({"odd": 1}).replace('"', '""').join('""')),
    ],
)
def test_cell_is_no_formula(tmp_path: Path, value: Any, cell: str) -> None:
    file = IssueFile(str(tmp_path / "a.csv"), ["key", "x"])
    file.add({"key": "A-1", "fields": {"x": value}})
    file.save()
    assert (tmp_path / "a.csv").read_bytes().decode() == f"key,x\nA-1,{cell}\n"


def test_key_is_no_formula(tmp_path: Path) -> None:
    file = IssueFile(str(tmp_path / "a.csv"), ["key"])
    file.add({"key": "=1", "fields": {}})
    file.save()
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "key\n'=1\n"
