# SPDX-License-Identifier: GPL-3.0-or-later
"""Test which builds of a release are known before it begins."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleUndefinedVariable

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping

BUILDS = "{{ builds }}"
LATER = "{{ ci_build_results[0].build.number }}"


def known(given: Any) -> tuple[list[Any], bool]:
    """Return the numbers of the known builds, and whether CI builds may make others known."""

    def template(value: Any) -> Any:
        if LATER in str(value):
            raise AnsibleUndefinedVariable("'ci_build_results' is undefined")
        return [build("app", "1")] if value == BUILDS else value

    run = bookkeeping.Run({"release_builds": given}, template, template)
    result = bookkeeping.perform("known_builds", run, {})
    return [each["build_number"] for each in result["builds"]], result["by_results"]


def build(name: Any, number: Any) -> dict[str, Any]:
    return {"build_name": name, "build_number": number}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ([], False)),
        ("", ([], False)),
        ([], ([], False)),
        ("agent", ([], False)),
        ({"build_name": "app"}, ([], False)),
        (BUILDS, (["1"], False)),
        ([build("app", "1"), build("lib", 2)], (["1", 2], False)),
        ([build("app", ""), build("lib", "2")], (["2"], True)),
        ([build("app", None)], ([], True)),
        ([build("lib", "2"), build("app", LATER)], (["2"], True)),
        # the second entry may be a later promotion of the first one
        ([build("app", "1"), build("app", LATER)], ([], True)),
        ([build("app", "1"), build(LATER, "1")], ([], True)),
        (["app", build("lib", "2")], ([], True)),
        ([build(["app"], ""), build("lib", "2")], (["2"], True)),
    ],
)
def test_known_builds(given: Any, expected: tuple[list[Any], bool]) -> None:
    assert known(given) == expected


def test_number_of_an_earlier_release_is_read_again() -> None:
    """A play before may have left its results."""
    given = [build("app", "1"), {**build("lib", "2"), "comment": "see ci_build_results"}]
    assert known(given) == (["1", "2"], True)
