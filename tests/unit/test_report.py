# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the conversion of module results to a report, and the files of the report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.delivery.toolchain.plugins.filter.findings_page import findings_page
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.finding import (
    Reporting,
    ReportingFailure,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import findings
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.descriptors import (
    operation_of,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    ignored,
    links,
    task_findings,
    terminal,
    texts,
    tickets,
    writing,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    recorder as recorder_module,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    KEYS,
    Contents,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.recorder import (
    Recorder,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import Last
from tests.helpers.reported import reporting
from tools.descriptors import DESCRIPTORS

STEP = "delivery.toolchain.bookkeeping"

SERVER = "https://ci.example.com"
EVIL = 'a|b`<b>\x00\x1b[31m\ud800 "&'


def add(contents: Contents, name: str, status: str = "drift", **values: Any) -> None:
    one = {"host": "h", "service": "ci", "server": SERVER, "kind": "job", "action": "update"}
    text = values.pop("text", f"job {name}: differs")
    contents.add(**{**one, "name": name, "text": text, "status": status, **values})


def told(found: list[findings.Finding]) -> list[str]:
    return [f"{one['text']} ({one['action']}, {one['status']})" for one in found]


WITHOUT_FILE = ", because no file of its tree describes it; prune of the tree deletes it"
PLUGINS: dict[str, Any] = {
    name: [] for name in ("missing", "outdated", "newer", "inactive", "unwanted", "extra")
}
RESULTS: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[str]]] = {
    "one object as wanted": (
        "analysis_view",
        {"changed": False},
        {"project": "p", "name": "v"},
        ["view p/v: as wanted (none, ok)"],
    ),
    "an update of some fields": (
        "analysis_view",
        {"changed": True, "diff": {"before": {"a": 1, "b": 2}, "after": {"a": 1, "b": 3}}},
        {"project": "p", "name": "v"},
        ["view p/v: differs in b (update, drift)"],
    ),
    "what is shown with its own letters": (
        "tracker_version",
        {
            "changed": True,
            "diff": {"before": '{"name": "Größe", "rank": 1}\n', "after": '{"name": "Größe"}\n'},
        },
        {"project": "OPS", "name": "1.0"},
        ["version OPS/1.0: differs in rank (update, drift)"],
    ),
    "text that is not a mapping": (
        "ci_job",
        {"changed": True, "diff": {"before": "{broken", "after": "<a/>"}},
        {"job": "x"},
        ["job x: differs in a (update, drift)"],
    ),
    "something missing": (
        "analysis_user",
        {"changed": True, "diff": {"before": {}, "after": {"name": "eve"}}},
        {"name": "eve"},
        ["user eve: missing (create, drift)"],
    ),
    "something unwanted": (
        "analysis_user",
        {"changed": True, "diff": {"before": {"name": "eve"}, "after": {}}},
        {"name": "eve"},
        ["user eve: not wanted (delete, drift)"],
    ),
    "without a diff": (
        "tracker_version",
        {"changed": True},
        {"project": "OPS", "name": "1.0"},
        ["version OPS/1.0: differs (update, drift)"],
    ),
    "a page that the task names by its id": (
        "wiki_page",
        {"changed": False, "page": {"space": "REL", "title": "Notes"}},
        {"page_id": "7"},
        ["page REL/Notes: as wanted (none, ok)"],
    ),
    "a page of which nothing else is known": (
        "wiki_page",
        {"changed": True},
        {"page_id": "7"},
        ["page 7: differs (update, drift)"],
    ),
    "a list of values in a name, and a value that is missing": (
        "build_record",
        {"changed": False},
        {"project": None, "build_name": "b", "build_numbers": ["7", "8"]},
        ["build b/7/8: as wanted (none, ok)"],
    ),
    "a name that is always the same": (
        "ci_restart",
        {"changed": True},
        {},
        ["server restart: differs (update, drift)"],
    ),
    "a list with actions": (
        "artifact_deploy",
        {
            "artifacts": [
                {"repo": "r", "path": "a", "action": "unchanged"},
                {"repo": "r", "path": "b", "action": "uploaded"},
                {"repo": "r", "path": "c", "action": "deleted"},
                {"repo": "r", "path": "d", "action": "properties"},
            ]
        },
        {"repo": "r", "path": "b", "content": "x"},
        [
            "item r/a: as wanted (none, ok)",
            "item r/b: missing (create, drift)",
            "item r/c: not wanted (delete, drift)",
            "item r/d: differs (properties) (update, drift)",
        ],
    ),
    "a list with changes": (
        "tracker_issue",
        {
            "issues": [
                {
                    "key": "OPS-1",
                    "action": "updated",
                    "changes": [{"field": "labels", "before": [], "after": ["x"]}],
                }
            ]
        },
        {"issue": "OPS-1", "labels": ["x"]},
        ["issue OPS-1: differs in labels (update, drift)"],
    ),
    "a tree of pages": (
        "wiki_tree",
        {
            "pages": [
                {
                    "title": "Notes",
                    "action": "created",
                    "changes": [{"field": "body", "after": "x"}],
                },
                {
                    "title": "Old",
                    "action": "moved",
                    "changes": [{"field": "parent", "before": "1", "after": "2"}],
                },
                {"title": "Same", "action": "unchanged", "changes": []},
            ],
            "without_file": [{"id": "5", "title": "Left"}],
        },
        {"space": "REL", "src": "docs", "parent_id": "1"},
        [
            "page REL/Notes: missing (create, drift)",
            "page REL/Old: differs in parent (update, drift)",
            "page REL/Same: as wanted (none, ok)",
            f"page REL/Left: not managed{WITHOUT_FILE} (none, unmanaged)",
        ],
    ),
    "a reading": ("jql_search", {"changed": False, "issues": []}, {"jql": "x"}, []),
    "a job that is held against a configuration": (
        "ci_job_info",
        {"config_drift": True},
        {"job": "a/b", "expected_config": "<project/>"},
        ["job a/b: differs (update, drift)"],
    ),
    "a job that is read": ("ci_job_info", {}, {"job": "a"}, []),
    "a script by the item of its loop": (
        "ci_script",
        {"changed": True},
        {"script": "x"},
        ["script the task: would change something (update, drift)"],
    ),
    "a result that no_log hides": (
        "analysis_user",
        {"censored": "hidden", "changed": True},
        {},
        ["user the task: differs, but no_log hides the difference (update, drift)"],
    ),
    "a reading that no_log hides": ("analysis_info", {"censored": "hidden"}, {}, []),
    "a configuration": (
        "analysis_config",
        {
            "plan": [
                {
                    "kind": "roles",
                    "name": "a",
                    "action": "create",
                    "changes": [{"field": "name", "after": "a"}],
                }
            ],
            "counts": {"unchanged": 3},
        },
        {"roles": [{"name": "a"}, {"name": "b"}], "views": [{"project": "p", "name": "v"}]},
        [
            "role a: missing (create, drift)",
            "role b: as wanted (none, ok)",
            "view p/v: as wanted (none, ok)",
            "object 3: as wanted (none, ok)",
        ],
    ),
    "users with passwords": (
        "analysis_config",
        {
            "plan": [{"kind": "users", "name": "a", "action": "update", "changes": []}],
            "counts": {"unchanged": 2},
            "unknown": [
                {"kind": "users", "name": name, "fields": ["password"]} for name in ("a", "b")
            ],
        },
        {"users": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
        [
            "user a: differs; cannot compare password (update, drift)",
            "user b: cannot compare password (none, unknown)",
            "user c: as wanted (none, ok)",
        ],
    ),
    "fields that cannot be compared": (
        "ci_configuration",
        {"unknown": ["jenkins.a", "jenkins.b"], "configuration": {"name": "jenkins"}},
        {"config": {"jenkins": {}}},
        ["configuration jenkins: cannot compare jenkins.a, jenkins.b (none, unknown)"],
    ),
    "entries of which a secret cannot be compared": (
        "ci_credential",
        {
            "results": [
                {"name": "a", "action": "unchanged", "changes": [], "unknown": ["secret"]},
                {"name": "b", "action": "deleted", "changes": [], "unknown": ["secret"]},
                {
                    "name": "c",
                    "action": "updated",
                    "changes": [{"field": "description", "before": "x", "after": "y"}],
                    "unknown": ["secret"],
                },
            ]
        },
        {"entries": []},
        [
            "credential a: cannot compare secret (none, unknown)",
            "credential b: not wanted (delete, drift)",
            "credential c: differs in description; cannot compare secret (update, drift)",
        ],
    ),
    "a failure that failed_when accepts": (
        "wiki_space",
        {"msg": "there is no space X", "error": {"kind": "not_found"}},
        {"key": "X", "name": "Y"},
        ["space X: there is no space X (none, failed)"],
    ),
    "a start of a task in the background": (
        "wiki_space",
        {"changed": True, "started": 1, "finished": 0, "ansible_job_id": "j1.2"},
        {},
        [
            "space the task: runs in the background (async), so its result is not known (none, unknown)"
        ],
    ),
    "a lock file": (
        "ci_plugin_info",
        {**PLUGINS, "missing": ["a"], "plugins": [{"short_name": "b"}]},
        {"lock_file": "plugins.txt", "lock": "write"},
        ["plugin a: missing (create, drift)", "plugin b: as wanted (none, ok)"],
    ),
}


@pytest.mark.parametrize("what", RESULTS)
def test_result_gives_its_objects(what: str) -> None:
    module, result, options, expected = RESULTS[what]
    if not {"censored", "error", "ansible_job_id"} & {*result}:
        result = reporting(module, result, options)
    assert told(task_findings.compared(module, result, options, "the task")) == expected


REPORTING = (Reporting, ReportingFailure)


def test_objects_of_every_writing_module_are_known() -> None:
    described = {name for name, one in DESCRIPTORS.items() if one.kind}
    described |= {name for name in DESCRIPTORS if issubclass(operation_of(name), REPORTING)}
    assert {name for name, one in DESCRIPTORS.items() if one.writes} - described == set()


def test_cleanup_lists_a_thousand_items_and_the_rest_as_a_number() -> None:
    items = [{"repo": "r", "path": str(n), "reason": "old"} for n in range(1234)]
    values = {"deleted": items, "kept": [{"repo": "r", "path": "k"}]}
    result = reporting("artifact_cleanup", values, {"rules": []})
    found = task_findings.compared("artifact_cleanup", result, {}, "Clean")
    assert len(found) == 1002
    assert (found[1000]["text"], found[1000]["before"]) == (
        "item 234 more: not wanted",
        {"count": 234},
    )
    assert found[1001]["status"] == "ok"


FAILURES: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[str]]] = {
    "an object": (
        "analysis_user",
        {"msg": "the server says no"},
        {"name": "eve"},
        ["user eve: the server says no (none, failed)"],
    ),
    "hidden": (
        "analysis_user",
        {"censored": "x", "msg": "secret"},
        {},
        ["user the task: failed, but no_log hides the message (none, failed)"],
    ),
    "one of several objects": (
        "artifact_deploy",
        {"msg": "no"},
        {"repo": "r", "path": "a"},
        ["item r/a: no (none, failed)"],
    ),
    "several objects, of which none has a name": (
        "tracker_issue",
        {"msg": "no"},
        {"key": None},
        ["task the task: no (none, failed)"],
    ),
    "a part of a configuration": (
        "analysis_config",
        {
            "msg": "1 of 2 changes failed",
            "plan": [
                {"kind": "roles", "name": name, "action": "delete", "changes": []} for name in "ab"
            ],
            "applied": [
                {"kind": "roles", "name": "a", "ok": True},
                {"kind": "roles", "name": "b", "ok": False, "error": {"msg": "refused"}},
            ],
        },
        {"roles": []},
        ["role a: not wanted (delete, drift)", "role b: refused (none, failed)"],
    ),
    "another task": (
        "",
        {"msg": "no", "findings": ["of another collection"]},
        {},
        ["task the task: no (none, failed)"],
    ),
}


