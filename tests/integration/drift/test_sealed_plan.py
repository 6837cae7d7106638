# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that `enforce` applies exactly the plan that `drift` has sealed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import kinds
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    sealed as sealed_plans,
)
from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook

Fresh = Callable[[str], Sandbox]
Planned = Callable[[Path], dict[str, Any]]
ROOT = Path(__file__).resolve().parents[3]

PASSWORD = "enforced-password-1234567890"
CONFIG: dict[str, Any] = {
    "analysis_config_users": [{"name": "eve", "password": PASSWORD}],
    "analysis_config_groups": [{"name": "quality", "users": ["eve"]}],
    "desired_state_versions": [
        {"project": "REL", "name": "8.1"},
        {"project": "REL", "name": "8.2", "description": "two"},
    ],
    "desired_state_pages": [{"space": "REL", "title": "Sealed", "body": "<p>one</p>"}],
    "drift_report": "report",
}
SERVICES = ("analysis", "ci", "repo", "tracker", "wiki")


def _logins(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    return {service: connections.connection(service, sandbox.urls[service]) for service in SERVICES}


def _run(
    sandbox: Sandbox,
    folder: Path,
    name: str,
    variables: dict[str, Any] | None = None,
    arguments: list[str] | None = None,
    *,
    code: int = 0,
    environment: dict[str, str] | None = None,
    before: Sequence[dict[str, Any]] = (),
) -> playbook.Run:
    logins = {"enforce_connections": _logins(sandbox)}
    play = {
        "import_playbook": f"delivery.toolchain.{name}",
        "vars": {**logins, **CONFIG, **(variables or {})},
    }
    controls = {"localhost": sandbox.control}
    run = playbook.run(
        folder,
        [*before, play],
        controls=controls,
        arguments=arguments or [],
        variables=environment,
    )
    assert run.code == code, run.output
    return run


def _writes(run: playbook.Run) -> list[str]:
    return [f"{write['method']} {write['path']}" for event in run.events for write in event.writes]


def _requests(run: playbook.Run) -> list[str]:
    return [request["path"] for event in run.events for request in event.requests]


def _approved(folder: Path) -> dict[str, Any]:
    """Sign the plan in a folder; return the variables for this approval."""
    plan = folder / "report/plan.json"
    commands = (
        ["-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / "key")],
        ["-Y", "sign", "-n", "delivery.toolchain.plan", "-f", str(folder / "key"), str(plan)],
    )
    for command in commands:
        subprocess.run(["ssh-keygen", "-q", *command], check=True, stdin=subprocess.DEVNULL)
    signers = folder / "signers"
    key = (folder / "key.pub").read_text("utf-8")
    # bob may request a run, and not approve one
    signers.write_text(f"alice {key}bob ssh-ed25519 AAAA\n", "utf-8")
    signers.chmod(0o644)
    return {
        "enforce_approvals": 1,
        "enforce_signers": str(signers),
        "enforce_requester": "bob",
    }


def _sealed(sandbox: Sandbox, folder: Path, **variables: Any) -> dict[str, Any]:
    _run(sandbox, folder, "drift", variables)
    plan: dict[str, Any] = json.loads((folder / "report/plan.json").read_text("utf-8"))
    return plan


@pytest.fixture(scope="module")
def planned(fresh: Fresh, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Return a function that copies the report of a drift on the seeds, and returns its plan."""
    folder = tmp_path_factory.mktemp("planned")
    plan = _sealed(fresh("real"), folder)

    def copied(target: Path) -> dict[str, Any]:
        shutil.copytree(folder / "report", target / "report")
        return plan

    return copied


PLAN = {"enforce_plan": "report/plan.json"}
ADMIN = "repo-admin-token-1234567890"


def _version(sandbox: Sandbox, name: str, **options: Any) -> None:
    """Change a version behind the back of the plan."""
    login = connections.connection("tracker", sandbox.urls["tracker"])
    version = {"project": "REL", "name": name, **options, **login}
    assert in_process.run("tracker_version", version)["changed"]


def test_unchanged_server_accepts_the_complete_plan_once(
    planned: Planned, fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    plan = planned(tmp_path)
    assert [(entry["kind"], entry["action"]) for entry in plan["entries"]] == [
        ("user", "create"),
        ("group", "update"),
        ("version", "create"),
        ("version", "create"),
        ("page", "create"),
    ]
    assert len({entry["digest"] for entry in plan["entries"]}) == 5
    assert PASSWORD not in json.dumps(plan)
    assert plan["servers"] == sorted(sandbox.urls[each] for each in ("analysis", "tracker", "wiki"))
    approved = {**PLAN, **_approved(tmp_path), "enforce_reason": "OPS-7"}
    checked = _run(
        sandbox, tmp_path, "enforce", {**approved, "enforce_approvals": 2}, ["--check"], code=2
    )
    assert "has 1 of 2 approvals" in checked.output
    assert _requests(checked) == []
    run = _run(sandbox, tmp_path, "enforce", approved)
    assert "Applied: 4 created, 1 updated, 0 deleted; failed: 0, skipped: 0." in run.output
    assert "Approved by alice. Reason: OPS-7." in run.output
    assert "Result: as wanted" in _run(sandbox, tmp_path, "drift").output
    resolved = json.loads((tmp_path / "report/report.json").read_text("utf-8"))["resolved"]
    assert [(finding["kind"], finding["reason"]) for finding in resolved] == [
        (entry["kind"], "OPS-7") for entry in plan["entries"]
    ]
    given = {**PLAN, "enforce_plan": plan}
    again = _run(sandbox, tmp_path, "enforce", given, ["--check"], code=2)
    reported = " ".join(again.output.split())
    assert "conflict: the servers differ from the sealed plan, and nothing was written" in reported
    assert "gone: version REL/8.1" in reported
    refused = again.event("Check that the servers have not changed").result
    assert refused["error"] == {"kind": "conflict"}
    assert _writes(again) == []


def test_change_of_the_servers_or_of_the_desired_state_is_a_conflict(
    fresh: Fresh, tmp_path: Path
) -> None:
    """Verify it for a run that has written something before: its message does not deny that."""
    sandbox = fresh("real")
    _version(sandbox, "8.2", description="one")
    _sealed(sandbox, tmp_path)
    _version(sandbox, "8.2", description="three")
    users = [{"name": "eve", "password": f"{PASSWORD}-2"}, {"name": "adam", "password": PASSWORD}]
    login = connections.connection("tracker", sandbox.urls["tracker"])
    version = playbook.task("tracker_version", {"project": "REL", "name": "8.1", **login}, "x")
    changed = {**PLAN, "analysis_config_users": users}
    before = playbook.play([version])
    run = _run(sandbox, tmp_path, "enforce", changed, code=2, before=[before])
    assert len(_writes(run)) == 1
    reported = " ".join(run.output.split())
    for words in (
        "conflict: the servers differ from the sealed plan: different:",
        "version REL/8.2",
        "different: version REL/8.1",
        "user eve",
        "new: user adam",
    ):
        assert words in reported
    assert "othing was written" not in reported
    report = json.loads((tmp_path / "report/report.json").read_text("utf-8"))
    (page,) = [one["id"] for one in report["findings"] if one["kind"] == "page"]
    chosen = _run(sandbox, tmp_path, "enforce", {**PLAN, "enforce_only": page})
    assert "Applied: 1 created, 0 updated, 0 deleted" in chosen.output
    skipped = _run(sandbox, tmp_path, "enforce", {**PLAN, "enforce_plan_rest": "skip"})
    assert "different: version REL/8.2" in " ".join(skipped.output.split())
    assert "Applied: 1 created, 1 updated, 0 deleted; failed: 0, skipped: 1." in skipped.output
    assert [write for write in _writes(skipped) if "tracker" in write] == []


def test_plan_is_applied_with_a_list_of_unmanaged_objects(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that the export for this list, and ignored findings, are no part of the plan.

    The deletion of an object that was removed from the folder is a part.
    """
    sandbox = fresh("real")
    described = "versions: [{project: REL, name: '8.1'}, {project: REL, name: '8.2'}]\n"
    removed = "components: [{project: REL, name: gone}]\n"
    for name, text in (("desired", described), ("previous", described + removed)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tracker.yml").write_text(text, encoding="utf-8")
    login = connections.connection("tracker", sandbox.urls["tracker"])
    component = {"project": "REL", "name": "gone", **login}
    assert in_process.run("tracker_component", component)["changed"]
    folder = {
        **{name: [] for name in CONFIG if name.startswith("analysis")},
        "desired_state_pages": [],
        "desired_state_folder": "desired",
        "desired_state_previous": "previous",
        "desired_state_unmanaged": "report",
        "enforce_roles": "desired_state",
    }
    ignored = [{"kind": "version", "name": "REL/8.2"}]
    plan = _sealed(sandbox, tmp_path, **folder, drift_ignore=ignored)
    assert [(entry["name"], entry["action"]) for entry in plan["entries"]] == [
        ("REL/8.1", "create"),
        ("REL/gone", "delete"),
    ]
    _version(sandbox, "8.9")  # a new unmanaged object does not change the plan
    run = _run(sandbox, tmp_path, "enforce", {**folder, **PLAN})
    assert "Applied: 1 created, 0 updated, 1 deleted; failed: 0, skipped: 1." in run.output
    assert in_process.run("tracker_component", component)["changed"]
    report = json.loads((tmp_path / "report/report.json").read_text("utf-8"))
    assert "version REL/8.9: not managed" in [one["text"] for one in report["findings"]]
    assert "othing was written" not in run.output


def test_failed_drift_leaves_no_older_plan(planned: Planned, fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    planned(tmp_path)
    _run(sandbox, tmp_path, "drift", {"enforce_connections": "text"}, code=2)
    assert not (tmp_path / "report/plan.json").exists()
    run = _run(sandbox, tmp_path, "enforce", PLAN, code=2)
    assert "plan.json cannot be read" in " ".join(run.output.split())
    assert _writes(run) == []


def test_unusable_plan_is_reported_before_any_request(
    planned: Planned, fresh: Fresh, tmp_path: Path
) -> None:
    """`tests/unit/test_sealed_plan.py` has more reasons."""
    sandbox = fresh("real")
    plan = planned(tmp_path)
    old = {**plan, "created": "2026-01-01T00:00:00Z"}
    old["digest"] = sealed_plans._digest(old)
    other = "but this run connects to https://other.example.com"
    own = "use the same connections as drift"
    slips: list[tuple[dict[str, Any], str]] = [
        (
            {"enforce_connections": {"tracker": {"url": "https://other.example.com/x/"}}},
            f"{other}/x: {own}",
        ),
        (
            {"enforce_connections": {}, "toolchain_tracker_url": "https://other.example.com"},
            f"{other}: {own}",
        ),
        (
            {"enforce_plan": old, "enforce_plan_max_age": "30m"},
            "minutes old, more than enforce_plan_max_age allows",
        ),
    ]
    for variables, words in slips:
        run = _run(sandbox, tmp_path, "enforce", {**PLAN, **variables}, code=2)
        assert words in " ".join(run.output.split())
        assert _asked(run) == 0, words


def test_failed_comparison_on_one_host_stops_all(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    hosts = {
        each: {"desired_state_versions": [{"project": "REL", "name": f"8.{each}"}]}
        for each in ("one", "two")
    }
    inventory = {"all": {"hosts": hosts}}
    (tmp_path / "hosts.json").write_text(json.dumps(inventory), encoding="utf-8")
    arguments = ["-i", "hosts.json", "-f", "1", "-e", "enforce_hosts=all"]

    def run(name: str, code: int = 0, **variables: Any) -> playbook.Run:
        login = connections.connection("tracker", sandbox.urls["tracker"])
        play = {
            "import_playbook": f"delivery.toolchain.{name}",
            "vars": {"enforce_connections": {"tracker": login}, "drift_report": name, **variables},
        }
        found = playbook.run(tmp_path, [play], arguments=arguments)
        assert found.code == code, found.output
        return found

    run("drift")
    plan = json.loads((tmp_path / "drift/plan.json").read_text("utf-8"))
    assert sorted(entry["host"] for entry in plan["entries"]) == ["one", "two"]
    before = len(sandbox.requests("tracker", writes=True))
    sealed: dict[str, Any] = {"enforce_plan": "drift/plan.json"}
    url = sandbox.urls["tracker"]
    logins = {
        "right": {"tracker": connections.connection("tracker", url)},
        "wrong": {"tracker": {"url": url, "username": "alice", "password": "wrong-password"}},
        "enforce_connections": "{{ wrong if inventory_hostname == 'two' else right }}",
    }
    refused = run("enforce", 2, **sealed, **logins)
    assert "Cannot compare the servers with the sealed plan" in refused.output
    assert len(sandbox.requests("tracker", writes=True)) == before
    assert "Applied: 2 created" in run("enforce", **sealed).output


def test_sealed_plan_requires_its_key(fresh: Fresh, tmp_path: Path) -> None:
    """Verify a key in a variable and in the environment, with a module in processes of its own.

    A run without a key takes a plan with a seal. `tests/unit/test_sealed_plan.py` has more keys.
    """
    sandbox = fresh("real")
    given = {
        "toolchain_in_process": False,
        "enforce_roles": "desired_state",
        "desired_state_versions": CONFIG["desired_state_versions"][:1],
        "desired_state_pages": [],
    }
    plan = _sealed(sandbox, tmp_path, drift_plan_key="a long key", **given)
    assert len(plan["seal"]) == 64
    assert "a long key" not in json.dumps(plan)
    given |= PLAN
    wrong, right = ({"TOOLCHAIN_PLAN_KEY": key} for key in ("wrong key", "a long key"))
    other = {**given, "drift_report": "refused"}
    run = _run(sandbox, tmp_path, "enforce", other, code=2, environment=wrong)
    assert "has a seal that does not match the key" in " ".join(run.output.split())
    assert _asked(run) == 0
    unverified = "[WARNING]: The seal of the plan was not verified, because no key is set"
    here = {**given, "toolchain_in_process": True}
    checked = _run(sandbox, tmp_path, "enforce", here, arguments=["--check"])
    assert "Plan: 1 to create, 0 to update, 0 to delete." in checked.output
    assert unverified in " ".join(checked.output.split())
    assert (_asked(checked) > 0, _writes(checked)) == (True, [])
    run = _run(sandbox, tmp_path, "enforce", given, environment=right)
    assert "Applied: 1 created" in run.output
    assert unverified not in " ".join(run.output.split())


#: Objects of all kinds, some of which need others, and deletions that fill the trash.
CHAIN: dict[str, Any] = {
    "desired_state_repositories": [
        {"key": "chain-local", "rclass": "local", "package_type": "generic"},
        {
            "key": "chain",
            "rclass": "virtual",
            "package_type": "generic",
            "repositories": ["chain-local"],
        },
    ],
    "desired_state_groups": [{"name": "chain"}],
    "desired_state_users": [
        {
            "name": "chain",
            "email": "chain@example.org",
            "user_password": "Secret-1234",
            "groups": ["chain"],
        }
    ],
    "desired_state_permissions": [
        {
            "name": "chain",
            "resources": {
                "artifact": {
                    "targets": [{"repo": "chain-local"}],
                    "users": {"chain": ["read"]},
                    "groups": {"chain": ["read", "write"]},
                }
            },
        }
    ],
    "desired_state_configuration": [
        {"config": {"jenkins": {"systemMessage": "Planned"}}},
        {"config": {"unclassified": {"location": {"url": "x"}}}},
    ],
    "desired_state_jobs": [
        {"job": "chain", "folder": True},
        {"job": "chain/job", "config": "<project><description>chain</description></project>"},
    ],
    "desired_state_credentials": [
        {"id": "chain", "folder": "chain", "kind": "secret_text", "secret": "chain-secret-12345"}
    ],
    "desired_state_nodes": [{"name": "chain", "remote_root": "/srv"}],
    "desired_state_views": [{"name": "chain", "folder": "chain", "jobs": ["job"]}],
    "desired_state_versions": [{"project": "REL", "name": "8.1"}],
    "desired_state_components": [{"project": "REL", "name": "chain"}],
    "desired_state_project_roles": [{"project": "REL", "role": "Developers", "users": ["boris"]}],
    "desired_state_spaces": [{"key": "CHN", "name": "Chain"}],
    "desired_state_pages": [{"space": "CHN", "title": "Above", "body": "<p>above</p>"}],
    "desired_state_trees": [{"src": "", "space": "REL", "mark": False}],
    "desired_state_restrictions": [
        {"space": "REL", "title": "Handbook", "update": {"groups": ["writers"]}}
    ],
    "repo_housekeeping_rules": [{"repo": "generic-snapshot-local", "name": "1.txt"}],
    "repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}],
    "repo_housekeeping_trash": [{"state": "empty"}],
    "enforce_roles": "desired_state, repo_housekeeping",
    "drift_report": "report",
}


def test_objects_of_all_kinds_are_written_as_planned(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that the writes of earlier tasks do not change the digests of later tasks, that the
    trash is cleaned as planned after a cleanup that fills it, and what the comparison with the plan
    costs: at most the requests of one more drift, and five for each service.
    """
    lists = {kind.variable for kind in kinds.KINDS if kind.role == kinds.ROLE}
    assert lists == {name for name in CHAIN if name.startswith("desired_state_")}
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/index.xml").write_text("<h1>Chain tree</h1>", encoding="utf-8")
    sandbox = fresh("real")
    logins = _logins(sandbox)
    logins["repo"] = connections.connection(
        "repo", sandbox.urls["repo"], token=ADMIN, dialect="jfrog"
    )
    (tree,) = CHAIN["desired_state_trees"]
    trees = [{**tree, "src": str(tmp_path / "tree")}]
    chain = {**CHAIN, "desired_state_trees": trees, "enforce_connections": logins}
    plan = _sealed(sandbox, tmp_path, **chain)
    cost = len(sandbox.requests())
    count = sum(len(each) for name, each in CHAIN.items() if isinstance(each, list))
    assert len(plan["entries"]) == count
    actions = Counter(entry["action"] for entry in plan["entries"])
    assert actions["delete"] == 3
    run = _run(sandbox, tmp_path, "enforce", {**PLAN, **chain})
    applied = f"{actions['create']} created, {actions['update']} updated, 3 deleted"
    assert f"Applied: {applied}; failed: 0, skipped: 2." in run.output
    # what the cleanup has moved to the trash during this run is not planned, and stays
    clean = {"state": "clean", "repo": "generic-snapshot-local", "force": True}
    left = in_process.run(
        "artifact_trash", {**clean, **logins["repo"], "_ansible_check_mode": True}
    )
    assert left["children"] == ["artifactory-build-info", "generic-snapshot-local"]
    asked = [request for event in run.events for request in event.requests]
    writes = [number for number, request in enumerate(asked) if request["write"]]
    # before the first write, the plan is compared; each write may need a read before and after it
    assert 0 < writes[0] <= cost + 5 * len(SERVICES)
    assert len(asked) <= 2 * cost + 3 * len(writes)


def _asked(run: playbook.Run) -> int:
    return sum(len(event.requests) for event in run.events)
