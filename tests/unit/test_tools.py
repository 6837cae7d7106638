# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the jobs of `make test`: their counts, and their environment variables."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers import installed
from tools import check, tree

REPORT = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'


JOBS = """\
run = @python -m tools.job $@ $(OUT)
good:
	$(run) echo said
bad:
	$(run) sh -c "echo why; exit 3"
settings:
	@env
stray:
	$(run) sh -c 'sleep 600 & echo $$! >$(OUT)/stray.pid'
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for `check.run`, with four test jobs instead of the jobs of the project."""
    tree.link_tree(tmp_path / "collections")
    jobs = tmp_path / "jobs.mk"
    jobs.write_text(JOBS, encoding="utf-8")
    monkeypatch.setattr(check, "JOBS", jobs)
    return tmp_path


def test_jobs_continue_after_a_failure(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert check.run(["bad", "good"], folder, 1) != 0
    lines = [re.sub(r"\d+ s", "N s", line) for line in capfd.readouterr().out.splitlines()]
    assert lines == [
        "=== bad: started",
        "why",
        "=== bad: FAILED with status 3 after N s (N s of processor time)",
        "=== good: started",
        "=== good: passed after N s (N s of processor time)",
    ]
    assert check.summarize(folder / "out") == (1, 1)
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["bad", "FAILED"], ["good", "passed"]]
    assert lines[2].endswith(" s of processor time")


def test_unknown_job_is_reported(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert check.run(["good", "units"], folder, 1) != 0
    assert "No rule to make target 'units'" in capfd.readouterr().err


def test_no_process_of_a_job_survives(folder: Path) -> None:
    assert check.run(["stray"], folder, 1) == 0
    pid = int((folder / "out" / "stray.pid").read_text(encoding="utf-8"))
    for _attempt in range(1000):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.05)
    pytest.fail(f"process {pid} is still running")


def test_settings_of_the_caller_do_not_reach_jobs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLCHAIN_REPO_TOKEN", "a-token")
    monkeypatch.setenv("ANSIBLE_STRATEGY", "debug")
    assert check.run(["settings"], folder, 1) == 0
    names = {line.partition("=")[0] for line in capfd.readouterr().out.splitlines()}
    assert "PATH" in names
    assert names.isdisjoint({"TOOLCHAIN_REPO_TOKEN", "ANSIBLE_STRATEGY"})


@pytest.mark.parametrize(
    ("numbers", "status", "expected"),
    [
        ((7, 0, 0, 0), 0, (7, 0)),
        ((7, 2, 1, 0), 1, (4, 3)),
        ((7, 0, 0, 2), 0, (5, 0)),
        # no test found, or an error of pytest itself
        ((0, 0, 0, 0), 5, (0, 1)),
    ],
)
def test_individual_tests_are_counted(
    tmp_path: Path, numbers: tuple[int, int, int, int], status: int, expected: tuple[int, int]
) -> None:
    report = tmp_path / "unit.xml"
    report.write_text(REPORT.format(*numbers), encoding="utf-8")
    assert check.counts(status, report) == expected


def test_every_job_has_a_group_and_writes_its_status() -> None:
    asked = ["make", "--dry-run", f"--file={check.JOBS}", "OUT=/out", "test", "rest"]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    jobs = set(re.findall(r"home=/out/(\S+);", text))
    rules = re.findall(r"(?m)^([a-z][a-z -]*):$", check.JOBS.read_text(encoding="utf-8"))
    assert jobs == {name for rule in rules for name in rule.split()}
    assert jobs == set(re.findall(r"tools\.job (\S+) /out ", text))


def test_linked_tree_shows_the_checkout(tmp_path: Path) -> None:
    link = tree.link_tree(tmp_path / "tree")
    assert link.resolve() == tree.ROOT
    assert (link / "galaxy.yml").is_file()


def test_program_without_package_is_skipped_and_a_lost_one_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installed, "_ROOT", tmp_path)
    places = {"apt-get": "/usr/bin/apt-get", "dpkg-deb": "/usr/bin/dpkg-deb"}
    monkeypatch.setattr(shutil, "which", lambda name, path=None: places.get(name))
    with pytest.raises(RuntimeError, match="browser is missing: run tools/third_party"):
        installed.program("browser")
    (tmp_path / "missing").write_text("browser\n", encoding="utf-8")
    assert installed.program("browser") is None


def test_missing_or_old_node_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installed, "_NODE", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    system = tmp_path / "node"
    for version in ("", "v18.20.4"):
        if version:
            system.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
            system.chmod(0o755)
        with pytest.raises(RuntimeError, match=r"Node.js 20 or newer is missing: run tools/third_"):
            installed.node()
    system.write_text("#!/bin/sh\necho v20.1.0\n", encoding="utf-8")
    assert installed.node() == system