@pytest.mark.parametrize("what", FAILURES)
def test_failure_is_reported(what: str) -> None:
    module, result, options, expected = FAILURES[what]
    if "plan" in result:
        result = reporting(module, {"failed": True, **result}, options)
    assert told(task_findings.failed(module, result, options, "the task")) == expected


def test_refused_change_is_a_difference_of_a_drift() -> None:
    error = {"kind": "invalid", "msg": "the credential 'a': set login_password"}
    change = {"field": "description", "before": "x", "after": "y"}
    row = {"name": "a", "action": "updated", "changes": [change], "error": error}
    fine = {"name": "b", "action": "unchanged", "changes": []}
    result = {"msg": "1 of 2 failed", "error": error, "results": [row, fine]}
    result = reporting("ci_credential", {"failed": True, **result}, {"entries": []})
    found = task_findings.failed("ci_credential", result, {}, "the task", check=True)
    assert told(found) == [
        "credential a: differs in description; set login_password (update, drift)",
        "credential b: as wanted (none, ok)",
    ]
    assert (found[0]["before"], found[0]["after"]) == ({"description": "x"}, {"description": "y"})
    assert told(task_findings.failed("ci_credential", result, {}, "the task"))[0] == (
        "credential a: set login_password (none, failed)"
    )
    changes = [{"path": "jenkins.m", "before": 1, "after": 2}]
    one = {"msg": "would remove a", "error": error, "changes": changes}
    one["configuration"] = {"name": "jenkins"}
    assert told(task_findings.failed("ci_configuration", one, {}, "the task", check=True)) == [
        "configuration jenkins: differs in jenkins.m; would remove a (update, drift)"
    ]
    one["error"] = {"kind": "server"}
    assert told(task_findings.failed("ci_configuration", one, {}, "the task", check=True)) == [
        "configuration jenkins: would remove a (none, failed)"
    ]


