# SPDX-License-Identifier: GPL-3.0-or-later
"""Test licences of locked packages: allowed licences, and that no licence is assumed."""

from __future__ import annotations

import pytest

from tools import licences, lock


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("Apache-2.0 OR Proprietary", True),
        ("MIT AND BSD-3-Clause", True),
        ("MIT AND Proprietary", False),
        ("SSPL-1.0", False),
    ],
)
def test_licence_is_allowed_if_every_part_of_a_choice_is(expression: str, expected: bool) -> None:
    assert licences.allowed(expression) is expected


def test_package_without_allowed_licence_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(licences._READ, "closed", "Proprietary")
    assert licences.problems({"closed", "requests", "no-such-package"}) == [
        "closed is under Proprietary, which is not allowed here",
        "no-such-package is not installed",
    ]


def test_noted_licences_belong_to_locked_packages() -> None:
    texts = [file.read_text(encoding="utf-8") for file in licences.FILES]
    locked = {entry.name for text in texts for entry in lock.read(text)}
    assert set(licences._READ) - locked == set()
