# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the workflows, the form for bugs and the owners: what the forge runs, and with which rights."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import matrix, tree

FORGE = tree.ROOT / ".github"
WORKFLOWS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
    for path in sorted((FORGE / "workflows").glob("*.yml"))
}
JOBS = [
    pytest.param(job, id=f"{name}-{key}")
    for name, workflow in WORKFLOWS.items()
    for key, job in workflow["jobs"].items()
]
RELEASE = WORKFLOWS["release"]["jobs"]
#: Every right of a job, except reading the repository.
RIGHTS = {
    ("release", "attest"): {"attestations": "write", "id-token": "write"},
    ("release", "publish"): {"attestations": "read"},
    ("release", "announce"): {"contents": "write"},
}


def pairs(workflow: str) -> list[str]:
    included = WORKFLOWS[workflow]["jobs"]["pairs"]["strategy"]["matrix"]["include"]
    return [f"{each['release']}-{each['python']}" for each in included]


def commands(job: dict[str, Any]) -> list[str]:
    return [step["run"] for step in job["steps"] if "run" in step]


def test_pull_request_runs_the_oldest_and_the_newest_supported_pair() -> None:
    assert pairs("test") == list(matrix.SUPPORTED)
    assert "pull_request" in WORKFLOWS["test"]["on"]
    assert commands(WORKFLOWS["test"]["jobs"]["checks"]) == ["make test"]


def test_night_runs_everything() -> None:
    assert pairs("nightly") == list(matrix.PAIRS)
    assert commands(WORKFLOWS["nightly"]["jobs"]["checks"]) == [".ci/run"]


@pytest.mark.parametrize("job", JOBS)
def test_actions_are_pinned(job: dict[str, Any]) -> None:
    for used in [job.get("uses"), *(step.get("uses") for step in job.get("steps", []))]:
        assert (
            not used or used.startswith("./") or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", used)
        )


def test_pins_of_an_action_are_equal_and_name_their_version() -> None:
    pins: dict[str, set[str]] = {}
    for path in (FORGE / "workflows").glob("*.yml"):
        for action, pin in re.findall(r"uses: (\w\S+)@(.*)", path.read_text(encoding="utf-8")):
            pins.setdefault(action, set()).add(pin)
    assert pins
    for each in pins.values():
        (pin,) = each
        assert re.fullmatch(r"[0-9a-f]{40}  # v\d+\.\d+\.\d+", pin)


def rights() -> Iterator[tuple[str, str, dict[str, str]]]:
    for name, workflow in WORKFLOWS.items():
        assert workflow["permissions"] == {}, name
        for key, job in workflow["jobs"].items():
            yield name, key, job["permissions"]


def test_jobs_have_only_the_rights_that_they_need() -> None:
    found = {
        (name, key): more
        for name, key, given in rights()
        if (more := dict(given.items() - {"contents": "read"}.items()))
    }
    assert found == RIGHTS


def test_code_of_the_checkout_never_runs_with_the_right_to_write() -> None:
    for name, key, given in rights():
        if "write" in given.values():
            steps = WORKFLOWS[name]["jobs"][key]["steps"]
            used = [step.get("uses", "").partition("@")[0] for step in steps]
            assert "actions/checkout" not in used, (name, key)


def test_checkout_leaves_no_token_behind() -> None:
    for workflow in WORKFLOWS.values():
        for job in workflow["jobs"].values():
            for step in job.get("steps", []):
                if step.get("uses", "").startswith("actions/checkout@"):
                    assert step["with"]["persist-credentials"] is False


def test_expressions_are_not_part_of_a_script() -> None:
    """A name of a branch or tag in a script would be a command of whoever chose the name."""
    for name, workflow in WORKFLOWS.items():
        for job in workflow["jobs"].values():
            for script in commands(job) if "steps" in job else ():
                assert "${{" not in script, name


def test_tag_is_published_after_all_checks() -> None:
    assert WORKFLOWS["release"]["on"] == {"push": {"tags": ["*"]}}
    assert RELEASE["checks"]["uses"] == "./.github/workflows/nightly.yml"
    assert "workflow_call" in WORKFLOWS["nightly"]["on"]
    order = ["tag", "checks", "build", "attest", "publish", "announce"]
    assert list(RELEASE) == order
    for before, after in itertools.pairwise(order):
        assert RELEASE[after]["needs"] == before
        # `if` could run a job although an earlier one failed
        assert "if" not in RELEASE[after]