def test_object_is_one_finding_for_any_number_of_tasks() -> None:
    contents = Contents(check=True)
    add(contents, "a", before=1, after=2)
    add(contents, "a", before=2, after=3)
    add(contents, "b", "failed")
    add(contents, "b", "ok")
    assert [
        (finding["name"], finding["before"], finding["after"]) for finding in contents.findings
    ] == [
        ("a", 1, 3),
        ("b", None, None),
    ]
    counts = {"ok": 0, "drift": 1, "failed": 1, "unmanaged": 0, "unknown": 0, "ignored": 0}
    assert contents.counts == counts
    assert [list(finding) for finding in contents.findings] == [list(KEYS)] * 2


@pytest.mark.parametrize(
    ("statuses", "check", "words"),
    [
        ([], True, "Nothing was compared."),
        (["ok"], True, "1 object on 1 server is in sync."),
        (["ok", "drift"], True, "1 of 2 objects differs on 1 server."),
        (["drift"], False, "1 object was changed on 1 server."),
        (["failed"], True, "Nothing was compared: 1 failure."),
        (["failed", "failed"], False, "2 failures."),
        (["ok", "failed"], True, "2 objects on 1 server: 1 failed."),
        (
            ["ok", "unmanaged", "unknown", "unknown"],
            True,
            "4 objects on 1 server: 1 unmanaged, 2 unknown.",
        ),
    ],
)
def test_report_has_a_summary_sentence(statuses: list[str], check: bool, words: str) -> None:
    contents = Contents(check=check)
    for number, status in enumerate(statuses):
        add(contents, str(number), status)
    assert contents.sentence() == words


