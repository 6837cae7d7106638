# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that versions are ordered as on the server itself.

Source of the pairs: the tests of the server's own library (`VersionNumberTest` of
lib-version-number), and versions of plugins as they are released.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.installed_plugins import (
    is_newer,
    is_older,
)

OLDER_THAN = [
    ("2.0", "2.0.*"),
    ("2.0.*", "2.1-SNAPSHOT"),
    ("2.1-SNAPSHOT", "2.1"),
    ("2.0.1", "2.0.*"),
    ("2.0.1-SNAPSHOT", "2.0.1"),
    ("2.0.0.99", "2.0.1-SNAPSHOT"),
    ("2.0.0", "2.0.0.99"),
    ("2.0.ea", "2.0.0"),
    ("2.0.ea", "2.0"),
    ("2.0-alpha-1", "2.0"),
    ("2.0-alpha-1-rc9999.abc123def456", "2.0-alpha-1"),
    ("2.0.ea1", "2.0.ea2"),
    ("2.0.ea", "2.0.ea1"),
    ("1.12-SNAPSHOT (private-08/24/2008 12:13-hudson)", "1.12"),
    ("1.11", "1.12-SNAPSHOT (private-08/24/2008 12:13-hudson)"),
    ("1.11.9", "1.11.*"),
    # its tests expect the opposite order, and note that the library does not have it
    ("1.12-SNAPSHOT", "1.12-rc9999.abc123def456"),
    ("99.v1234deadbeef", "99.5.vabcd1234abcd"),
    ("99.5.vabcd1234abcd", "99.10.vabcd1234abcd"),
    ("99.10.vabcd1234abcd", "100.vdead9876beef"),
    ("200.vabcd1234abcd", "391-ve4a_38c1b_cf4b_"),
    ("3.12.0.0", "3.12.0-44.v1234deadbeef"),
    ("3.12.0-44.v1234deadbeef", "3.12.0-55.v1234deadbeef"),
    ("3.12.0-55.v1234deadbeef", "3.12.1-66.v1234deadbeef"),
    ("2.0.2", "2.0.3-20170207.105042-1"),
    ("2.0.3-20170207.105042-1", "2.0.3"),
    # numbering of plugins
    ("1.2-beta", "1.2"),
    ("1.2-beta", "1.2-rc1"),
    ("1.9", "1.10"),
    ("1.13", "2.0.1"),
    ("1337.v60b_d7b_c7b_c9f", "1371.vfee6b_095f0a_3"),
    ("5.2.2", "600.vb_57cdd26fdd7"),
    ("2.6.4", "123.vabc_def"),
    ("3.0-1", "3.0.1"),
    ("1", "1-1"),
    ("1-1", "1.1"),
    ("1.0-beta2", "1.0-beta10"),
    ("4.1.0", "4.1.0.1"),
]
EQUAL = [
    ("2.0.0", "2.0"),
    ("2.0.ea", "2.0.ea0"),
    ("1.0-a1", "1.0-alpha-1"),
    ("1.12-SNAPSHOT (private-08/24/2008 12:13-hudson)", "1.12-SNAPSHOT"),
    ("2.0.3-20170207.105042-1", "2.0.3-SNAPSHOT"),
    ("1.0.GA", "1.0"),
    ("1.0-CR1", "1.0-rc1"),
    ("1371.vfee6b_095f0a_3", "1371.vfee6b_095f0a_3"),
    ("", ""),
]


@pytest.mark.parametrize(("older", "newer"), OLDER_THAN)
def test_older_version_sorts_first(older: str, newer: str) -> None:
    assert is_older(older, newer)
    assert is_newer(newer, older)
    assert not is_older(newer, older)


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_versions_are_neither_older_nor_newer(one: str, other: str) -> None:
    assert not is_older(one, other)
    assert not is_older(other, one)


def test_qualifiers_are_ordered() -> None:
    names = ("snapshot", "alpha", "beta", "milestone", "rc", "", "sp", "unheard", "unheard-of")
    versions = [f"1.0-{name}" for name in names]
    assert all(is_older(one, other) for one, other in pairwise(versions))


@given(st.text("019.-*abmrcvx_ ", max_size=12), st.text("019.-*abmrcvx_ ", max_size=12))
def test_any_two_strings_have_a_consistent_order(one: str, other: str) -> None:
    assert not (is_older(one, other) and is_older(other, one))
    assert not is_older(one, one)
