# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify the witnesses: every witness has a test, and the generated page is current."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.helpers import witnessed
from tools import witnesses

DATA = witnesses.load()


def test_confirmed_operations_are_listed() -> None:
    known = set(witnesses.operations())
    for witness in witnesses.witnesses(DATA):
        named = {each for found in witness.tests.values() for each in found}
        assert named <= known, (witness.who, named - known)


def test_every_witness_has_its_test() -> None:
    for witness in witnesses.witnesses(DATA):
        (file,) = witnesses.TESTS.rglob(witness.file)
        tree = ast.parse(file.read_text(encoding="utf-8"))
        tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert set(witness.tests) <= tests, (witness.who, set(witness.tests) - tests)


def test_claims_of_clients_are_verifiable_in_the_log() -> None:
    """Verify that claims of client tests can be checked in the log. See `conftest.py` in
    `tests/integration`.
    """
    claimed = {
        operation
        for witness in witnesses.witnesses(DATA)
        if witness.kind == "clients"
        for found in witness.tests.values()
        for operation in found
    }
    assert claimed <= set(witnessed.ASKED) <= set(witnesses.operations())


def entry(method: str, path: str, *, served: int = 200) -> dict[str, Any]:
    reported: dict[str, Any] = {"query": "", "headers": {}, "body": None, "write": method != "GET"}
    return {"method": method, "path": path, "served": served, **reported}


LIST, GIT = entry("GET", "/pluginManager/api/json"), "/pluginManager/plugin/git"
SWITCH, REMOVE = entry("POST", f"{GIT}/makeDisabled"), entry("POST", f"{GIT}/doUninstall")


@pytest.mark.parametrize(
    ("operation", "log", "said"),
    [
        ("ci_artifact.read", [entry("GET", "/job/a/api/json")], "never asked"),
        ("ci_artifact.read", [entry("GET", "/job/a/1/api/json", served=404)], "never asked"),
        ("ci_artifact.read", [entry("GET", "/job/a/1/api/json")], ""),
        ("artifact_deploy.folder", [entry("PUT", "/generic/folder/"), LIST], "never asked"),
        (
            "ci_plugin.enable and disable",
            [SWITCH, REMOVE, LIST],
            "nobody looked at what it changed",
        ),
        ("ci_plugin.enable and disable", [SWITCH, LIST, REMOVE], ""),
        ("ci_plugin.remove", [SWITCH, LIST, REMOVE], "nobody looked at what it changed"),
        ("ci_plugin.remove", [REMOVE, SWITCH, LIST], ""),
    ],
)
def test_claim_is_verified_against_the_log(
    operation: str, log: list[dict[str, Any]], said: str
) -> None:
    reported = [f"{operation}: {said}"] if said else []
    assert list(witnessed.unasked(log, [operation])) == reported
