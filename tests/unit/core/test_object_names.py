# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the names of objects that several options identify."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.object_names import (
    object_name,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import descriptors
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.adoption import entry_name
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.desired_state import (
    key_of,
    name_of,
)
from tests.helpers.reported import reporting

ASSIGNMENT = ("name", "account", "project", "group")
CREDENTIAL = ("folder", "domain", "id")


@pytest.mark.parametrize(
    ("key", "values", "expected"),
    [
        (ASSIGNMENT, {"name": "admin", "account": "qa", "group": False}, "admin/qa"),
        (ASSIGNMENT, {"name": "admin", "account": "qa", "group": True}, "admin/group:qa"),
        (ASSIGNMENT, {"name": "admin", "account": "group:qa"}, "admin/group%3Aqa"),
        (ASSIGNMENT, {"name": "admin", "account": "qa/p"}, "admin/qa%2Fp"),
        (ASSIGNMENT, {"name": "admin", "account": "qa", "project": "p"}, "admin/qa/p"),
        (CREDENTIAL, {"folder": "team/inner", "domain": "_", "id": "x"}, "team/inner/x"),
        (CREDENTIAL, {"folder": "", "domain": "team", "id": "x"}, "domain:team/x"),
        (CREDENTIAL, {"folder": None, "domain": None, "id": "team/x"}, "team%2Fx"),
        (("project", "name"), {"project": "a/b", "name": "c"}, "a%2Fb/c"),
        (("project", "name"), {"project": "a", "name": "b/c"}, "a/b/c"),
        (("job",), {"job": "/a/b"}, "/a/b"),
        (("job",), {"job": ["a", "b"]}, "a/b"),
        (("name",), {"name": "100%"}, "100%"),
    ],
)
def test_name(key: tuple[str, ...], values: Mapping[str, Any], expected: str) -> None:
    assert object_name(key, values) == expected


_TEXT = st.text(alphabet="ab/%:25F_", min_size=1, max_size=6)
_FOLDER = st.sampled_from([None, "a", "a/b", "b"])
_ASSIGNMENTS = st.fixed_dictionaries(
    {"name": _TEXT, "account": _TEXT, "group": st.booleans()},
    optional={"project": _TEXT},
)
_CREDENTIALS = st.fixed_dictionaries(
    {"id": _TEXT}, optional={"folder": _FOLDER, "domain": _TEXT.filter(lambda text: text != "_")}
)
_IN_PROJECTS = st.fixed_dictionaries({"project": _TEXT, "name": _TEXT})


@given(
    st.one_of(
        st.tuples(st.just(ASSIGNMENT), _ASSIGNMENTS, _ASSIGNMENTS),
        st.tuples(st.just(CREDENTIAL), _CREDENTIALS, _CREDENTIALS),
        st.tuples(st.just(("project", "name")), _IN_PROJECTS, _IN_PROJECTS),
    )
)
@settings(max_examples=100, deadline=None)
def test_two_objects_have_two_names(
    case: tuple[tuple[str, ...], dict[str, Any], dict[str, Any]],
) -> None:
    key, one, other = case
    same = all(one.get(option) == other.get(option) for option in key)
    assert (object_name(key, one) == object_name(key, other)) == same


#: Two objects of each kind, whose values without their options are equal.
TWINS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "analysis_role_assignment": (
        {"name": "admin", "account": "qa", "group": True},
        {"name": "admin", "account": "qa", "group": False},
    ),
    "analysis_module": ({"project": "a/b", "name": "c"}, {"project": "a", "name": "b/c"}),
    "analysis_view": ({"project": "a/b", "name": "c"}, {"project": "a", "name": "b/c"}),
    "analysis_build": ({"project": "a/b", "name": "c"}, {"project": "a", "name": "b/c"}),
    "analysis_defect_type": ({"project": "a/b", "code": "c"}, {"project": "a", "code": "b/c"}),
    "ci_credential": ({"folder": "a", "id": "x"}, {"domain": "a", "id": "x"}),
    "ci_view": ({"folder": "a", "name": "x"}, {"name": "x"}),
    "ci_token": ({"token_username": "bob", "name": "x"}, {"name": "x"}),
    "repo_token": ({"token_username": "bob", "name": "x"}, {"name": "x"}),
    "build_promote": (
        {"project": "p", "build_name": "b", "build_number": "1"},
        {"build_name": "b", "build_number": "1"},
    ),
    "build_publish": (
        {"project": "p", "build_name": "b", "build_number": "1"},
        {"build_name": "b", "build_number": "1"},
    ),
    "build_record": (
        {"project": "p", "build_name": "b", "build_numbers": ["1"]},
        {"build_name": "b", "build_numbers": ["1"]},
    ),
    **{
        module: (
            {"project": "p", "name": "b", "version": "1"},
            {"repository": "p", "name": "b", "version": "1"},
        )
        for module in ("release_bundle", "release_bundle_promote", "release_bundle_distribute")
    },
}


@pytest.mark.parametrize("module", TWINS)
def test_tasks_of_two_objects_have_two_names(module: str) -> None:
    one, other = (descriptors.descriptor_of(module).name_of(values) for values in TWINS[module])
    assert one
    assert other
    assert one != other


def test_findings_exports_and_files_use_the_same_name() -> None:
    """Verify a user and a group of one name, which each have a role."""
    entries = [{"name": "admin", "account": "qa", "group": group} for group in (False, True)]
    plan = [
        {"kind": "role_assignments", "name": "admin/group:qa", "action": "create", "changes": []}
    ]
    counts = {"unchanged": 1}
    values = {"plan": plan, "counts": counts}
    found = reporting("analysis_config", values, {"role_assignments": entries})["findings"]
    assert [(one["name"], one.get("action")) for one in found] == [
        ("admin/group:qa", "create"),
        ("admin/qa", None),
    ]
    key = key_of("analysis", "role_assignments")
    for entry, name in zip(entries, ("admin/qa", "admin/group:qa"), strict=True):
        assert name_of(entry, key) == entry_name("analysis", "role_assignments", entry) == name
