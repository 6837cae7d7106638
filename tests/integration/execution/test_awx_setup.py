# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the playbook `awx_setup` with awx.awx and a simulation of AWX's API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.helpers.controller import GATEWAY, TOKEN, Controller, Store

Fresh = Callable[[str], Sandbox]

ROOT = Path(__file__).resolve().parents[3]
RECAP = re.compile(r"^localhost\s*:.*?changed=(\d+).*?failed=(\d+)", re.MULTILINE)
SERVICES = ("repo", "tracker", "wiki", "ci", "analysis")
PLAYBOOKS = ("release", "enforce", "drift", "housekeeping")
PLAN = "{{ survey_enforce_plan | default('') | from_yaml or drift_plan | default('') }}"


@pytest.fixture
def awx() -> Iterator[Controller]:
    with Controller() as running:
        yield running


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return the objects of a run with many variables, behind the gateway of Ansible Automation
    Platform.
    """
    with Controller(GATEWAY) as running:
        _changed, output = setup(
            running,
            tmp_path_factory.mktemp("chosen"),
            # awx.awx 24.6.1 itself needs both slashes
            path=GATEWAY.rstrip("/"),
            awx_setup_organization="Delivery",
            awx_setup_inventory="Toolchain",
            awx_setup_project={"name": "delivery.toolchain of ours", "scm_branch": "stable"},
            awx_setup_execution_environment="images.example.org/toolchain:1",
            awx_setup_credentials=["staging repo"],
            awx_setup_slices=8,
            awx_setup_reports="/reports",
        )
        assert "connecting to Red Hat Ansible Automation Platform" in output
        assert all(path.startswith(f"{GATEWAY}v2/") for _method, path in running.store.writes)
        yield running.store


def setup(
    awx: Controller,
    folder: Path,
    *arguments: str,
    code: int = 0,
    path: str | None = None,
    **variables: Any,
) -> tuple[int, str]:
    """Run the playbook. Return the number of changed tasks, and the output.

    `path` is the path of the API, if the environment names it.
    """
    environment = playbook.environment(folder)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
    named = {} if path is None else {"CONTROLLER_OPTIONAL_API_URLPATTERN_PREFIX": path}
    finished = playbook.execute(
        ["delivery.toolchain.awx_setup", "-e", json.dumps(variables), *arguments],
        folder,
        {
            **environment,
            **named,
            # awx.awx would read all certificates of the system before each request
            "SSL_CERT_FILE": os.devnull,
            "CONTROLLER_HOST": awx.url,
            "CONTROLLER_OAUTH_TOKEN": TOKEN,
        },
    )
    assert finished.returncode == code, finished.stdout
    assert TOKEN not in finished.stdout
    counts = RECAP.search(finished.stdout)
    return int(counts.group(1)) if counts else -1, finished.stdout


def linked(store: Store, kind: str, name: str, part: str) -> list[Any]:
    """Return the names, or identifiers, of the objects linked to an object."""
    (one,) = [
        each
        for each in store.objects[kind].values()
        if name in (each.get("name"), each.get("identifier"))
    ]
    by_id = {number: each for objects in store.objects.values() for number, each in objects.items()}
    return [
        by_id[number].get("name") or by_id[number]["identifier"]
        for number in store.links.get((kind, one["id"], part), [])
    ]


def test_everything_is_predicted_and_created_once(awx: Controller, tmp_path: Path) -> None:
    changed, output = setup(awx, tmp_path, "--check")
    assert changed > 0
    assert "They would be created, too." in output
    assert awx.store.writes == []
    setup(awx, tmp_path)
    _expect_all(awx.store)
    _expect_only_what_was_changed_by_hand(awx, tmp_path)


def _expect_all(store: Store) -> None:
    assert store.names("credential_types") == [f"delivery.toolchain {name}" for name in SERVICES]
    templates = [f"delivery.toolchain {name}" for name in PLAYBOOKS]
    assert store.names("job_templates") == templates
    for name in templates:
        template = store.named("job_templates", name)
        assert template["survey_enabled"] is True
        assert store.surveys[template["id"]]["spec"]
        assert template["inventory"] == store.named("inventories", "Demo Inventory")["id"]
        assert template["organization"] == store.named("organizations", "Default")["id"]
    _expect_workflow(store)
    names = [name for kind in store.objects for name in _names(store.objects[kind])]
    own = set(names) - {"Default", "Delivery", "Demo Inventory", "Toolchain", "staging repo"}
    assert {name for name in own if not name.startswith("delivery.toolchain")} == set()


def _names(objects: Mapping[int, Mapping[str, Any]]) -> list[str]:
    return [obj["name"] for obj in objects.values() if "name" in obj]


def _expect_workflow(store: Store) -> None:
    """Verify the workflow: drift, an approval if something differs, then enforce.

    Verify the notifications of the workflow, and the schedules.
    """
    nodes = "workflow_job_template_nodes"
    (drift,) = store.find(nodes, {"identifier": "drift"})
    assert drift["extra_data"] == {"survey_drift_fail": "true"}
    template = store.named("job_templates", "delivery.toolchain drift")
    assert drift["unified_job_template"] == template["id"]
    assert linked(store, nodes, "drift", "failure_nodes") == ["approval"]
    assert linked(store, nodes, "approval", "success_nodes") == ["enforce"]
    assert len(store.objects["workflow_approval_templates"]) == 1
    enforce = store.named("job_templates", "delivery.toolchain enforce")
    assert json.loads(enforce["extra_vars"]) == {"enforce_plan": PLAN}
    (approval,) = store.objects["workflow_approval_templates"].values()
    assert "applies exactly that plan" in approval["description"]
    workflow = "delivery.toolchain drift and enforce"
    for when in ("approvals", "error"):
        part = f"notification_templates_{when}"
        reported = linked(store, "workflow_job_templates", workflow, part)
        assert reported == ["delivery.toolchain drift"]
    enabled = {
        schedule["name"]: schedule["enabled"] for schedule in store.objects["schedules"].values()
    }
    assert enabled == {
        "delivery.toolchain drift every day": False,
        "delivery.toolchain housekeeping every week": False,
    }


def _expect_only_what_was_changed_by_hand(awx: Controller, folder: Path) -> None:
    """Verify that a run restores a changed survey and description, and writes nothing else.

    Schedules belong to the administrators of the controller: an enabled schedule stays enabled.
    """
    template = awx.store.named("job_templates", "delivery.toolchain drift")
    survey = awx.store.surveys[template["id"]]
    awx.store.surveys[template["id"]] = {**survey, "spec": survey["spec"][:1]}
    template["description"] = "Mine"
    schedule = awx.store.named("schedules", "delivery.toolchain housekeeping every week")
    schedule["enabled"] = True
    mark = len(awx.store.writes)
    assert setup(awx, folder)[0] == 1
    assert awx.store.surveys[template["id"]] == survey
    assert schedule["enabled"] is True
    written = [path for _method, path in awx.store.writes[mark:]]
    assert written == [template["url"], f"{template['url']}survey_spec/"]


def test_variables_select_objects_and_names(chosen: Store) -> None:
    project = chosen.named("projects", "delivery.toolchain of ours")
    assert project["scm_branch"] == "stable"
    assert project["scm_url"].endswith("/delivery.toolchain.git")
    environment = chosen.named("execution_environments", "delivery.toolchain")
    template = chosen.named("job_templates", "delivery.toolchain release")
    assert template["project"] == project["id"]
    assert template["execution_environment"] == environment["id"]
    assert template["organization"] == chosen.named("organizations", "Delivery")["id"]
    assert template["inventory"] == chosen.named("inventories", "Toolchain")["id"]
    assert linked(chosen, "job_templates", template["name"], "credentials") == ["staging repo"]
    assert "job_slice_count" not in template
    for name in ("drift", "enforce"):
        sliced = chosen.named("job_templates", f"delivery.toolchain {name}")
        assert sliced["job_slice_count"] == 8
        # otherwise all slices would check the same host
        assert json.loads(sliced["extra_vars"])["enforce_hosts"] == "all"
    (approval,) = chosen.objects["workflow_approval_templates"].values()
    assert "applies exactly those plans" in approval["description"]
    assert chosen.named("schedules", "delivery.toolchain drift every day")["enabled"] is True


def test_slices_with_a_shared_folder_are_summarised(chosen: Store) -> None:
    store, nodes = chosen, "workflow_job_template_nodes"
    drift = store.named("job_templates", "delivery.toolchain drift")
    variables = json.loads(drift["extra_vars"])
    assert variables["drift_report"] == "/reports/{{ ansible_play_hosts_all | first }}"
    summary = store.named("job_templates", "delivery.toolchain drift summary")
    assert summary["playbook"] == "playbooks/drift_summary.yml"
    assert "job_slice_count" not in summary
    assert json.loads(summary["extra_vars"]) == {
        "summary_reports": "/reports",
        "summary_folder": "/reports/summary",
        "summary_max_age": "12h",
    }
    (node,) = store.find(nodes, {"identifier": "summary"})
    assert node["unified_job_template"] == summary["id"]
    assert node["extra_data"] == {"survey_drift_fail": "true"}
    assert linked(store, nodes, "drift", "always_nodes") == ["summary"]
    assert linked(store, nodes, "drift", "failure_nodes") == []
    assert linked(store, nodes, "summary", "failure_nodes") == ["approval"]


def _slice(
    sandbox: Sandbox, folder: Path, template: Mapping[str, Any], hosts: list[str], **more: Any
) -> playbook.Run:
    """Run a slice of a job template on its part of the inventory."""
    login = connections.connection("tracker", sandbox.urls["tracker"])
    versions = {
        host: {"desired_state_versions": [{"project": "REL", "name": f"8.{host}"}]}
        for host in hosts
    }
    (folder / "hosts.json").write_text(json.dumps({"all": {"hosts": versions}}), encoding="utf-8")
    given = {**json.loads(template["extra_vars"]), "enforce_connections": {"tracker": login}}
    given.pop("drift_report", None)  # the folder that all nodes share
    name = template["playbook"].removeprefix("playbooks/").removesuffix(".yml")
    return playbook.run(
        folder,
        [{"import_playbook": f"delivery.toolchain.{name}"}],
        # the order of the hosts does not matter, and workers would take most of the time
        arguments=["-i", "hosts.json", "--forks", "1", "-e", json.dumps({**given, **more})],
        variables={"ANSIBLE_SHOW_CUSTOM_STATS": "true"},
    )


def test_slices_enforce_the_plans_of_all_slices(
    chosen: Store, fresh: Fresh, tmp_path: Path
) -> None:
    """Verify that a host takes its plan, also if the controller deals the hosts otherwise."""
    sandbox = fresh("real")
    drift, enforce = (
        chosen.named("job_templates", f"delivery.toolchain {name}") for name in ("drift", "enforce")
    )
    artifacts: dict[str, Any] = {}
    for hosts in (["a", "b"], ["c"]):
        run = _slice(sandbox, tmp_path, drift, hosts)
        assert run.code == 0, run.output
        reported = run.output.split("CUSTOM STATS")[1]
        # the controller merges the statistics of slices
        artifacts.update(json.loads(reported[reported.index("{") : reported.rindex("}") + 1]))
    plans = {name: each for name, each in artifacts.items() if "plan" in name}
    assert sorted(plan["hosts"] for plan in plans.values()) == [["a", "b"], ["c"]]
    run = _slice(sandbox, tmp_path, enforce, ["a", "c"], **artifacts)
    assert run.code == 0, run.output
    assert "Applied: 2 created" in run.output


def test_misspelt_variable_is_reported_before_anything_is_created(
    awx: Controller, tmp_path: Path
) -> None:
    _changed, output = setup(awx, tmp_path, code=2, awx_setup_organisation="Delivery")
    assert "awx_setup_organisation (did you mean awx_setup_organization?)" in " ".join(
        output.split()
    )
    assert awx.store.writes == []


def test_job_uses_its_survey_replies(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    responses = {
        "survey_repo_housekeeping_retention": "- build_name: nightly\n  count: 3\n",
        "survey_repo_housekeeping_max_deletions": 5,
        "survey_repo_housekeeping_rules": "",
    }
    login = connections.connection("repo", sandbox.urls["repo"])
    play = {
        "import_playbook": "delivery.toolchain.housekeeping",
        "vars": {"housekeeping_connection": login},
    }
    arguments = ["--check", "-e", json.dumps(responses)]
    run = playbook.run(tmp_path, [play], arguments=arguments)
    assert run.code == 0, run.output
    event = run.event("delivery.toolchain.repo_housekeeping : Discard old builds")
    assert [item["discarded"] for item in event.items] == [["101"]]


@pytest.mark.parametrize(
    ("survey", "drift", "words"),
    [
        ('{"format": 7}', {"format": 8}, "has format 7"),
        ("", {"format": 8}, "has format 8"),
    ],
)
def test_plan_of_the_survey_precedes_the_plan_of_drift(
    survey: str, drift: Any, words: str, tmp_path: Path
) -> None:
    variables = {"enforce_plan": PLAN, "survey_enforce_plan": survey, "drift_plan": drift}
    play = {"import_playbook": "delivery.toolchain.enforce"}
    run = playbook.run(tmp_path, [play], arguments=["-e", json.dumps(variables)])
    assert run.code == 2
    assert words in run.output


def test_execution_environment_can_be_built(tmp_path: Path) -> None:
    """Verify the definition and the build context. A full build would need a registry."""
    programs = Path(sys.executable).parent
    context = tmp_path / "context"
    subprocess.run(
        [str(programs / "ansible-builder"), "create", "--context", str(context)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    asked = (context / "_build" / "requirements.yml").read_text(encoding="utf-8")
    version = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
    archive = f"delivery-toolchain-{version}.tar.gz"
    assert yaml.safe_load(asked)["collections"][0]["name"] == archive
