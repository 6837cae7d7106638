# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that `enforce` applies exactly the plan that `drift` has sealed."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    sealed as sealed_plans,
)
from sandbox.client import Sandbox
from tests.helpers import connections, forked, playbook
from tests.helpers.cases import CASES

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
) -> playbook.Run:
    logins = {"enforce_connections": _logins(sandbox)}
    play = {
        "import_playbook": f"delivery.toolchain.{name}",
        "vars": {**logins, **CONFIG, **(variables or {})},
    }
    controls = {"localhost": sandbox.control}
    run = playbook.run(
        folder, [play], controls=controls, arguments=arguments or [], variables=environment
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
REPORT = {"drift_report": "report"}
ADMIN = "repo-admin-token-1234567890"


def _version(sandbox: Sandbox, folder: Path, name: str, **options: Any) -> None:
    """Change a version behind the back of the plan."""
    login = connections.connection("tracker", sandbox.urls["tracker"])
    version = {"project": "REL", "name": name, **options, **login}
    assert forked.module_result("tracker_version", version, folder)["changed"]


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
    checked = _run(sandbox, tmp_path, "enforce", approved, ["--check"])
    assert _writes(checked) == []
    run = _run(sandbox, tmp_path, "enforce", approved)
    assert "Applied: 4 created, 1 updated, 0 deleted; failed: 0, skipped: 0." in run.output
    assert "Approved by alice. Reason: OPS-7." in run.output
    assert "Result: as wanted" in _run(sandbox, tmp_path, "drift").output
    mended = json.loads((tmp_path / "report/report.json").read_text("utf-8"))["mended"]
    assert [(finding["kind"], finding["reason"]) for finding in mended] == [
        (entry["kind"], "OPS-7") for entry in plan["entries"]
    ]
    again = _run(sandbox, tmp_path, "enforce", {**PLAN, "enforce_plan": plan}, code=2)
    assert "conflict" in again.output
    assert "gone: version REL/8.1" in again.output
    assert _writes(again) == []


def test_changed_server_is_a_conflict_before_any_write(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    _version(sandbox, tmp_path, "8.2", description="one")
    _sealed(sandbox, tmp_path)
    _version(sandbox, tmp_path, "8.2", description="three")
    _version(sandbox, tmp_path, "8.1")
    # the first run only checks
    for arguments in (["--check"], []):
        run = _run(sandbox, tmp_path, "enforce", PLAN, code=2, arguments=arguments)
        assert _writes(run) == []
    reported = " ".join(run.output.split())
    assert "conflict: the servers differ from the sealed plan, and nothing was written" in reported
    assert "different: version REL/8.2" in reported
    assert "gone: version REL/8.1" in reported
    report = json.loads((tmp_path / "report/report.json").read_text("utf-8"))
    (page,) = [one["id"] for one in report["findings"] if one["kind"] == "page"]
    chosen = _run(sandbox, tmp_path, "enforce", {**PLAN, "enforce_only": page})
    assert "Applied: 1 created, 0 updated, 0 deleted" in chosen.output
    skipped = _run(sandbox, tmp_path, "enforce", {**PLAN, "enforce_plan_rest": "skip"})
    assert "different: version REL/8.2" in " ".join(skipped.output.split())
    assert "Applied: 1 created, 1 updated, 0 deleted; failed: 0, skipped: 1." in skipped.output
    assert [write for write in _writes(skipped) if "tracker" in write] == []


def test_plan_is_applied_with_a_list_of_unmanaged_objects(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that the export for this list, and ignored findings, are no part of the plan."""
    sandbox = fresh("real")
    (tmp_path / "desired").mkdir()
    described = "versions: [{project: REL, name: '8.1'}, {project: REL, name: '8.2'}]\n"
    (tmp_path / "desired/tracker.yml").write_text(described, encoding="utf-8")
    folder = {
        **{name: [] for name in CONFIG if name.startswith("analysis")},
        "desired_state_pages": [],
        "desired_state_folder": "desired",
        "desired_state_unmanaged": "report",
        "enforce_roles": "desired_state",
    }
    ignored = [{"kind": "version", "name": "REL/8.2"}]
    plan = _sealed(sandbox, tmp_path, **folder, drift_ignore=ignored)
    assert [entry["name"] for entry in plan["entries"]] == ["REL/8.1"]
    _version(sandbox, tmp_path, "8.9")  # a new unmanaged object does not change the plan
    run = _run(sandbox, tmp_path, "enforce", {**folder, **PLAN})
    assert "Applied: 1 created, 0 updated, 0 deleted; failed: 0, skipped: 1." in run.output
    assert "? version REL/8.9: not managed" in run.output
    assert "othing was written" not in run.output


def test_message_after_an_earlier_write_does_not_deny_it(
    planned: Planned, fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    planned(tmp_path)
    login = connections.connection("tracker", sandbox.urls["tracker"])
    version = playbook.task("tracker_version", {"project": "REL", "name": "8.1", **login}, "x")
    enforce = {
        "import_playbook": "delivery.toolchain.enforce",
        "vars": {"enforce_connections": _logins(sandbox), **CONFIG, **PLAN},
    }
    run = playbook.run(tmp_path, [playbook.play([version]), enforce])
    assert run.code == 2
    reported = " ".join(run.output.split())
    assert (
        "conflict: the servers differ from the sealed plan: different: version REL/8.1" in reported
    )
    assert "othing was written" not in reported


def test_failed_drift_leaves_no_older_plan(planned: Planned, fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    planned(tmp_path)
    _run(sandbox, tmp_path, "drift", {"enforce_connections": "text"}, code=2)
    assert not (tmp_path / "report/plan.json").exists()
    run = _run(sandbox, tmp_path, "enforce", PLAN, code=2)
    assert "plan.json cannot be read" in " ".join(run.output.split())
    assert _writes(run) == []


def test_changed_desired_state_is_a_conflict(
    planned: Planned, fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    planned(tmp_path)
    users = [{"name": "eve", "password": f"{PASSWORD}-2"}, {"name": "adam", "password": PASSWORD}]
    run = _run(sandbox, tmp_path, "enforce", {**PLAN, "analysis_config_users": users}, code=2)
    reported = " ".join(run.output.split())
    assert "different: user eve" in reported
    assert "new: user adam" in reported
    assert _writes(run) == []
    skip = {**PLAN, "enforce_plan_rest": "skip", "analysis_config_users": users}
    run = _run(sandbox, tmp_path, "enforce", {**skip, "analysis_config_groups": []})
    assert [write for write in _writes(run) if "analysis" in write] == []


#: `tests/unit/test_sealed_plan.py` has more of them.
SLIPS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "server": (
        {},
        {"enforce_connections": {"tracker": {"url": "https://other.example.com/x/"}}},
        "but this run connects to https://other.example.com/x: use the same connections as drift",
    ),
    "server of a variable": (
        {},
        {"enforce_connections": {}, "toolchain_tracker_url": "https://other.example.com"},
        "but this run connects to https://other.example.com: use the same connections as drift",
    ),
}


def test_unusable_plan_is_reported_in_one_sentence(
    planned: Planned, fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    plan = planned(tmp_path)
    file = tmp_path / "report/plan.json"
    for changes, variables, words in SLIPS.values():
        file.write_text(json.dumps({**plan, **changes}), encoding="utf-8")
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
    arguments = ["-i", "hosts.json", "-e", "enforce_hosts=all"]

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
    sandbox = fresh("real")
    own_process = {"toolchain_in_process": False, "enforce_roles": "desired_state"}
    plan = _sealed(sandbox, tmp_path, drift_plan_key="a long key", **own_process)
    assert len(plan["seal"]) == 64
    assert "a long key" not in json.dumps(plan)
    wrong = _run(sandbox, tmp_path, "enforce", {**PLAN, "enforce_plan_key": "x"}, code=2)
    assert "has a seal that does not match the key" in " ".join(wrong.output.split())
    assert _asked(wrong) == 0
    run = _run(
        sandbox, tmp_path, "enforce", {**PLAN, **own_process, "enforce_plan_key": "a long key"}
    )
    assert "Applied: 3 created" in run.output


def test_ci_configuration_is_compared_with_the_plan(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    state = {"jenkins": {"systemMessage": "Planned"}}, {"unclassified": {"location": {"url": "x"}}}
    variables = {
        **{name: [] for name in CONFIG if name.startswith("desired")},
        "desired_state_configuration": [{"config": each} for each in state],
        "enforce_roles": "desired_state",
    }
    planned, _cost = _found(sandbox, tmp_path, variables)
    assert sorted(one["name"] for one in planned.values()) == ["jenkins", "unclassified"]
    (tmp_path / "now/plan.json").rename(tmp_path / "plan.json")
    other = {"config": {"jenkins": {"systemMessage": "By hand"}}}
    _apply(sandbox, tmp_path, {"module": "ci_configuration"}, "update", **other)
    sealed = {**variables, "enforce_plan": "plan.json"}
    refused = _run(sandbox, tmp_path, "enforce", sealed, code=2)
    assert "different: configuration jenkins" in " ".join(refused.output.split())
    assert _writes(refused) == []
    _run(sandbox, tmp_path, "enforce", {**sealed, "enforce_plan_rest": "skip"})
    left, _cost = _found(sandbox, tmp_path, variables)
    assert [one["before"] for one in left.values()] == [{"jenkins.systemMessage": "By hand"}]


def test_key_may_be_in_the_environment(fresh: Fresh, tmp_path: Path) -> None:
    """Verify it for both playbooks. A run without a key takes a plan with a seal."""
    sandbox = fresh("real")
    keys = {each: {"TOOLCHAIN_PLAN_KEY": f"{each} key"} for each in ("right", "wrong")}
    only: dict[str, Any] = {"enforce_roles": "desired_state", "drift_report": ""}
    _run(sandbox, tmp_path, "drift", {**only, **REPORT}, environment=keys["right"])
    given = {**PLAN, **only, "enforce_plan_max_age": "30m"}
    wrong = _run(sandbox, tmp_path, "enforce", given, code=2, environment=keys["wrong"])
    assert "has a seal that does not match the key" in " ".join(wrong.output.split())
    unverified = "[WARNING]: The seal of the plan was not verified, because no key is set"
    for environment, warned in ((keys["right"], False), (None, True)):
        run = _run(
            sandbox, tmp_path, "enforce", given, arguments=["--check"], environment=environment
        )
        assert "Plan: 3 to create, 0 to update, 0 to delete." in run.output
        assert (unverified in " ".join(run.output.split())) == warned
    for name in ("drift", "enforce"):
        secret = {"TOOLCHAIN_PLAN_KEY": ""}  # as a CI server sets it in a fork
        run = _run(sandbox, tmp_path, name, given, code=2, environment=secret)
        assert "TOOLCHAIN_PLAN_KEY is set, but is empty" in " ".join(run.output.split())
        assert _asked(run) == 0


def test_deleted_items_stay_in_the_trash(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that the trash is cleaned as planned after a cleanup that fills it."""
    sandbox = fresh("real")
    login = connections.connection("repo", sandbox.urls["repo"], token=ADMIN, dialect="jfrog")
    house: dict[str, Any] = {
        "enforce_connections": {"repo": login},
        "enforce_roles": "repo_housekeeping",
        "repo_housekeeping_rules": [{"repo": "generic-snapshot-local", "name": "1.txt"}],
        "repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}],
        "repo_housekeeping_trash": [{"state": "empty"}],
    }
    plan = _sealed(sandbox, tmp_path, **house)
    assert [one["kind"] for one in plan["entries"]] == ["item", "build", "trash"]
    run = _run(sandbox, tmp_path, "enforce", {**PLAN, **house})
    assert "Applied: 0 created, 0 updated, 3 deleted; failed: 0, skipped: 2." in run.output
    left = _sealed(sandbox, tmp_path, **house)["entries"]
    names = ["artifactory-build-info", "generic-snapshot-local"]
    assert [(one["kind"], one["name"]) for one in left] == [("trash", name) for name in names]


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
    "desired_state_jobs": [
        {"job": "chain", "folder": True},
        {"job": "chain/job", "config": "<project><description>chain</description></project>"},
    ],
    "desired_state_credentials": [
        {"id": "chain", "folder": "chain", "kind": "secret_text", "secret": "chain-secret-12345"}
    ],
    "desired_state_views": [{"name": "chain", "folder": "chain", "jobs": ["job"]}],
    "desired_state_spaces": [{"key": "CHN", "name": "Chain"}],
    "desired_state_pages": [{"space": "CHN", "title": "Above", "body": "<p>above</p>"}],
    "enforce_roles": "desired_state",
    "drift_report": "report",
}


def test_interdependent_objects_are_written_as_planned(fresh: Fresh, tmp_path: Path) -> None:
    """Verify that the writes of earlier tasks do not change the digests of later tasks, and that
    the plan costs at most the requests of one more drift, and five for each service.
    """
    sandbox = fresh("real")
    logins = _logins(sandbox)
    logins["repo"] = connections.connection(
        "repo", sandbox.urls["repo"], token=ADMIN, dialect="jfrog"
    )
    chain = {**CHAIN, "enforce_connections": logins, "desired_state_versions": []}
    plan = _sealed(sandbox, tmp_path, **chain)
    cost = len(sandbox.requests())
    count = sum(len(each) for name, each in CHAIN.items() if isinstance(each, list))
    assert len(plan["entries"]) == count
    run = _run(sandbox, tmp_path, "enforce", {**PLAN, **chain})
    assert f"Applied: {count} created, 0 updated, 0 deleted; failed: 0, skipped: 0." in run.output
    assert _sealed(sandbox, tmp_path, **chain)["entries"] == []
    sandbox.reset()
    cost += _asked(_run(sandbox, tmp_path, "enforce", chain))
    assert 0 < _asked(run) <= cost + 5 * 3


def test_old_plan_is_rejected_before_any_request(
    planned: Planned, fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    plan = planned(tmp_path)
    old = {**plan, "created": "2026-01-01T00:00:00Z"}
    old["digest"] = sealed_plans._digest(old)
    given = {"enforce_plan": old, "enforce_plan_max_age": "30m"}
    run = _run(sandbox, tmp_path, "enforce", given, code=2)
    assert "minutes old, more than enforce_plan_max_age allows" in " ".join(run.output.split())
    assert [one for event in run.events for one in event.requests] == []


KINDS = yaml.safe_load((ROOT / "roles/desired_state/vars/main.yml").read_text(encoding="utf-8"))[
    "desired_state_kinds"
]
PREFIXES = ("login", "remote", "user")
SPECS = yaml.safe_load(
    (ROOT / "roles/desired_state/meta/argument_specs.yml").read_text(encoding="utf-8")
)["argument_specs"]["main"]["options"]
#: Kinds with a case that needs only the seeds of the sandbox.
USABLE = [
    kind
    for kind in KINDS
    if not {"settings", "seed", "login", "dialect"}
    & {key for key, value in CASES[kind["module"]].items() if value}
    and "create" in CASES[kind["module"]]
]


def _entry(kind: dict[str, Any]) -> dict[str, Any]:
    """Return the object of a contract case as an entry of the desired state."""
    known = SPECS[f"desired_state_{kind['list']}"]["options"]
    create = CASES[kind["module"]]["create"]
    # an option with the name of one of the connection has a prefix outside of entries
    flat = {each: name for name in known for each in (f"{start}_{name}" for start in PREFIXES)}
    plain = {flat.get(name, name): value for name, value in create.items()}
    return {name: value for name, value in plain.items() if name in known}


def _apply(sandbox: Sandbox, folder: Path, kind: dict[str, Any], step: str, **options: Any) -> None:
    """Change an object behind the back of the plan, with `options` or those of its contract case."""
    case = CASES[kind["module"]]
    login = connections.connection(case["service"], sandbox.urls[case["service"]])
    arguments = forked.rendered({**(options or case[step]), **login})
    result = forked.module_result(kind["module"], arguments, folder)
    assert not result.get("failed"), result


def _found(
    sandbox: Sandbox, folder: Path, variables: dict[str, Any]
) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the differences of a drift by their id, and the number of its requests."""
    run = _run(sandbox, folder, "drift", {**variables, "drift_report": "now"})
    report = json.loads((folder / "now/report.json").read_text("utf-8"))
    found = {
        finding["id"]: {**finding, "first_seen": "", "since": ""}
        for finding in report["findings"]
        if finding["status"] != "unknown"
    }
    return found, _asked(run)


def _asked(run: playbook.Run) -> int:
    return sum(len(event.requests) for event in run.events)


@pytest.mark.parametrize("seed", [1])
def test_nothing_outside_of_the_plan_is_written(seed: int, fresh: Fresh, tmp_path: Path) -> None:
    choice = random.Random(seed)
    sandbox = fresh("real")
    kinds = choice.sample(USABLE, choice.randint(2, min(4, len(USABLE))))
    for kind in kinds:
        if choice.random() < 0.3:
            _apply(sandbox, tmp_path, kind, "create")
    variables: dict[str, Any] = {
        **{name: [] for name in CONFIG if name.startswith("desired")},
        **{f"desired_state_{kind['list']}": [_entry(kind)] for kind in kinds},
        "enforce_roles": "desired_state",
    }
    planned, cost = _found(sandbox, tmp_path, variables)
    (tmp_path / "now/plan.json").rename(tmp_path / "plan.json")
    for kind in kinds:
        if seed % 2 and choice.random() < 0.5:
            _apply(sandbox, tmp_path, kind, "create")
            if choice.random() < 0.5:
                _apply(sandbox, tmp_path, kind, "update")
    now, _cost = _found(sandbox, tmp_path, variables)
    sealed = {**variables, "enforce_plan": "plan.json", "drift_report": "enforced"}
    if now != planned:
        refused = _run(sandbox, tmp_path, "enforce", sealed, code=2)
        assert _writes(refused) == []
        assert "conflict" in refused.output
    run = _run(sandbox, tmp_path, "enforce", {**sealed, "enforce_plan_rest": "skip"})
    left, _cost = _found(sandbox, tmp_path, variables)
    # what is new or different is left as it was, and the rest of the plan is applied
    assert left == {own: one for own, one in now.items() if planned.get(own) != one}
    if now == planned:
        assert _asked(run) - len(_writes(run)) <= 3 * cost + 5 * len(SERVICES)
