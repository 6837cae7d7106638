# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a text for a variable that is a list is split, or refused with one sentence."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    adoption,
    bookkeeping,
    enforcement,
    role_variables,
    variables,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.steps import reports
from tests.unit.arguments import run_of
from tools.tree import ROOT

TEXTS = ["east, west", "east\nwest\n", " east ,\n west,"]
RELEASE = role_variables.LISTS_OF_ENTRIES["release"]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_split_at_commas_and_lines(text: str) -> None:
    assert variables.entries_of(text) == ["east", "west"]
    run = run_of(summary_expected=text)
    assert reports.hosts_named(run, "summary_expected") == ["east", "west"]
    assert enforcement.roles({"enforce_roles": text}, lambda value: value) == ["east", "west"]
    findings = [{"id": name, "status": "drift", "service": "ci", "kind": "job"} for name in "ab"]
    chosen = adoption.chosen([{**one, "name": "x"} for one in findings], "a,\nb")
    assert [one["id"] for one in chosen] == ["a", "b"]


@pytest.mark.parametrize("given", [1.5, True, {"east": 1}, [["east"]]])
def test_other_values_are_no_hosts(given: Any) -> None:
    with pytest.raises(bookkeeping.StepError, match=r"^summary_expected must be a list of names"):
        reports.hosts_named(run_of(summary_expected=given), "summary_expected")


@pytest.mark.parametrize("given", [" , ", "\n", []])
def test_no_id_is_not_the_whole_plan(given: Any) -> None:
    run = run_of(enforce_plan={}, enforce_only=given)
    with pytest.raises(bookkeeping.StepError, match="enforce_only is an empty list"):
        bookkeeping.perform("open_plan", run, {})


@pytest.mark.parametrize("name", RELEASE)
@pytest.mark.parametrize("given", ["one, two", {"job": "a"}, 7, True])
def test_release_refuses_a_text_for_entries(name: str, given: Any) -> None:
    with pytest.raises(bookkeeping.StepError, match=rf"^{name} must be a list of entries"):
        bookkeeping.perform("check", run_of(**{name: given}), {"of": "release"})
    for fine in (None, "", [], [{"job": "a"}]):
        bookkeeping.perform("check", run_of(**{name: fine}), {"of": "release"})


def test_every_list_of_the_release_is_checked() -> None:
    text = (ROOT / "playbooks" / "release.yml").read_text("utf-8")
    listed = set(re.findall(r"(release_\w+) \| default\(\[\], true\)", text))
    assert listed == set(RELEASE)
