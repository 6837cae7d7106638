# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that no module has missing parts, and the names that a new module may have.

`test_added_module.py` of the integration tests adds a module to a copy of the checkout.
"""

from __future__ import annotations

import pytest

from tools import module_check, new_module
from tools.descriptors import DESCRIPTORS


def test_no_module_has_gaps() -> None:
    assert [line for module in DESCRIPTORS for line in module_check.missing(module)] == []


def test_missing_file_is_reported() -> None:
    assert module_check.missing("wiki_nothing") == [
        "plugins/modules/wiki_nothing.py is missing",
        "plugins/module_utils/_lib/wiki_nothing.py is missing",
        "tests/contract/cases/wiki_nothing.yml is missing",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["wikilabel"], "not a name of a module"),
        (["wiki_page"], "plugins/modules/wiki_page.py exists already"),
        (
            ["wiki_other", "--package", "wiki/nowhere"],
            "no folder plugins/module_utils/_lib/wiki/nowhere",
        ),
        (["code_review"], "no folder plugins/module_utils/_lib/code"),
    ],
)
def test_invalid_module_name_is_rejected(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        new_module.main(arguments)
    assert words in capsys.readouterr().err
