# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that tasks in check mode count what earlier tasks of the same run would create."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
Chain = list[tuple[str, dict[str, Any]]]

FILES = [{"repo": "generic-staging-local", "path": "p/new.bin"}]
REPO = {"dialect": "jfrog", "token": "repo-admin-token-1234567890"}
PROJECT = "<project><builders/></project>"
READERS = {"users": ["reporter"], "groups": ["writers"]}
#: Chains of tasks: every task needs the result of the task before it.
CHAINS: dict[str, Chain] = {
    "release": [
        (
            "artifact_deploy",
            {"repo": "generic-staging-local", "path": "p/new.bin", "content": "new"},
        ),
        ("artifact_properties", {**FILES[0], "properties": {"tested": "yes"}}),
        (
            "build_publish",
            {"build_name": "new", "build_number": "1", "artifacts": FILES},
        ),
        (
            "build_promote",
            {
                "build_name": "new",
                "build_number": "1",
                "status": "released",
                "target_repo": "generic-release-local",
                "copy": True,
            },
        ),
        (
            "artifact_copy",
            {**FILES[0], "target_repo": "generic-release-local", "target_path": "copied/new.bin"},
        ),
        (
            "artifact_properties",
            {"repo": "generic-release-local", "path": "p/new.bin", "properties": {"a": "b"}},
        ),
    ],
    "folders": [
        (
            "artifact_deploy",
            {"repo": "generic-staging-local", "path": "p/q/new.bin", "content": "new"},
        ),
        (
            "artifact_copy",
            {
                "repo": "generic-staging-local",
                "path": "p/",
                "target_repo": "generic-release-local",
            },
        ),
        (
            "artifact_properties",
            {
                "repo": "generic-release-local",
                "path": "p",
                "recursive": True,
                "properties": {"a": "b"},
            },
        ),
    ],
    "bundles": [
        (
            "artifact_deploy",
            {"repo": "generic-staging-local", "path": "p/new.bin", "content": "new"},
        ),
        (
            "build_publish",
            {"build_name": "new", "build_number": "1", "artifacts": FILES},
        ),
        (
            "artifact_download",
            {"build_name": "new", "build_number": "1", "dest": "downloaded/"},
        ),
        (
            "release_bundle",
            {
                "name": "new",
                "version": "1",
                "signing_key": "key",
                "sources": {
                    "artifacts": FILES,
                    "builds": [{"build_name": "new", "build_number": "1"}],
                },
            },
        ),
        ("release_bundle_promote", {"name": "new", "version": "1", "environment": "QA"}),
    ],
    "images": [
        (
            "docker_promote",
            {
                "repo": "docker-release-local",
                "target_repo": "docker-staging-local",
                "image": "delivery/agent",
                "tag": "1.0.0",
            },
        ),
        (
            "docker_promote",
            {
                "repo": "docker-staging-local",
                "target_repo": "docker-release-local",
                "image": "delivery/agent",
                "tag": "1.0.0",
                "target_tag": "stable",
            },
        ),
    ],
    "patterns": [
        (
            "artifact_deploy",
            {
                "repo": "generic-staging-local",
                "path": "p/a/new.bin",
                "content": "new",
                "properties": {"qa": "passed"},
            },
        ),
        (
            "artifact_properties",
            {
                "repo": "generic-staging-local",
                "path": "p/**",
                "match_properties": {"qa": "passed"},
                "properties": {"released": "yes"},
            },
        ),
        (
            "artifact_copy",
            {
                "repo": "generic-staging-local",
                "path": "p/*/*.bin",
                "properties": {"released": "yes"},
                "target_repo": "generic-release-local",
            },
        ),
        (
            "artifact_properties",
            {
                "artifacts": [{"repo": "generic-release-local", "path": "p/"}],
                "properties": {"seen": "yes"},
            },
        ),
    ],
    "jobs": [
        ("ci_job", {"job": "new", "folder": True}),
        ("ci_job", {"job": "new/inner", "config": PROJECT}),
        ("ci_job", {"job": "new/inner", "enabled": False}),
        ("ci_job", {"job": "new/built", "config": PROJECT}),
        ("ci_job_build", {"job": "new/built", "wait": False}),
    ],
    "copied jobs": [
        ("ci_job", {"job": "new", "config": PROJECT}),
        ("ci_job", {"job": "copied", "copy_from": "new"}),
    ],
    "repositories": [
        ("repo_repository", {"key": "new", "rclass": "local", "package_type": "generic"}),
        (
            "repo_repository",
            {
                "key": "new-virtual",
                "rclass": "virtual",
                "package_type": "generic",
                "repositories": ["new"],
                "default_deployment_repo": "new",
            },
        ),
        ("artifact_deploy", {"repo": "new-virtual", "path": "a.txt", "content": "a"}),
        (
            "artifact_copy",
            {"repo": "new", "path": "a.txt", "target_repo": "generic-release-local"},
        ),
        (
            "artifact_copy",
            {
                "repo": "generic-snapshot-local",
                "path": "nightly/agent/1.txt",
                "target_repo": "new-virtual",
            },
        ),
    ],
    "spaces": [
        ("wiki_space", {"key": "NEW", "name": "New"}),
        ("wiki_page", {"space": "NEW", "title": "New", "body": "<p>x</p>"}),
    ],
    "components": [
        ("tracker_component", {"project": "REL", "name": "new"}),
        ("tracker_issue", {"issue": "REL-1", "add": {"components": ["new"]}}),
        (
            "tracker_component",
            {"project": "REL", "name": "client", "state": "absent", "move_issues_to": "new"},
        ),
    ],
    "pages": [
        ("wiki_page", {"space": "REL", "title": "New", "body": "<p>x</p>"}),
        (
            "wiki_page",
            {"space": "REL", "title": "Below", "body": "", "parent_id": "{{ run_0.page.id }}"},
        ),
        ("wiki_page", {"space": "REL", "title": "Below", "labels": ["added"]}),
        ("wiki_restriction", {"space": "REL", "title": "Below", "update": READERS}),
        ("wiki_restriction", {"page_id": "{{ run_0.page.id }}", "update": READERS}),
    ],
    "renamed pages": [
        ("wiki_page", {"page_id": "1002", "title": "Renamed"}),
        ("wiki_restriction", {"space": "REL", "title": "Renamed", "update": READERS}),
        ("wiki_page", {"page_id": "1002", "title": "Handbook"}),
        ("wiki_page", {"space": "REL", "title": "Handbook", "labels": ["added"]}),
        ("wiki_page", {"page_id": "1002", "title": "Renamed"}),
        ("wiki_page", {"space": "REL", "title": "Handbook", "body": "<p>x</p>"}),
        ("wiki_page", {"space": "REL", "title": "Renamed", "labels": ["again"]}),
    ],
    "trees": [
        ("wiki_tree", {"src": "tree", "space": "REL", "title_prefix": "New "}),
        ("wiki_restriction", {"space": "REL", "title": "New Below", "update": READERS}),
        ("wiki_page", {"space": "REL", "title": "New Below", "labels": ["added"]}),
    ],
    "versions": [
        ("tracker_version", {"project": "REL", "name": "7.7"}),
        ("tracker_version", {"project": "REL", "name": "7.7", "new_name": "7.8"}),
        (
            "tracker_issue",
            {
                # the tracker rejects a query with an unknown version
                "match": 'fixVersion = "7.8" AND summary ~ nothing',
                "project": "REL",
                "type": "Task",
                "summary": "New",
                "fix_versions": ["7.8"],
            },
        ),
        ("tracker_issue", {"issue": "REL-1", "add": {"fix_versions": ["7.8"]}}),
        (
            "tracker_version",
            {"project": "REL", "name": "1.1.0", "state": "released", "unresolved": "7.8"},
        ),
    ],
    "freed versions": [
        ("tracker_version", {"project": "REL", "name": "2.0.0", "state": "absent"}),
        ("tracker_version", {"project": "REL", "name": "1.1.0", "new_name": "2.0.0"}),
    ],
    "freed names of versions": [
        ("tracker_version", {"project": "REL", "name": "2.0.0", "new_name": "2.0.1"}),
        ("tracker_version", {"project": "REL", "name": "1.1.0", "new_name": "2.0.0"}),
    ],
    "freed titles": [
        ("wiki_page", {"page_id": "1003", "state": "absent"}),
        ("wiki_page", {"page_id": "1002", "title": "Release notes"}),
    ],
    "freed modules": [
        ("analysis_module", {"project": "toolchain", "name": "core", "state": "absent"}),
        ("analysis_module", {"project": "toolchain", "name": "ui, web", "new_name": "core"}),
    ],
    "freed repositories": [
        (
            "repo_repository",
            {"key": "generic-release-local", "state": "absent", "force": True},
        ),
        (
            "repo_repository",
            {"key": "generic-release-local", "rclass": "local", "package_type": "npm"},
        ),
    ],
    "freed jobs": [
        ("ci_job", {"job": "no-parameters", "state": "absent", "force": True}),
        ("ci_job", {"job": "no-parameters", "folder": True}),
    ],
    "accounts": [
        ("analysis_user", {"name": "newcomer", "password": "pass-word-12345"}),
        ("analysis_group", {"name": "new", "users": ["newcomer"]}),
        ("analysis_role", {"name": "reader"}),
        ("analysis_role_assignment", {"name": "reader", "account": "new", "group": True}),
        ("analysis_config", {"role_assignments": [{"name": "reader", "account": "newcomer"}]}),
    ],
    "renamed projects": [
        ("analysis_project", {"name": "toolchain", "new_name": "tools"}),
        ("analysis_module", {"project": "tools", "name": "core", "paths": ["**/kernel/*"]}),
        ("analysis_view", {"project": "tools", "name": "new", "query": "state:New"}),
    ],
    "imported projects": [
        (
            "analysis_project",
            {
                "name": "imported",
                "import_from": {
                    "url": "https://old-analysis.example.com:8080",
                    "username": "admin",
                    "password": "source-password-1234567890",
                },
                "poll_interval": 1,
            },
        ),
        ("analysis_view", {"project": "imported", "name": "new", "query": "state:New"}),
    ],
}


