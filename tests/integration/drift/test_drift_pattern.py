# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the pattern for drift on a clone of a repository, with the answers of its survey."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

PATTERN = Path(__file__).parents[3] / "extensions/patterns/report_drift/playbooks/site.yml"
VERSIONS = "versions:\n  - project: REL\n    name: '9.1'\n"


def test_drift_of_a_repository_fails_the_job(
    fresh: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    login = connections.connection("tracker", fresh("real").urls["tracker"])
    repository = tmp_path / "repository"
    (repository / "state").mkdir(parents=True)
    (repository / "state" / "tracker.yml").write_text(VERSIONS, encoding="utf-8")
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for command in (
        ("init", "-q", "-b", "stable"),
        ("add", "."),
        (*identity, "commit", "-qm", "x"),
    ):
        subprocess.run(("git", *command), cwd=repository, check=True)
    answers = {
        "pattern_repository": str(repository),
        "pattern_version": "stable",
        "pattern_folder": "state",
        "survey_desired_state_environment": "",
        "survey_desired_state_unmanaged": "ignore",
        "survey_drift_fail": "true",
        "enforce_connections": {"tracker": login},
    }
    # without a file of the user's own, git accepts the repository of another user of the system
    variables = {**playbook.environment(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    run = playbook.execute([str(PATTERN), "-e", json.dumps(answers)], tmp_path, variables)
    assert run.returncode == 2, run.stdout
    assert "+ version REL/9.1: missing" in run.stdout
    assert "Result: differs" in run.stdout