def test_secret_is_in_the_upload_of_the_protected_environment_only() -> None:
    holders = [
        (name, key, job.get("environment", {}).get("name"), step.get("name"))
        for name, workflow in WORKFLOWS.items()
        for key, job in workflow["jobs"].items()
        for step in [{**job, "steps": None, "name": None}, *job.get("steps", [])]
        if "secrets" in str(step)
    ]
    assert holders == [("release", "publish", "galaxy", "Upload the archive to Galaxy")]
    assert "GALAXY" not in "".join(commands(RELEASE["publish"]))


def test_published_archive_is_the_attested_build() -> None:
    build, attest, publish = (RELEASE[name]["steps"] for name in ("build", "attest", "publish"))
    assert build[2]["run"] == "make build"
    assert build[3]["with"] == {"name": "dist", "path": "dist/", "if-no-files-found": "error"}
    assert attest[1]["with"] == {"subject-path": "dist/*.tar.gz"}
    verify, upload = publish[-2]["run"], publish[-1]["run"]
    assert "sha256sum --check" in verify
    assert "gh attestation verify" in verify
    assert upload.endswith('collection publish "dist/delivery-toolchain-$TAG.tar.gz"')


@pytest.mark.parametrize(
    ("tag", "merged", "error"),
    [
        ("1.0.0", True, None),
        ("v1.0.0", True, "The tag is v1.0.0, but galaxy.yml has version 1.0.0"),
        ("1.0", True, "The tag is 1.0, but galaxy.yml has version 1.0.0"),
        ("1.0.0", False, "The tag 1.0.0 is not on the branch main"),
    ],
)
def test_tag_is_the_version_of_a_merged_commit(
    tag: str, merged: bool, error: str | None, tmp_path: Path
) -> None:
    (script,) = commands(RELEASE["tag"])
    (tmp_path / "galaxy.yml").write_text("name: toolchain\nversion: 1.0.0\n", encoding="utf-8")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-C", str(tmp_path)]
    branch = "refs/remotes/origin/main"
    steps = [
        ["init", "-q"],
        ["add", "."],
        ["commit", "-qm", "1.0.0"],
        ["update-ref", branch, "HEAD"],
    ]
    if not merged:
        steps.append(["commit", "-qm", "Not merged", "--allow-empty"])
    for step in steps:
        subprocess.run([*git, *step], check=True)
    done = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "TAG": tag},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (1 if error else 0), done.stderr
    assert (f"::error::{error}" if error else "") in done.stdout


def test_form_asks_for_what_a_report_needs() -> None:
    form = yaml.safe_load((FORGE / "ISSUE_TEMPLATE" / "bug.yml").read_text(encoding="utf-8"))
    fields = {element["id"]: element for element in form["body"] if "id" in element}
    required = [
        name for name, field in fields.items() if field.get("validations", {}).get("required")
    ]
    assert required == ["server", "product", "collection", "core", "task", "expected", "output"]
    assert "-vvv" in fields["output"]["attributes"]["label"]
    assert "Everybody can read this issue" in form["body"][0]["attributes"]["value"]
    assert fields["secrets"]["attributes"]["options"][0]["required"] is True


def test_form_asks_for_a_recording_that_somebody_has_read() -> None:
    form = yaml.safe_load((FORGE / "ISSUE_TEMPLATE" / "server.yml").read_text(encoding="utf-8"))
    fields = {element["id"]: element for element in form["body"] if "id" in element}
    assert list(fields) == ["server", "version", "table", "recording", "checked"]
    required = [name for name, field in fields.items() if field.get("validations")]
    assert required == ["server", "version", "table", "recording"]
    assert fields["checked"]["attributes"]["options"][0]["required"] is True
    assert "docs/recording.md" in form["body"][0]["attributes"]["value"]


def test_vulnerabilities_go_another_way() -> None:
    chooser = yaml.safe_load((FORGE / "ISSUE_TEMPLATE" / "config.yml").read_text(encoding="utf-8"))
    assert chooser["contact_links"][0]["url"].endswith("/security/policy")


def test_every_path_with_an_owner_exists() -> None:
    lines = (FORGE / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    rules = [line.split() for line in lines if not line.startswith("#")]
    assert rules[0][0] == "*"
    for pattern, *owners in rules[1:]:
        assert list(tree.ROOT.glob(pattern.strip("/"))), pattern
        assert owners == ["@delivery-toolchain/administrators"]
