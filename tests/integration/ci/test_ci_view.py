# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `ci_view` against the views of the sandbox's CI server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_view import (
    CiViewOperation,
    CiViewOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.client import Sandbox
from tests.helpers.ci import Ci

CONFIG = """<hudson.model.ListView><name>Whole</name><filterQueue>true</filterQueue>
<jobNames><string>b</string><string>a</string></jobNames></hudson.model.ListView>"""


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"), CiViewOperation, CiViewOptions)


@pytest.mark.parametrize("place", [{}, {"folder": "delivery"}])
def test_view_is_created_updated_and_deleted(ci: Ci, place: dict[str, Any]) -> None:
    created = ci.lives(name="V", **place)
    assert created["view"]["jobs"] == []
    assert created["diff"] == ({}, {"description": "", "jobs": [], "regex": ""})
    assert ci.lives(name="V", jobs=["b", "A"], **place)["view"]["jobs"] == ["A", "b"]
    # blanks around a value are no part of it
    assert not ci.run(name="V", jobs=["A ", "b"], description=" ", **place)["changed"]
    assert ci.lives(name="V", regex="x.* ", description="Text ", **place)["view"]["jobs"] == [
        "A",
        "b",
    ]
    assert ci.lives(name="V", jobs=[], regex="", **place)["view"]["description"] == "Text"
    assert ci.lives(name="V", state="absent", **place)["changed"]


@pytest.mark.parametrize("place", [{}, {"folder": "delivery"}])
def test_jobs_that_do_not_exist_are_a_warning(ci: Ci, place: dict[str, Any]) -> None:
    given = {"name": "V", "jobs": ["TOOLCHAIN" if place else "No-parameters", "typo"], **place}
    for check in (True, False):
        ci.run(check=check, **given)
        (warning,) = ci.warnings
        assert "jobs: 'typo' does not exist, or the account cannot see it" in warning
    ci.run(**given)
    assert ci.warnings == []


def test_complete_configuration_is_compared(ci: Ci) -> None:
    assert ci.lives(name="Whole", config=CONFIG)["view"]["jobs"] == ["a", "b"]
    assert ci.lives(name="Whole", config=CONFIG.replace(">true<", ">false<"))["changed"]
    ci.fails("invalid", "Whole", name="Other", config=CONFIG)
    ci.fails("invalid", "config", name="V", config="<a")
    ci.fails("invalid", "jobs", name="Whole", config=CONFIG, jobs=["a"])
    with pytest.raises(ToolchainError, match="500"):
        ci.run(name="X", config="<a.b.C/>")
    dropped = CONFIG.replace("<jobNames>", "<colour>red</colour><jobNames>")
    with pytest.raises(ToolchainError, match="colour"):
        ci.run(name="Whole", config=dropped)


def test_inner_views_of_others_stay(ci: Ci) -> None:
    nested = "hudson.plugins.nested__view.NestedView"
    config = f"<{nested}><name>O</name><description>old</description></{nested}>"
    ci.lives(name="O", config=config)
    inner = "<views><hudson.model.ListView><name>theirs</name></hudson.model.ListView></views>"
    sent = ci.text("view/O/config.xml").partition("?>")[2].replace("</name>", f"</name>{inner}")
    ci.text("view/O/config.xml", "POST", data=sent, headers={"Content-Type": "application/xml"})
    assert "theirs" in ci.text("view/O/config.xml")
    assert not ci.run(name="O", config=config)["changed"]
    assert ci.lives(name="O", config=config.replace("old", "new"))["changed"]
    assert "theirs" in ci.text("view/O/config.xml")


def test_configuration_is_read_from_a_file(ci: Ci, tmp_path: Path) -> None:
    file = tmp_path / "Whole.xml"
    file.write_text(CONFIG, "utf-8")
    assert ci.lives(name="Whole", src=str(file))["view"]["jobs"] == ["a", "b"]
    assert not ci.run(entries=[{"name": "Whole", "src": str(file)}])["changed"]
    ci.fails("invalid", "jobs", "src", name="Whole", src=str(file), jobs=["a"])
    ci.fails("invalid", "config and src", name="Whole", src=str(file), config=CONFIG)
    ci.fails("invalid", "src", name="Whole", src=str(file), state="absent")


def test_primary_view_is_not_deleted(ci: Ci) -> None:
    ci.fails("invalid", "primary", name="all", state="absent")
    ci.fails("conflict", "AllView", name="all", jobs=["a"])


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"name": "a/b"}, "invalid"),
        ({"name": "V", "state": "absent", "regex": "x"}, "invalid"),
        ({"name": "V", "folder": ".."}, "invalid"),
        ({"name": "V", "folder": "nope"}, "not_found"),
        ({"name": "V", "folder": "no-parameters"}, "not_found"),
    ],
)
def test_invalid_options_are_rejected(ci: Ci, given: dict[str, Any], kind: str) -> None:
    ci.fails(kind, **given)


def test_view_of_another_class_is_a_conflict(ci: Ci) -> None:
    ci.run(name="V", jobs=[])
    other = "<hudson.model.AllView><name>V</name></hudson.model.AllView>"
    ci.fails("conflict", "'V' is a hudson.model.ListView", "AllView", name="V", config=other)


def test_unknown_class_of_a_view_hints_at_a_plugin(ci: Ci) -> None:
    with pytest.raises(ToolchainError, match=r"the class x\.MyView may be missing"):
        ci.run(name="W", config="<x.MyView/>")


def test_many_views_are_managed_in_one_task(ci: Ci) -> None:
    entries: list[dict[str, Any]] = [
        {"name": "One", "jobs": ["a"], "description": "x"},
        {"name": "Two", "folder": "delivery", "regex": "x.*"},
        {"name": "Whole", "config": CONFIG},
    ]
    done = ci.lives(entries=entries)
    assert [result["name"] for result in done["results"]] == ["One", "delivery/Two", "Whole"]
    gone = [{"name": "One", "state": "absent"}]
    assert ci.lives(entries=gone)["results"][0]["action"] == "deleted"
