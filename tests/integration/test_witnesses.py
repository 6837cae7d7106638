# SPDX-License-Identifier: GPL-3.0-or-later
"""Who confirms what: every module is listed, every witness has its test, and the page is fresh."""

from __future__ import annotations

import ast

from tools import witnesses

DATA = witnesses.load()


def test_every_module_is_listed() -> None:
    modules = {path.stem for path in (witnesses.ROOT / "plugins/modules").glob("*.py")}
    assert set(DATA["operations"]) == modules - {"__init__"}


def test_operations_that_are_confirmed_are_listed() -> None:
    known = set(witnesses.operations(DATA))
    for one in witnesses.witnesses(DATA):
        named = {each for found in one.tests.values() for each in found}
        assert named <= known, (one.who, named - known)


def test_every_witness_has_its_test() -> None:
    for one in witnesses.witnesses(DATA):
        tree = ast.parse((witnesses.TESTS / one.file).read_text(encoding="utf-8"))
        tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(one.tests) <= tests, (one.who, set(one.tests) - tests)


def test_the_page_is_as_it_would_be_written() -> None:
    assert witnesses.main(["--check"]) == 0