@pytest.mark.parametrize(
    ("statuses", "check", "lost", "words"),
    [
        (
            {"ok": 802, "drift": 2},
            True,
            [1200],
            "1 server not read (1,200 objects); 2 of 804 differ.",
        ),
        (
            {"ok": 3, "drift": 1, "failed": 1, "unmanaged": 2},
            True,
            [1, 0],
            "2 servers not read (1 object); 1 of 7 differs; 1 failed; 2 unmanaged.",
        ),
        ({"ok": 1, "drift": 2}, False, [0], "1 server not read; 2 of 3 were changed."),
        (
            {"ok": 1},
            True,
            [4],
            "1 server not read (4 objects); 1 object on 1 server is in sync.",
        ),
        (
            {"ok": 5, "failed": 1},
            True,
            [4],
            "1 server not read (4 objects); 6 objects on 1 server: 1 failed.",
        ),
        ({}, True, [4], "Nothing was compared: 1 server not read (4 objects)."),
        ({"failed": 2}, False, [4], "1 server not read (4 objects); 2 failures."),
    ],
)
def test_server_that_was_not_read_is_first(
    statuses: dict[str, int], check: bool, lost: list[int], words: str, tmp_path: Path
) -> None:
    contents = Contents(check=check)
    for status, count in statuses.items():
        for number in range(count):
            add(contents, f"{status}{number}", status)
    for number, count in enumerate(lost):
        place = ("h", "wiki", f"https://wiki{number}")
        contents.add_refused(place, "connection refused", count, "Manage")
    found = contents.since()
    assert found.sentence() == words
    assert words in [line.text for line in terminal.table(found)]
    writing.write(tmp_path, found)
    assert words in (tmp_path / "report.md").read_text("utf-8")
    assert f'<h1 class="failed">{words}</h1>' in (tmp_path / "report.html").read_text("utf-8")
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert tickets.counted(report, {"new": [], "changed": [], "ended": []}).startswith(words)
    page = findings_page(found.findings)
    assert f"<strong>{words.partition(';')[0]}" in page or not statuses


