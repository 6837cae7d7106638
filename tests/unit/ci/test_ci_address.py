# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.job_address import (
    job_of,
    same_job,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)

BASE = "https://ci.example.com/jenkins"
NAMES = st.text("abÄ /?#[]\\%+&'. x", min_size=1, max_size=12).filter(
    lambda name: name.strip() not in ("", ".", "..")
)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("job", "job/job"),
        ("folder/job", "job/folder/job/job"),
        ("/folder/job/", "job/folder/job/job"),
        ("my folder/größe", "job/my%20folder/job/gr%C3%B6%C3%9Fe"),
        (["delivery", "service", "feature/x"], "job/delivery/job/service/job/feature%252Fx"),
        (["service", "feature%2Fx"], "job/service/job/feature%252Fx"),
        ("service/feature%2Fx", "job/service/job/feature%252Fx"),
        (["service", "fix#12 100%"], "job/service/job/fix%252312%20100%2525"),
        (f"{BASE}/job/service/job/feature%252Fx/", "job/service/job/feature%252Fx"),
        ("https://CI.example.com:443/jenkins/job/a", "job/a"),
        (f"{BASE}/view/all/job/a/view/my%20view/job/b%20c", "job/a/job/b%20c"),
        ("https://user:secret@ci.example.com/jenkins/job/a/", "job/a"),
    ],
)
def test_job_is_found_in_every_notation(given: Any, path: str) -> None:
    assert job_of(given, BASE).path == path


@pytest.mark.parametrize(
    "given",
    [
        "",
        "/",
        "a//b",
        "a/../b",
        [],
        ["a", ""],
        ["a", ".."],
        ["a", None],
        "a*",
        "a?b",
        ["x%2Fy", "a"],
        "a/b:c",
        ["a", "b^"],
        "a\tb",
        [["a"]],
        {"a": 1},
        True,
        1.5,
        f"{BASE}/",
        f"{BASE}/job/",
        f"{BASE}/job/a/12/",
        f"{BASE}/job/a/job/%2E%2E/",
        f"{BASE}/computer/x",
        "https://ci.example.com/job/a",
        "https://ci.example.com/jenkinsx/job/a",
        "http://ci.example.com/jenkins/job/a",
        "https://other.example.com/jenkins/job/a",
        "https://ci.example.com:port/jenkins/job/a",
    ],
)
def test_job_of_another_server_is_rejected(given: Any) -> None:
    with pytest.raises(ToolchainError) as caught:
        job_of(given, BASE, "copy_from")
    assert caught.value.kind == "invalid"
    assert "copy_from" in caught.value.message


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_url_and_names_mean_the_same_job(names: list[str]) -> None:
    names = ["project", *names]
    job = job_of(names, BASE)
    assert job.path.count("/") == 2 * len(names) - 1
    assert job_of(f"{BASE}/{job.path}/", BASE).path == job.path
    assert same_job(f"http://inner:8080/{job.path}/", job)


def test_equally_named_job_in_a_folder_is_different() -> None:
    job = job_of("b", BASE)
    assert same_job("http://inner/ci/job/b/", job)
    assert not same_job("http://inner/ci/job/a/job/b/", job)
    assert not same_job(None, job)
