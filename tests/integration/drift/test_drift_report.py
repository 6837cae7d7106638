# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the report of `drift` and of other playbooks: its content and its location."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from sandbox.client import Sandbox
from tests.helpers import connections, in_process, playbook

Fresh = Callable[[str], Sandbox]

PASSWORD = "enforced-password-1234567890"
CONFIG: dict[str, Any] = {
    "analysis_config_users": [{"name": "eve", "password": PASSWORD}],
    "analysis_config_groups": [{"name": "quality", "users": ["eve"]}],
    "analysis_config_modules": [{"project": "toolchain", "name": "core"}],
    "analysis_config_purge": ["modules"],
}
MORE: dict[str, Any] = {
    "ci_baseline_plugins": [{"name": "there-is-none"}, {"name": "git"}],
    "ci_baseline_java_versions": [11],
    "repo_housekeeping_retention": [{"build_name": "nightly", "count": 3}],
}
FILES = ["history.json", "report.html", "report.json", "report.md", "report.xml"]


def _logins(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    logins = {
        service: connections.connection(service, sandbox.urls[service])
        for service in ("repo", "ci", "analysis")
    }
    logins["repo"]["dialect"] = "jfrog"
    return logins


def _run(
    sandbox: Sandbox,
    folder: Path,
    name: str,
    variables: dict[str, Any],
    *,
    code: int = 0,
    settings: dict[str, str] | None = None,
    arguments: Sequence[str] = (),
) -> playbook.Run:
    logins = _logins(sandbox)
    play = {
        "import_playbook": f"delivery.toolchain.{name}",
        "vars": {**variables, "enforce_connections": logins},
    }
    run = playbook.run(folder, [play], variables=settings, arguments=arguments)
    assert run.code == code, run.output
    return run


def _read(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    # a run that failed before it compared anything has no plan
    names = {path.name for path in folder.iterdir()} - {"plan.json"}
    assert sorted(names) == FILES
    return report


def _short(report: dict[str, Any]) -> list[tuple[str, ...]]:
    keys = ("service", "kind", "name", "action", "status")
    return [tuple(finding[key] for key in keys) for finding in report["findings"]]


def test_one_report_contains_all_services(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    run = _run(sandbox, tmp_path, "drift", {**CONFIG, **MORE, "drift_report": "drift"})
    report = _read(tmp_path / "drift")
    assert _short(report) == [
        ("analysis", "user", "eve", "create", "drift"),
        ("analysis", "group", "quality", "update", "drift"),
        ("analysis", "module", "toolchain/ui, web", "delete", "drift"),
        ("ci", "plugin", "there-is-none", "create", "drift"),
        ("ci", "java", "17", "update", "drift"),
        ("repo", "build", "nightly/101", "delete", "drift"),
    ]
    assert report["counts"] == {
        "ok": 5,
        "drift": 6,
        "failed": 0,
        "unmanaged": 0,
        "unknown": 0,
        "ignored": 0,
    }
    assert (report["format"], report["check"], report["hosts"]) == (1, True, ["localhost"])
    group = report["findings"][1]
    assert group["text"] == "group quality: differs in users"
    assert (group["before"], group["after"]) == ({"users": ["Carol, QA"]}, {"users": ["eve"]})
    assert group["server"] == sandbox.urls["analysis"]
    assert "6 of 11 objects differ on all 3 servers." in run.output
    assert f"Report: {tmp_path}/drift/report.html" in run.output
    suites = ElementTree.parse(tmp_path / "drift/report.xml").getroot()
    assert suites.attrib.items() >= {"tests": "11", "failures": "6", "errors": "0"}.items()
    assert len(suites.findall(".//testcase")) == 11
    assert len(suites.findall(".//failure")) == 6
    assert "group quality: differs in users" in (tmp_path / "drift/report.md").read_text("utf-8")
    # a run that compares nothing keeps an earlier report
    before = (tmp_path / "drift/report.json").read_text("utf-8")
    wrong = {**CONFIG, "analysis_config_max_deletions": "many", "drift_report": "drift"}
    since = sandbox.mark()
    run = _run(sandbox, tmp_path, "drift", wrong, code=2)
    assert "analysis_config_max_deletions" in run.output
    assert sandbox.requests("analysis", since=since) == []
    assert (tmp_path / "drift/report.json").read_text("utf-8") == before


def test_unreadable_service_is_a_finding_and_no_file_contains_a_secret(
    fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    logins = _logins(sandbox)
    logins["analysis"].update(connections.WRONG_LOGINS["analysis"])
    logins["ci"] = {"url": sandbox.urls["ci"].replace("://", "://builder:other-secret-123@")}
    variables = {**CONFIG, **MORE, "enforce_connections": logins}
    play = {"import_playbook": "delivery.toolchain.drift", "vars": variables}
    folder = tmp_path / "made/by itself"
    place = {"TOOLCHAIN_REPORT": str(folder)}
    run = playbook.run(tmp_path, [play], variables=place, arguments=["--diff", "-vvv"])
    assert run.code == 2, run.output
    report = _read(folder)
    url = sandbox.urls["analysis"]
    assert _short(report)[0] == ("analysis", "server", url, "none", "failed")
    text = f"server {url}: login refused (401); 3 objects not compared"
    assert [report["findings"][0][key] for key in ("server", "text")] == [url, text]
    of_ci = [finding for finding in report["findings"] if finding["service"] == "ci"]
    assert {finding["server"] for finding in of_ci} == {sandbox.urls["ci"]}
    assert ("repo", "build", "nightly/101", "delete", "drift") in _short(report)
    cases = ElementTree.parse(folder / "report.xml").getroot()
    errors = [case.get("type") for case in cases.findall(".//error")]
    assert errors == ["none"] * report["counts"]["failed"]
    secrets = [secret for login in logins.values() for secret in connections.secrets(login)]
    for file in folder.iterdir():
        written = file.read_text("utf-8")
        shown = [each for each in (*secrets, PASSWORD, "other-secret") if each in written]
        assert shown == [], file.name


def test_enforce_reports_its_changes_and_then_none(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    output = {**CONFIG, "drift_output": "github"}
    run = _run(sandbox, tmp_path, "enforce", {**output, "drift_report": "{{ 'en' ~ 'forced' }}"})
    assert "3 of 4 objects were changed on 1 server." in run.output
    assert run.output.count("::warning title=analysis") == 3
    changed = _read(tmp_path / "enforced")
    assert (changed["check"], changed["counts"]) == (
        False,
        {"ok": 1, "drift": 3, "failed": 0, "unmanaged": 0, "unknown": 0, "ignored": 0},
    )
    run = _run(sandbox, tmp_path, "enforce", {**output, "drift_report": "enforced"})
    assert "::" not in run.output
    assert _read(tmp_path / "enforced")["counts"] == {
        "ok": 2,
        "drift": 0,
        "failed": 0,
        "unmanaged": 0,
        "unknown": 1,
        "ignored": 0,
    }
    history = json.loads((tmp_path / "enforced/history.json").read_text("utf-8"))
    assert [run["counts"]["drift"] for run in history] == [3, 0]
    assert history[0].keys() == {"finished", "playbook", "check", "counts"}


def test_enforce_reports_both_sides_like_drift(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    login = connections.connection("tracker", sandbox.urls["tracker"])
    make = {"project": "REL", "name": "8.1", "description": "one"}
    for name in ("8.1", "8.2"):
        assert in_process.run("tracker_version", {**make, **login, "name": name})["changed"]
    variables = {
        "desired_state_versions": [
            {**make, "description": "two"},
            {"project": "REL", "name": "8.2", "state": "absent"},
            {"project": "REL", "name": "8.3"},
        ],
        "enforce_connections": {"tracker": login},
    }
    reports = {}
    for name in ("drift", "enforce"):
        play = {
            "import_playbook": f"delivery.toolchain.{name}",
            "vars": {**variables, "drift_report": name},
        }
        # a task of an unrelated play must not affect the report
        other = playbook.play([{"ansible.builtin.debug": {"msg": "done"}}])
        run = playbook.run(tmp_path, [play, other])
        assert run.code == 0, run.output
        told = {"drift": "missing", "enforce": "created"}[name]
        assert f"+ version REL/8.3: {told}" in run.output
        assert '"two"' not in run.output.split("PLAY RECAP")[0] or name == "drift"
        reports[name] = _read(tmp_path / name)
    assert [finding["action"] for finding in reports["enforce"]["findings"]] == [
        "update",
        "delete",
        "create",
    ]
    enforced, found = (
        [{**finding, "first_seen": "", "text": ""} for finding in reports[name]["findings"]]
        for name in ("enforce", "drift")
    )
    assert enforced == found
    assert (reports["drift"]["check"], reports["enforce"]["check"]) == (True, False)
    assert "were changed" not in (tmp_path / "drift/report.md").read_text("utf-8")


def test_any_playbook_with_the_callback_is_reported(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    defaults = connections.module_defaults(sandbox.urls, repo={"dialect": "jfrog"})
    body = {"space": "REL", "title": "Drift", "body": "<p>new</p>"}
    tasks = [
        playbook.task("wiki_page", body, "A page"),
        playbook.task("analysis_user", {"name": "{{ item }}"}, "Users", loop=["analyst", "eve"]),
        playbook.task(
            "analysis_user",
            {"name": "adam", "password": PASSWORD},
            "A secret user",
            no_log=True,
        ),
        playbook.task("analysis_user", {"name": "{{ none_such }}"}, "Failing"),
        playbook.task(
            "wiki_page", {**body, "title": "Told"}, "Left out", vars={"toolchain_report": "none"}
        ),
        playbook.task("analysis_info", {"gather": ["version"]}, "Reading"),
    ]
    plays = [playbook.play(tasks, module_defaults=defaults)]
    run = playbook.run(
        tmp_path,
        plays,
        arguments=["--check", "--diff", "-e", "drift_report=report"],
        variables={"ANSIBLE_CALLBACKS_ENABLED": "recorder,delivery.toolchain.report"},
    )
    report = _read(tmp_path / "report")
    assert _short(report) == [
        ("wiki", "page", "REL/Drift", "create", "drift"),
        ("analysis", "user", "eve", "create", "drift"),
        ("analysis", "user", "A secret user", "update", "drift"),
        ("analysis", "user", "Failing", "none", "failed"),
    ], run.output
    assert (report["check"], report["playbook"]) == (True, "playbook.json")
    assert "new" in report["findings"][0]["after"]
    assert report["counts"]["ok"] == 1


def test_folder_that_cannot_be_created_fails_the_run_first(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    run = _run(sandbox, tmp_path, "drift", {**CONFIG, "drift_report": "file"}, code=2)
    assert sandbox.requests("analysis") == []
    assert str(tmp_path / "file") in run.output


def test_playbook_needs_no_configuration(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    values = {**CONFIG, "enforce_connections": _logins(sandbox), "drift_report": "drift"}
    (tmp_path / "values.json").write_text(json.dumps(values), encoding="utf-8")
    environment = playbook.environment(tmp_path)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
    arguments = ["delivery.toolchain.drift", "-e", "@values.json", "-e", "drift_fail=true"]
    run = playbook.execute(arguments, tmp_path, environment)
    assert run.returncode == 2, run.stdout
    report = _read(tmp_path / "drift")
    assert report["playbook"] == "delivery.toolchain.drift"
    assert report["counts"] == {
        "ok": 1,
        "drift": 3,
        "failed": 0,
        "unmanaged": 0,
        "unknown": 0,
        "ignored": 0,
    }


def test_wiki_summary_changes_only_with_the_findings(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    page = {"drift_page": {"space": "REL", "title": "Drift"}}

    def publish(**variables: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the results of the page and of the statistics."""
        logins = {**_logins(sandbox), "wiki": connections.connection("wiki", sandbox.urls["wiki"])}
        variables = {**page, **CONFIG, "enforce_connections": logins, **variables}
        play = {"import_playbook": "delivery.toolchain.drift", "vars": variables}
        run = playbook.run(tmp_path, [play])
        stats = run.event("Set the findings as statistics").result["ansible_stats"]["data"]
        return run.event("Publish what differs").result, stats

    first, _stats = publish(drift_report="drift")
    assert first["changed"] is True
    assert "group quality: differs in users" in first["diff"]["after"]
    assert _read(tmp_path / "drift")["counts"] == {
        "ok": 1,
        "drift": 3,
        "failed": 0,
        "unmanaged": 0,
        "unknown": 0,
        "ignored": 0,
    }
    again, stats = publish()
    assert again["changed"] is False
    # the statistics contain the plan also without the folder of a report
    assert len(stats["drift_plan"]["entries"]) == 3
    assert {(one["name"], one["status"]) for one in stats["drift_findings"]} >= {
        ("quality", "drift")
    }
    wrong = {**_logins(sandbox), "wiki": connections.connection("wiki", sandbox.urls["wiki"])}
    wrong["analysis"].update(connections.WRONG_LOGINS["analysis"])
    failed, _stats = publish(enforce_connections=wrong)
    assert failed["changed"] is True
    assert "1 server not read (3 objects)." in failed["diff"]["after"]


def test_second_night_separates_new_persistent_resolved_and_ignored_findings(
    fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    reason = "goes with the next release"
    accept = [{"kind": "module", "reason": reason, "until": "2999-12-31"}]
    # YAML reads it as a date
    dated = f"drift_ignore: [{{kind: module, reason: {reason}, until: 2999-12-31}}]\n"
    (tmp_path / "ignore.yml").write_text(dated, encoding="utf-8")
    from_file = ["-e", "@ignore.yml"]
    variables = {**CONFIG, "drift_report": "drift", "drift_fail": True}
    first = _run(sandbox, tmp_path, "drift", variables, code=2, arguments=from_file)
    assert "2 objects differ: user eve: missing; group quality" in first.output
    assert "Result: differs" in first.output.splitlines()[-1]
    _run(sandbox, tmp_path, "enforce", {key: CONFIG[key] for key in ("analysis_config_users",)})
    run = _run(
        sandbox,
        tmp_path,
        "drift",
        variables,
        code=2,
        settings={"ANSIBLE_SHOW_CUSTOM_STATS": "true"},
        arguments=from_file,
    )
    report = _read(tmp_path / "drift")
    assert [
        (finding["name"], finding["since"], finding["status"]) for finding in report["findings"]
    ] == [
        ("quality", "still", "drift"),
        ("toolchain/ui, web", "still", "ignored"),
        ("eve", "new", "unknown"),
    ]
    assert [one["name"] for one in report["resolved"]] == ["eve"]
    assert "1 new, 1 still, 1 resolved." in run.output
    reported = json.loads(run.output.split("RUN: ")[1].split("\n\n")[0])
    assert [finding["id"] for finding in reported["drift_findings"]] == [
        finding["id"] for finding in report["findings"]
    ]
    assert [one["name"] for one in reported["drift_resolved"]] == ["eve"]
    assert reported["drift_result"] == report["result"] == "differs"
    plan = json.loads((tmp_path / "drift/plan.json").read_text("utf-8"))
    assert reported["drift_plan"] == plan
    assert [entry["name"] for entry in plan["entries"]] == ["quality"]
    fine = {**variables, "drift_ignore": [*accept, {"kind": "group"}]}
    assert "Result: as wanted" in _run(sandbox, tmp_path, "drift", fine).output


def test_survey_replies_reach_the_report_beside_an_unreadable_history(
    fresh: Fresh, tmp_path: Path
) -> None:
    responses = {
        "survey_drift_ignore": "- kind: user\n  until: 2999-12-31\n",
        "survey_drift_report": "told",
        "survey_drift_output": "github",
    }
    (tmp_path / "told").mkdir()
    (tmp_path / "told/history.json").write_text("[{", encoding="utf-8")
    run = _run(fresh("real"), tmp_path, "drift", {**CONFIG, **responses})
    kept = tmp_path / "told/history.json.unreadable"
    assert kept.rename(tmp_path / "kept").read_text("utf-8") == "[{"
    assert len(json.loads((tmp_path / "told/history.json").read_text("utf-8"))) == 1
    assert "is not a history of reports" in " ".join(run.output.split())
    assert _read(tmp_path / "told")["counts"]["ignored"] == 1
    assert "; 1 ignored." in run.output
    reason = "ignored until 2999\\-12\\-31: no reason given"
    assert reason.replace("\\", "") in (tmp_path / "told/report.md").read_text("utf-8")
    assert "::warning title=analysis" in run.output


def test_invalid_ignored_pattern_is_reported_before_any_request(
    fresh: Fresh, tmp_path: Path
) -> None:
    sandbox = fresh("real")
    wrong = {**CONFIG, "drift_ignore": [{"nam": "eve"}]}
    run = _run(sandbox, tmp_path, "drift", wrong, code=2)
    assert "drift_ignore[0] has the unknown key nam (did you mean name?)" in run.output
    assert sandbox.requests("analysis") == []


def test_terminal_shows_only_the_plan(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    quiet = {"ANSIBLE_STDOUT_CALLBACK": "delivery.toolchain.plan"}
    summary = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    variables = {**CONFIG, "drift_output": "github"}
    run = _run(sandbox, tmp_path, "drift", variables, settings={**quiet, **summary})
    url = sandbox.urls["analysis"]
    title = f"analysis {url.replace(':', '%3A')}"
    assert run.output.split("\n\n", 2)[2].splitlines() == [
        f"analysis {url}",
        "~ group quality: differs in users",
        "    users: Server: [Carol, QA], Git: [eve]",
        "- module toolchain/ui, web: not wanted",
        "    Delete on the server",
        "    - on the server",
        *('    - project: "toolchain"', '    - name: "ui, web"', "    - allow_all: false"),
        '    - paths: ["**/ui/*", "**/web/*"]',
        "+ user eve: missing",
        *("    + in Git", '    + name: "eve"'),
        "",
        "3 of 4 objects differ on 1 server.",
        "Plan: 1 to create, 1 to update, 1 to delete.",
        f"::warning title={title}::+ user eve: missing",
        f"::warning title={title}::~ group quality: differs in users",
        f"::warning title={title}::- module toolchain/ui, web: not wanted",
        "Result: differs",
    ]
    assert "group quality: differs in users" in (tmp_path / "summary.md").read_text("utf-8")
    wrong = {**CONFIG, "drift_output": "gitlab"}
    begin = sandbox.mark()
    run = _run(sandbox, tmp_path, "enforce", wrong, code=2, settings=quiet)
    assert sandbox.requests(since=begin) == []
    assert "! task" in run.output
    assert "drift_output must be one of text, github, not 'gitlab'." in run.output
    assert "PLAY" not in run.output


def test_invalid_page_option_is_reported(fresh: Fresh, tmp_path: Path) -> None:
    wrong = {**CONFIG, "drift_page": {"space": "REL", "titel": "Drift"}}
    run = _run(fresh("real"), tmp_path, "drift", wrong, code=2)
    assert "drift_page has no titel" in run.output


SHELL = """<project><description>x</description><builders><hudson.tasks.Shell><command>
curl -H &quot;Authorization: Bearer {0}-bearer.1&quot; http://me:{0}-address@127.0.0.1:1/
make deploy --password={0}-argument API_TOKEN='{0} assigned' ; mysql -u me -p{0}-short
</command></hudson.tasks.Shell></builders></project>"""


def test_secrets_in_shell_steps_are_in_no_output(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    folder = tmp_path / "desired"
    folder.mkdir()
    (folder / "ci.yml").write_text(
        "jobs:\n  - {job: build, src: build.xml}\n  - {job: other, src: build.xml}\n", "utf-8"
    )
    login = _logins(sandbox)["ci"]
    job = {"job": "build", "config": SHELL.format("canary1")}
    assert in_process.run("ci_job", {**job, **login})["changed"]
    (folder / "build.xml").write_text(SHELL.format("canary2"), "utf-8")
    outputs = []
    for name in ("drift", "enforce"):
        play = {
            "import_playbook": f"delivery.toolchain.{name}",
            "vars": {
                "desired_state_folder": "desired",
                "drift_report": name,
                "enforce_connections": {"ci": login},
            },
        }
        run = playbook.run(tmp_path, [play], arguments=["--diff", "-vvv"])
        assert run.code == 0, run.output
        outputs.append(run.output)
    report = json.loads((tmp_path / "drift/report.json").read_text("utf-8"))
    found = {finding["name"]: finding for finding in report["findings"]}
    assert {name: one["action"] for name, one in found.items()} == {
        "build": "update",
        "other": "create",
    }
    finding = found["build"]
    assert "--password=*** (new)" in finding["after"]
    files = [
        path.read_text("utf-8")
        for name in ("drift", "enforce")
        for path in (tmp_path / name).iterdir()
    ]
    for text in (*outputs, *files):
        assert "canary" not in text


def test_refused_changes_are_differences(fresh: Fresh, tmp_path: Path) -> None:
    """A credential without its secret, and a list that would lose an item, are no failures."""
    sandbox = fresh("real")
    nodes = [{"permanent": {"name": name}} for name in ("one", "two")]
    live = {"jenkins": {"systemMessage": "Hello", "nodes": nodes}}
    sandbox.seed({"ci": {"configuration": live}})
    sections = [{"config": {"jenkins": {"systemMessage": "Other", "nodes": nodes[:1]}}}]
    credentials = [{"id": "git-login", "description": "Other"}]
    state = {"desired_state_credentials": credentials, "desired_state_configuration": sections}
    run = _run(
        sandbox,
        tmp_path,
        "drift",
        {**state, "enforce_roles": ["desired_state"], "drift_report": "drift"},
    )
    report = _read(tmp_path / "drift")
    assert _short(report) == [
        ("ci", "configuration", "jenkins", "update", "drift"),
        ("ci", "credential", "git-login", "update", "drift"),
    ]
    configuration, credential = report["findings"]
    assert "set login_password" in credential["text"]
    assert credential["after"] == {"description": "Other"}
    assert set(configuration["after"]) == {"jenkins.systemMessage", "jenkins.nodes[two]"}
    assert "add jenkins.nodes to replaces" in configuration["text"]
    assert "Result: differs" in run.output