def test_names_are_escaped_in_every_file(tmp_path: Path) -> None:
    contents = Contents("play.yml", finished="2026-01-01T00:00:00Z")
    add(contents, EVIL, text=EVIL, before=EVIL, task=EVIL)
    assert writing.write(tmp_path, contents) == []
    (case,) = ElementTree.parse(tmp_path / "report.xml").getroot().iter("testcase")
    assert case.get("name", "").startswith("a|b`<b>")
    assert "\nbefore:\n  a|b" in str(case[0].text)
    assert r"a\|b\`\<b\>" in (tmp_path / "report.md").read_text("utf-8")
    assert "<b>" not in (tmp_path / "report.html").read_text("utf-8")
    assert json.loads((tmp_path / "report.json").read_text("utf-8"))["counts"]["drift"] == 1
    (tmp_path / "other").touch()
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("@team/ops see www.example.org", "@&#8203;team/ops see www&#8203;.example.org"),
        ("me@example.org", "me@&#8203;example.org"),
        ("org/repo#12", r"org/repo\#&#8203;12"),
        ("a @ b # c", r"a @ b \# c"),
    ],
)
def test_names_in_markdown_refer_to_nobody(name: str, written: str) -> None:
    assert texts.escaped(name) == written


def test_history_is_limited_to_a_year(tmp_path: Path) -> None:
    counts = {"ok": 1, "drift": 0, "failed": 0}
    runs = [{"finished": str(n), "counts": counts} for n in range(writing.MAX_RUNS)]
    (tmp_path / "history.json").write_text(json.dumps(runs), encoding="utf-8")
    writing.write(tmp_path, Contents("play.yml", finished="now"))
    history = json.loads((tmp_path / "history.json").read_text("utf-8"))
    assert [history[0]["finished"], history[-1]["finished"]] == ["1", "now"]
    assert len(history) == writing.MAX_RUNS


def test_unwritable_file_keeps_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing.write(tmp_path, Contents("first"))
    before = (tmp_path / "report.md").read_text("utf-8")

    def full(*_arguments: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(texts, "markdown", lambda contents: "second")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        writing.write(tmp_path, Contents("second"))
    assert (tmp_path / "report.md").read_text("utf-8") == before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("service", "kind", "name", "path"),
    [
        ("repo", "item", "libs/a b/c#1.jar", "libs/a%20b/c%231.jar"),
        ("tracker", "issue", "OPS-1", "browse/OPS-1"),
        ("wiki", "page", "REL/A/B", "display/REL/A%2FB"),
        ("wiki", "page", "7", "pages/viewpage.action?pageId=7"),
        ("ci", "job", "a/b", "job/a/job/b/"),
        ("ci", "build", "a/b/7", "job/a/job/b/7/"),
        ("ci", "plugin", "git", "pluginManager/installed"),
        ("analysis", "role", "a", ""),
    ],
)
def test_object_has_a_link(service: str, kind: str, name: str, path: str) -> None:
    finding = {"service": service, "kind": kind, "name": name, "server": f"{SERVER}/"}
    assert links.link(finding) == f"{SERVER}/{path}"
    assert links.link({**finding, "server": "javascript:alert(1)"}) == ""


def _task(action: str, **variables: Any) -> Any:
    return SimpleNamespace(
        action=action,
        resolved_action=action,
        name="A task",
        get_name=lambda: "A task",
        get_vars=lambda: variables,
        check_mode=True,
    )


def test_digests_of_a_finding_are_those_of_its_object() -> None:
    recorder = Recorder(Contents())
    rows = [
        {"kind": "user", "name": name, "action": "create", "digests": [name, "x"]} for name in "ab"
    ]
    task = _task("delivery.toolchain.repo_user")
    recorder.result(task, "h", {"changed": True, "findings": rows}, failed=False)
    contents = recorder.contents
    assert [contents.digests[one["id"]] for one in contents.findings] == [["a", "x"], ["b", "x"]]


