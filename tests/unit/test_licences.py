# SPDX-License-Identifier: GPL-3.0-or-later
"""Test licences of locked packages: allowed licences, and that no licence is assumed."""

from __future__ import annotations

import pytest

from tools import licences


@pytest.mark.parametrize(
    ("expression", "is_allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR Proprietary", True),
        ("MIT AND BSD-3-Clause", True),
        ("MIT AND Proprietary", False),
        ("SSPL-1.0", False),
    ],
)
def test_licence_is_allowed_if_every_part_of_a_choice_is(
    expression: str, is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(licences._READ, "package", expression)
    sentence = f"package is under {expression}, which is not allowed here"
    assert licences.problems({"package"}) == ([] if is_allowed else [sentence])


def test_package_that_is_not_installed_is_named() -> None:
    assert licences.problems({"no-such-package", "requests"}) == [
        "no-such-package is not installed"
    ]


def test_noted_licences_belong_to_locked_packages() -> None:
    assert set(licences._READ) - licences.locked() == set()