#: All modules share the file of predictions: a chain shows that separate processes find it.
RUNS = [*((name, True) for name in CHAINS), ("copied jobs", False)]


def _run(folder: Path, sandbox: Sandbox, tasks: Sequence[Mapping[str, Any]]) -> playbook.Run:
    (folder / "tree").mkdir(exist_ok=True)
    for name in ("index", "Below"):
        (folder / f"tree/{name}.md").write_text(f"# {name}\n", encoding="utf-8")
    defaults = connections.module_defaults(sandbox.urls, repo=REPO)
    controls = {"localhost": sandbox.control}
    run = playbook.run(folder, [playbook.play(tasks, module_defaults=defaults)], controls=controls)
    assert run.code == 0, run.output
    return run


def _both(name: str, in_process: bool) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a chain in check mode, and then again as a run, from the seeds.

    The writes of the run end the predictions, so that the next chain does not see them.
    """
    for check in (True, False):
        for number, (module, options) in enumerate(CHAINS[name]):
            variables: dict[str, Any] = {"toolchain_in_process": in_process or not check}
            if check and number == 0:
                variables["sandbox_reset"] = {}
            yield playbook.task(
                module,
                options,
                f"{name} {number} {in_process} {check}",
                check_mode=check,
                register=f"run_{number}",
                vars=variables,
            )


def test_check_mode_predicts_the_changes_of_a_chain(fresh: Fresh, tmp_path: Path) -> None:
    """All chains are one play, to start Ansible only once."""
    tasks = [task for name, in_process in RUNS for task in _both(name, in_process)]
    run = _run(tmp_path, fresh("real"), tasks)
    assert len(run.events) == len(tasks)
    wrong = [
        (event.task, event.result.get("msg"))
        for event in run.events
        if event.result.get("msg") is not None or event.result["changed"] is not True
    ]
    assert wrong == []
    assert [
        event.task for event in run.events if event.task.endswith("True") and event.writes
    ] == []


def test_last_task_of_a_chain_alone_sees_only_the_server(fresh: Fresh, tmp_path: Path) -> None:
    tasks = [playbook.task(*chain[-1], name, check_mode=True) for name, chain in CHAINS.items()]
    run = _run(tmp_path, fresh("real"), tasks)
    assert {event.task for event in run.events if event.status == "failed"} == set(CHAINS)


def test_write_ends_the_predictions_of_its_server(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    folder, inner = CHAINS["jobs"][:2]
    tasks = [
        playbook.task(*folder, "predicted", check_mode=True),
        playbook.task("ci_job", {"job": "other", "folder": True}, "written"),
        playbook.task(*inner, "inner", check_mode=True),
    ]
    defaults = connections.module_defaults(sandbox.urls)
    run = playbook.run(tmp_path, [playbook.play(tasks, module_defaults=defaults)])
    assert "the folder 'new' does not exist" in run.event("inner").result["msg"]


def test_predicted_build_needs_an_existing_target(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    deploy, _properties, publish, (module, options), *_rest = CHAINS["release"]
    promote = (module, {**options, "target_repo": "unknown"})
    tasks = [
        playbook.task(*task, name, check_mode=True)
        for name, task in (("files", deploy), ("record", publish), ("promotion", promote))
    ]
    defaults = connections.module_defaults(sandbox.urls, repo=REPO)
    run = playbook.run(tmp_path, [playbook.play(tasks, module_defaults=defaults)])
    assert run.event("promotion").result["error"]["kind"] == "not_found"


def test_drift_below_a_missing_folder_is_missing(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    login = connections.connection("ci", sandbox.urls["ci"])
    jobs = [{"job": "new", "folder": True}, *({"job": f"new/{n}", "config": PROJECT} for n in "ab")]
    variables = {"desired_state_jobs": jobs, "enforce_connections": {"ci": login}}
    play = {"import_playbook": "delivery.toolchain.drift", "vars": variables}
    run = playbook.run(tmp_path, [play])
    assert run.code == 0, run.output
    assert [run.output.count(f"+ job new{n}: missing") for n in ("", "/a", "/b")] == [1, 1, 1]