def test_change_that_no_log_hides_counts_as_a_write() -> None:
    recorder = Recorder(Contents())
    hidden = {"censored": "hidden by no_log", "changed": True}
    for check in (True, False):
        task = _task("delivery.toolchain.repo_user")
        task.check_mode = check
        recorder.result(task, "h", hidden, failed=False)
    assert recorder.contents.written == 1


def test_secrets_of_the_environment_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCHAIN_CI_PASSWORD", "environment-secret")
    recorder = Recorder(Contents())
    result = {
        "changed": True,
        "diff": {"before": {"environment-secret": ["environment-secret"]}, "after": {}},
        "invocation": {"module_args": {"url": "https://u:p@ci/", "job": "environment-secret"}},
    }
    recorder.result(_task("delivery.toolchain.ci_job"), "h", result, failed=False)
    text = json.dumps(recorder.contents.as_json())
    assert "environment-secret" not in text
    assert recorder.contents.findings[0]["server"] == "https://ci"


def test_terminal_shows_names_without_control_characters() -> None:
    recorder = Recorder(Contents())
    options = {"url": "https://c\x1b[31mi\u202e/", "job": "a\u202e\x1b[31m\nb"}
    result = {"changed": True, "invocation": {"module_args": options}}
    recorder.result(_task("delivery.toolchain.ci_job"), "h", result, failed=False)
    lines = terminal.table(recorder.contents)
    assert [line.text for line in lines[3:5]] == ["ci https://ci", "~ job a b: differs"]
    (annotation,) = terminal.github(recorder.contents)
    assert annotation.text == "::warning title=ci https%3A//ci::~ job a b: differs"


def test_secrets_of_ansible_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        recorder_module,
        "mask_secrets",
        lambda text, *, mask_placeholder: text.replace("vaulted", mask_placeholder),
    )
    recorder = Recorder(Contents())
    diff = {"before": {"vaulted": ["a vaulted text"]}, "after": {}}
    result = {"changed": True, "diff": diff, "invocation": {"module_args": {"job": "vaulted"}}}
    recorder.result(_task("delivery.toolchain.ci_job"), "h", result, failed=False)
    assert "vaulted" not in json.dumps(recorder.contents.as_json())


def test_step_of_a_role_adds_missing_findings() -> None:
    recorder = Recorder(Contents())
    one = {
        "service": "ci",
        "kind": "java",
        "name": "8",
        "action": "update",
        "text": "java 8: old",
        "status": "drift",
    }
    step = {"report": {"findings": [one]}}
    for _time in range(2):
        recorder.result(_task(STEP), "h", step, failed=False)
    assert [found["text"] for found in recorder.contents.findings] == ["java 8: old"]
    recorder.result(_task("ansible.builtin.fail", toolchain_report="none"), "h", {}, failed=True)
    known = {"msg": "known", "report": {"is_known": True}}
    recorder.result(_task(STEP), "h", known, failed=True)
    assert len(recorder.contents.findings) == 1
    recorder.result(_task(STEP), "h", {"report": {"restart": True}}, failed=False)
    assert recorder.contents.findings == []


def test_terminal_shows_first_findings_and_the_number_of_others() -> None:
    contents = Contents(check=True)
    for number in range(60):
        add(contents, str(number))
    lines = [line.text for line in terminal.table(contents)]
    assert lines[4:10] == [*(f"~ job {number}: differs" for number in range(5)), "+55 more"]
    assert lines[0].split() == ["service", "server", "in", "sync", "differ", "failed"]
    assert lines[1].split() == ["ci", SERVER, "0", "60", "0"]


def test_terminal_begins_with_failures_and_limits_the_findings_of_a_server() -> None:
    contents = Contents(check=True)
    for number in range(94):
        add(contents, str(number), action="delete")
    add(contents, "n", "unknown", text="job n: unknown")
    add(contents, "x", "failed", text="job x: no")
    add(contents, "y", server="https://a.example.com", text="job y: differs")
    lines = [line.text for line in terminal.table(contents)]
    assert lines[lines.index(f"ci {SERVER}") :][:10] == [
        f"ci {SERVER}",
        "! job x: no",
        *(f"- job {number}: differs" for number in range(4)),
        "+91 more",
        "ci https://a.example.com",
        "~ job y: differs",
        "",
    ]
    for number in range(60):
        add(contents, "z", server=f"https://{number}.example.com")
    assert "+16 more on 16 other servers" in [line.text for line in terminal.table(contents)]


