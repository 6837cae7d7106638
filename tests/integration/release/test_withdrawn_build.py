# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a release whose build was withdrawn fails before its first write [C2.6, C7]."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.helpers import connections, playbook
from tests.integration.release.test_release import Fresh, environment_of, release, withdraw

BUILD = {"build_name": "app", "build_number": "1"}
STAGES = [
    {**BUILD, "status": "tested", "target_repo": "generic-snapshot-local"},
    {**BUILD, "status": "released", "target_repo": "generic-release-local"},
]


def _variables(folder: Path) -> dict[str, Any]:
    file = folder / "app.txt"
    file.write_text("the application", encoding="utf-8")
    return {
        "release_repo": "generic-staging-local",
        "release_files": [{"src": str(file), "path": "app/1.0/"}],
        "release_build_publish": BUILD,
        "release_builds": STAGES,
        "release_images": [
            {
                "repo": "docker-release-local",
                "target_repo": "docker-staging-local",
                "image": "delivery/agent",
                "tag": "1.0.0",
            }
        ],
        "release_version_project": "REL",
        "release_version_name": "1.0",
    }


def test_withdrawn_release_is_repeated_on_purpose_only(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    environment, variables = environment_of(sandbox.urls), _variables(tmp_path)
    first = release(tmp_path, variables, environment=environment)
    assert first.code == 0, first.output
    withdraw(sandbox, tmp_path, BUILD)
    mark = sandbox.mark()
    for arguments in ((), ("--check",)):
        failed = release(tmp_path, variables, *arguments, environment=environment)
        assert failed.code == 2, failed.output
        for words in ("'app' #1 was withdrawn", "release_again: true", "'withdrawn'"):
            assert words in failed.output
    assert sandbox.requests(writes=True, since=mark) == []
    again = {**variables, "release_again": "true"}
    predicted = release(tmp_path, again, "--check", environment=environment)
    done = release(tmp_path, again, environment=environment)
    assert (predicted.code, done.code) == (0, 0), done.output
    assert done.counts["changed"] == predicted.counts["changed"] > 0
    mark = sandbox.mark()
    for known in (variables, again):
        unchanged = release(tmp_path, known, environment=environment)
        assert (unchanged.code, unchanged.counts["changed"]) == (0, 0), unchanged.output
    assert sandbox.requests(writes=True, since=mark) == []


def _promote(folder: Path, defaults: Mapping[str, Any]) -> None:
    """Publish and promote the build, as the release does."""
    repo, path = "generic-staging-local", "app/1.0/app.txt"
    file = {"repo": repo, "path": path, "content": "the application"}
    tasks = [
        playbook.task("artifact_deploy", file, "Deploy"),
        playbook.task(
            "build_publish", {**BUILD, "artifacts": [{"repo": repo, "path": path}]}, "Publish"
        ),
        *(playbook.task("build_promote", stage, stage["status"]) for stage in STAGES),
    ]
    done = playbook.run(folder, [playbook.play(tasks, module_defaults=defaults)])
    assert all(event.result["changed"] for event in done.events), done.output


def test_role_promotes_nothing_if_one_of_its_builds_was_withdrawn(
    fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    _promote(tmp_path, defaults)
    withdraw(sandbox, tmp_path, BUILD)
    for again, code, sent, expected in ((False, 2, 0, {"conflict"}), (True, 0, 3, set())):
        mark = sandbox.mark()
        role = {
            "ansible.builtin.include_role": {"name": "delivery.toolchain.release_promote"},
            "vars": {
                "release_promote_builds": [
                    {"build_name": "agent", "build_number": "12", "status": "tried"},
                    *STAGES,
                ],
                "release_promote_again": again,
            },
        }
        done = playbook.run(tmp_path, [playbook.play([role], module_defaults=defaults)])
        writes = sandbox.requests(writes=True, since=mark)
        assert (done.code, len(writes)) == (code, sent), done.output
        kinds = {
            item["error"]["kind"]
            for event in done.events
            for item in event.result.get("results", ())
            if item.get("failed")
        }
        assert kinds == expected
