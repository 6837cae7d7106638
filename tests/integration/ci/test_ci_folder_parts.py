# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that `ci_job` leaves the credentials and views of a folder to their own modules."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.credentials import (
    ci_credential,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import (
    ci_job,
    ci_job_info,
    ci_view,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server import ci_export
from sandbox.client import Sandbox
from tests.helpers.ci import Ci
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run

FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
MULTIBRANCH = "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject"
SECRET = "never-in-a-file-1"
STORE = "job/team/credentials/store/folder/domain/_"


def _config(root: str, text: str) -> str:
    return f"<{root}><description>{text}</description><properties/></{root}>"


@pytest.fixture
def jobs(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"), ci_job.CiJobOperation, ci_job.CiJobOptions)


def _add_parts(jobs: Ci, *, view: bool = True) -> None:
    """Add a credential and a view to the folder `team`, as other users would."""
    stored = Ci(
        jobs.sandbox, ci_credential.CiCredentialOperation, ci_credential.CiCredentialOptions
    )
    stored.run(id="deploy", folder="team", kind="secret_text", secret=SECRET)
    if view:
        views = Ci(jobs.sandbox, ci_view.CiViewOperation, ci_view.CiViewOptions)
        views.run(name="Mine", folder="team", regex="x.*")


def _parts(text: str) -> list[str]:
    return re.findall(
        r"<domainCredentialsMap.*</domainCredentialsMap>|<views>.*</views>", text, re.DOTALL
    )


@pytest.mark.parametrize("root", [FOLDER, MULTIBRANCH])
def test_a_write_keeps_the_credentials_and_views_of_a_folder(jobs: Ci, root: str) -> None:
    jobs.lives(job="team", config=_config(root, "old"))
    _add_parts(jobs, view=root == FOLDER)
    before = jobs.text("job/team/config.xml")
    assert "FolderCredentialsProperty" in before
    since = jobs.sandbox.mark()
    same = jobs.run(job="team", config=_config(root, "old"))
    assert (same["changed"], same["differences"], jobs.warnings) == (False, [], [])
    assert jobs.writes(since) == []
    changed = jobs.lives(job="team", config=_config(root, "new"))
    assert changed["differences"] == ["description"]
    assert "Credentials" not in "".join(changed["diff"])
    after = jobs.text("job/team/config.xml")
    # also the encrypted secret is the same
    assert _parts(after) == _parts(before)
    assert "deploy" in jobs.text(f"{STORE}/credential/deploy/config.xml")


def test_a_credential_that_is_added_between_plan_and_write_stays(jobs: Ci) -> None:
    jobs.lives(job="team", config=_config(FOLDER, "old"))
    run = Run(jobs.sandbox.urls["ci"], token=jobs.token, username=jobs.username)
    options = options_of(ci_job.CiJobOptions, job="team", config=_config(FOLDER, "new"))
    operation = ci_job.CiJobOperation(run.task, options)
    plan = operation.plan()
    _add_parts(jobs)
    assert operation.apply(plan) == {}
    text = jobs.text("job/team/config.xml")
    for part in (">new<", "<id>deploy</id>", "<name>Mine</name>"):
        assert part in text


def test_a_configuration_with_a_deleted_credential_is_no_failure(jobs: Ci) -> None:
    jobs.lives(job="team", config=_config(FOLDER, "old"))
    _add_parts(jobs)
    described = jobs.text("job/team/config.xml")
    jobs.text(f"{STORE}/credential/deploy/doDelete", "POST")
    jobs.text("job/team/view/Mine/doDelete", "POST")
    assert not jobs.run(job="team", config=described)["changed"]
    named = "the credential 'deploy', the view 'Mine'"
    assert [named in warning for warning in jobs.warnings] == [True]
    assert jobs.lives(job="team", config=described.replace(">old<", ">new<"))["changed"]
    assert "deploy" not in jobs.text("job/team/config.xml")


def test_an_exported_folder_can_be_created_again(jobs: Ci, tmp_path: Path) -> None:
    jobs.lives(job="team", config=_config(FOLDER, "old"))
    _add_parts(jobs)
    export = Ci(jobs.sandbox, ci_export.CiExportOperation, ci_export.CiExportOptions)
    export.run(dest=str(tmp_path), jobs=["team"], plugins=False, configuration=False)
    entries = yaml.safe_load((tmp_path / "ci.yml").read_text())
    assert "deploy" in [entry["id"] for entry in entries["credentials"]]
    assert [entry["name"] for entry in entries["views"]] == ["Mine"]
    src = tmp_path / entries["jobs"][0]["src"]
    assert SECRET not in src.read_text()
    for word in ("FolderCredentialsProperty", "ListView", "kept by the server"):
        assert word not in src.read_text()
    infos = Ci(jobs.sandbox, ci_job_info.CiJobInfoOperation, ci_job_info.CiJobInfoOptions)
    assert infos.run(job="team", expected_config=src.read_text())["config_drift"] is False
    jobs.run(job="team", state="absent", folder=True, force=True)
    assert jobs.lives(job="team", src=str(src), folder=True)["changed"]
    assert jobs.warnings == []


def test_an_older_export_creates_the_folder_without_the_secrets_that_it_lacks(jobs: Ci) -> None:
    jobs.lives(job="team", config=_config(FOLDER, "old"))
    _add_parts(jobs)
    text = jobs.text("job/team/config.xml")
    encrypted = text.split("<secret>")[1].split("</secret>")[0]
    jobs.run(job="team", state="absent", folder=True, force=True)
    older = text.replace(encrypted, "(kept by the server)")
    done = jobs.run(job="team", config=older)
    assert done["changed"]
    assert ["the credential 'deploy'" in warning for warning in jobs.warnings] == [True]
    assert "<name>Mine</name>" in jobs.text("job/team/config.xml")
    assert not jobs.run(job="team", config=older)["changed"]