def test_every_file_has_unmanaged_and_unknown_objects(tmp_path: Path) -> None:
    contents = Contents("drift", check=True, finished="2026-01-01T00:00:00Z")
    others = {"action": "none", "fails": True}
    add(contents, "stray", "unmanaged", text="job stray: not managed", **others)
    add(contents, "kept", "unknown", text="job kept: cannot compare secret", action="none")
    add(contents, "fine", "ok")
    assert contents.result() == "unmanaged"
    assert writing.write(tmp_path, contents) == []
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert (report["result"], report["servers"][0]["unmanaged"]) == ("unmanaged", 1)
    assert (report["counts"]["unmanaged"], report["counts"]["unknown"]) == (1, 1)
    assert [(one["status"], one["action"]) for one in report["findings"]] == [
        ("unmanaged", "none"),
        ("unknown", "none"),
    ]
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("1", "1", "3")
    table = "| service | server | in sync | differ | failed | unmanaged | unknown |"
    text = (tmp_path / "report.md").read_text("utf-8")
    assert table in text
    assert "| job stray: not managed | unmanaged |" in text
    page = (tmp_path / "report.html").read_text("utf-8")
    assert '<th scope="col">Unmanaged</th><th scope="col">Unknown</th>' in page
    assert "Not managed: 1. Unknown: 1." in findings_page(contents.findings)
    lines = [line.text for line in terminal.table(contents)]
    assert lines[1].split()[2:] == ["1", "0", "0", "1", "1"]
    assert lines[4:6] == ["? job stray: not managed", "? job kept: cannot compare secret"]
    (annotation,) = terminal.github(contents)
    assert annotation.text.startswith("::error title=")
    accepted = contents.since(accepted=ignored.parse([{"name": "*r*"}]))
    assert (accepted.result(), accepted.counts["ignored"]) == ("as wanted", 1)


@pytest.mark.parametrize(
    ("statuses", "check", "result"),
    [
        (["ok", "unknown"], True, "as wanted"),
        (["unmanaged"], True, "as wanted"),
        (["fails"], True, "unmanaged"),
        (["fails", "drift"], True, "differs"),
        (["fails", "drift"], False, "unmanaged"),
        (["unmanaged", "drift"], False, "changed"),
        (["fails", "failed"], False, "failed"),
    ],
)
def test_result_is_as_wanted_only_if_nothing_is_left_to_do(
    statuses: list[str], check: bool, result: str
) -> None:
    contents = Contents(check=check)
    for name in statuses:
        add(contents, name, "unmanaged" if name == "fails" else name, fails=name == "fails")
    assert contents.result() == result


def test_terminal_names_server_and_host() -> None:
    contents = Contents(check=True, hosts=["one", "two"])
    add(contents, "slow", host="one", text="job slow:\n differs")
    add(contents, "new", host="two", action="create", text="job new: missing")
    add(contents, "old", host="two", action="delete", text="job old: not wanted")
    for host in ("one", "two", "three"):
        add(contents, "Ask", "failed", host=host, server="", service="", text="task Ask: no")
    lines = [line.text for line in terminal.table(contents)]
    assert [line.split() for line in lines[1:5]] == [
        *(["playbook", "host", host, "0", "0", "1"] for host in ("one", "three", "two")),
        ["ci", SERVER, "0", "3", "0"],
    ]
    assert lines[6:] == [
        "playbook host one",
        "! task Ask: no",
        "playbook host three",
        "! task Ask: no",
        "playbook host two",
        "! task Ask: no",
        f"ci {SERVER}",
        "~ job slow: differs (host one)",
        "+ job new: missing (host two)",
        "- job old: not wanted (host two)",
        "",
        "3 of 6 objects differ on 1 of 4 servers; 3 failed.",
        "Plan: 1 to create, 1 to update, 1 to delete.",
    ]


def test_unmanaged_objects_of_a_role_are_findings() -> None:
    recorder = Recorder(Contents())
    arguments = {"url": SERVER, "dest": "x"}
    export = {"changed": True, "invocation": {"module_args": arguments}, "http": {"writes": 0}}
    recorder.result(_task("delivery.toolchain.ci_export"), "h", export, failed=False)
    found = [{"service": "ci", **findings.unmanaged_object("job", name)} for name in ("a", "b")]
    job = {"changed": False, "invocation": {"module_args": {"url": SERVER, "job": "b"}}}
    recorder.result(_task("delivery.toolchain.ci_job"), "h", job, failed=False)
    recorder.result(_task(STEP), "h", {"report": {"findings": found}}, failed=False)
    assert [(one["text"], one["server"]) for one in recorder.contents.findings] == [
        ("job a: not managed", SERVER)
    ]


@pytest.mark.parametrize("left_out", [[], [{"kind": "job", "name": "a/*", "unread": True}]])
def test_unmanaged_objects_are_resolved_only_if_they_could_be_read(left_out: list[Any]) -> None:
    arguments = {"url": SERVER, "dest": "x"}
    export = {"changed": True, "invocation": {"module_args": arguments}, "left_out": left_out}
    last, now = Recorder(Contents()), Recorder(Contents())
    for recorder in (last, now):
        recorder.result(_task("delivery.toolchain.ci_export"), "h", export, failed=False)
    found = {"service": "ci", **findings.unmanaged_object("job", "a/b")}
    last.result(_task(STEP), "h", {"report": {"findings": [found]}}, failed=False)
    (finding,) = last.contents.findings
    compared = now.contents.since(Last({finding["id"]: finding}))
    assert (compared.resolved, compared.unread) == (
        ([], [finding]) if left_out else ([finding], [])
    )


def test_report_is_a_check_if_its_tasks_only_checked() -> None:
    result = {"changed": True, "invocation": {"module_args": {"job": "a"}}}
    for checks, check in (([True], True), ([False], False), ([True, False], False), ([], True)):
        recorder = Recorder(Contents())
        for mode in checks:
            task = _task("delivery.toolchain.ci_job")
            task.check_mode = mode
            recorder.result(task, "h", result, failed=False)
        # a later play without check mode
        debug = _task("ansible.builtin.debug")
        debug.check_mode = False
        recorder.result(debug, "h", {}, failed=True)
        recorder.end(["h"], check=True)
        assert recorder.contents.check is check


def test_wiki_page_escapes_findings() -> None:
    contents = Contents()
    for number in range(502):
        add(contents, str(number))
    add(contents, EVIL, "failed", text=EVIL)
    body = findings_page(contents.findings)
    assert "<strong>Differences: 502. Failures: 1.</strong>" in body
    assert "<p>And 3 more.</p>" in body
    assert "<b>" not in findings_page(contents.findings[-1:])
    assert findings_page([]) == "<p><strong>Differences: 0.</strong></p>"
    for wrong, words in (("text", "a list"), ([{"text": "x"}], "finding 1 has no service")):
        with pytest.raises(AnsibleFilterError, match=words):
            findings_page(wrong)


def test_page_is_limited_and_the_report_is_not(tmp_path: Path) -> None:
    contents = Contents(check=True)
    for number in range(5_100):
        add(contents, str(number), "ignored" if number < 200 else "drift")
    add(contents, "last", "failed")
    writing.write(tmp_path, contents.since())
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert len(report["findings"]) == 5_101
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "The page shows the first 5,000 of 5,101 findings: report.json has all." in text
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    shown = data["report"]["findings"]
    assert (len(shown), shown[0]["name"]) == (5_000, "last")
    # the least urgent findings are left out
    assert [one["status"] for one in shown].count("ignored") == 99
    assert len(data["links"]) == len(data["files"]) == 5_000


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("<p>One. Two.</p>", "<p>One. Three.</p>", ("Two.", "Three.")),
        ("<p><b>a</b></p>", "<p><i>a</i></p>", ("<p><b>a</b></p>", "<p><i>a</i></p>")),
        (None, "<p>a</p>", (None, "<p>a</p>")),
    ],
)
def test_body_of_a_page_is_compared_in_words(
    before: str | None, after: str, shown: tuple[str | None, str]
) -> None:
    """A body of which only the form differs is shown in storage format."""
    sides = {"before": {"body": before}, "after": {"body": after}}
    found = {"kind": "page", "name": "REL/A", "action": "update", **sides}
    (worded,) = task_findings.compared("wiki_tree", {"findings": [found]}, {}, "task")
    assert (worded["before"], worded["after"]) == ({"body": shown[0]}, {"body": shown[1]})
