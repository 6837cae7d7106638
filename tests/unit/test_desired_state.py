# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the folder of the desired state: its allowed content, and the error messages for invalid
input.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.errors import AnsibleError

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    ansible_internals,
    bookkeeping,
    desired_schema,
    desired_state,
    kinds,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.descriptors import (
    descriptor_of,
)
from tests.unit.arguments import run_of
from tools import desired_state as desired_files

ROOT = Path(__file__).resolve().parents[2]


def load(name: str) -> Any:
    return yaml.safe_load(Path(name).read_text())


READING = desired_state.Reading(load, {"one": "pass-word-12345", "none": "", "list": []}.get)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        file = folder / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".yml").write_text(text, encoding="utf-8")


def read(folder: Path, environment: str | None = None, **files: str) -> dict[str, Any]:
    write(folder, **files)
    return desired_state.variables(desired_state.read(folder, READING, environment))


def test_every_schema_is_generated_from_argument_specs() -> None:
    written = {path for path in desired_files.files() if path.parent == desired_files.FOLDER}
    assert set(desired_files.FOLDER.iterdir()) == written


def test_files_and_folders_become_role_variables(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        analysis__users="users:\n  - name: eve\n",
        analysis__more="users:\n  - name: adam\nmax_deletions: 3\n",
        ci="plugins: [{name: git}]\njobs:\n  - job: a\n    src: jobs/a.xml\n",
        tracker="versions: [{project: OPS, name: '1.0'}]",
        wiki="trees: [{src: team, space: REL}]",
        repo="rules: [{repo: libs, created_before: 4w}]",
    )
    assert found == {
        "analysis_config_users": [{"name": "adam"}, {"name": "eve"}],
        "analysis_config_max_deletions": 3,
        "ci_baseline_plugins": [{"name": "git"}],
        "desired_state_jobs": [{"job": "a", "src": str(tmp_path / "jobs/a.xml")}],
        "desired_state_versions": [{"project": "OPS", "name": "1.0"}],
        "desired_state_trees": [{"src": str(tmp_path / "team"), "space": "REL"}],
        "repo_housekeeping_rules": [{"repo": "libs", "created_before": "4w"}],
    }


SLIPS = {
    "users:\n  - nam: eve\n": "analysis.yml:2: users[0].nam is unknown (did you mean name?)",
    "users:\n  - state: present\n": "analysis.yml:2: users[0] has no name",
    "users: eve": "analysis.yml:1: users is a string, but must be a list",
    "groups:\n  - name: 1.10\n": (
        "analysis.yml:2: groups[0].name is a number, but must be a string: put it into quotes"
    ),
    "users:\n  - name: a\n    state: gone\n": (
        "analysis.yml:3: users[0].state must be one of present, absent, not gone"
    ),
    "user:\n  - name: a\n": "analysis.yml:1: user is unknown (did you mean users?)",
    "users: []\nusers: []\n": "analysis.yml:2: users is listed twice",
    "users: [\n": "analysis.yml:2: this is not valid YAML",
    "- users": "analysis.yml:1: the file is a list, but must be a mapping",
    "users:\n  - name: a\n    password: plain\n": (
        "analysis.yml:3: users[0].password is a secret: encrypt it with ansible-vault"
    ),
    "users:\n  - name: a\n    password:\n": "analysis.yml:3: users[0].password is a secret: encrypt",
    "users: [{name: a, password: {from: one, or: two}}]": "users[0].password is a secret: encrypt",
    "users: [{name: a, password: {from: ''}}]": "users[0].password is a secret: encrypt",
    "users: [{name: {from: one}}]": "users[0].name is a mapping, but must be a string",
    "users: [{name: a, password: {from: two}}]": (
        "analysis.yml: users[0].password is taken from the variable two, which is not defined"
    ),
    "users: [{name: a, password: {from: none}}]": "from the variable none, which is empty",
    "users: [{name: a, password: {from: list}}]": "from the variable list, which is not a string",
    "groups: [{name: a, users: [2026-01-01]}]": (
        "groups[0].users[0] is a value of an unsupported type (timestamp), but must be a string: put it"
    ),
}


@pytest.mark.parametrize("text", SLIPS)
def test_invalid_input_is_reported_with_file_and_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, analysis=text)
    assert SLIPS[text] in str(raised.value)


def test_all_invalid_input_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, ci="plugin: []", repo="rule: []", other="x: 1")
    assert "ci.yml:1: plugin is unknown (did you mean plugins?)" in str(raised.value)
    assert "repo.yml:1: rule is unknown (did you mean rules?)" in str(raised.value)
    assert "other.yml belongs to no service" in str(raised.value)


@pytest.mark.parametrize(
    ("service", "text", "meant"),
    [
        ("repo", "repositories: [{key: a, url: x}]", "remote_url"),
        ("repo", "repositories: [{key: a, username: x}]", "remote_username"),
        ("repo", "repositories: [{key: a, password: pass-word-12345}]", "remote_password"),
        ("repo", "users: [{name: a, password: pass-word-12345}]", "user_password"),
        ("ci", "credentials: [{id: a, username: x}]", "login_username"),
        ("ci", "credentials: [{id: a, password: pass-word-12345}]", "login_password"),
    ],
)
def test_name_of_a_connection_option_is_rejected(
    tmp_path: Path, service: str, text: str, meant: str
) -> None:
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, **{service: text})
    assert f"is unknown (did you mean {meant}?)" in str(raised.value)
    assert "pass-word-12345" not in str(raised.value)


def test_repeated_setting_and_empty_folder_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(desired_state.DesiredStateError, match="has no files of a desired state"):
        desired_state.read(tmp_path, READING)
    with pytest.raises(desired_state.DesiredStateError, match="is not a folder"):
        desired_state.read(tmp_path / "none", READING)
    with pytest.raises(desired_state.DesiredStateError, match="is also set in another file"):
        read(tmp_path, ci__a="check_java: true", ci__b="check_java: false")


def test_file_whose_ending_has_other_letters_is_rejected(tmp_path: Path) -> None:
    """A report without it would say that its objects are in sync."""
    (tmp_path / "repo.YML").write_text("", encoding="utf-8")
    with pytest.raises(desired_state.DesiredStateError, match=r"repo\.YML is not read: end its"):
        read(tmp_path, ci="check_java: true")


IRREGULAR: dict[str, Callable[[Path], None]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to nothing": lambda file: file.symlink_to("nothing"),
}


@pytest.mark.parametrize("what", IRREGULAR)
def test_special_file_is_never_opened(what: str, tmp_path: Path) -> None:
    IRREGULAR[what](tmp_path / "ci.yml")
    with pytest.raises(desired_state.DesiredStateError) as caught:
        read(tmp_path)
    assert str(caught.value) == "ci.yml is not a regular file: move it elsewhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 3000, "ci.yml:1: this is not valid YAML: it is nested deeper than 100 levels"),
        ("jobs: &a [*a]", "ci.yml:1: this is not valid YAML: a value contains itself"),
        ("a: 2026-13-45", "ci.yml:1: a is unknown"),
        ("jobs: [{job: a, parameters: &a [*a]}]", "ci.yml"),
        ("\x00", "ci.yml:1: this is not valid YAML: unacceptable character"),
    ],
)
def test_unreadable_yaml_ends_in_one_sentence(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(desired_state.DesiredStateError) as caught:
        read(tmp_path, ci=text)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_invalid_value_is_reported_with_its_file(tmp_path: Path) -> None:
    def refused(name: str) -> Any:
        return yaml.safe_load("a: 2026-13-45")

    (tmp_path / "ci.yml").write_text("jobs: []", encoding="utf-8")
    with pytest.raises(
        desired_state.DesiredStateError, match=r"^ci.yml is not valid YAML: month must be"
    ):
        desired_state.read(tmp_path, desired_state.Reading(refused))


def test_secret_is_read_from_variable_or_vault(tmp_path: Path) -> None:
    found = read(tmp_path, analysis="users: [{name: eve, password: {from: one}}]")
    assert found == {"analysis_config_users": [{"name": "eve", "password": "pass-word-12345"}]}

    (tmp_path / "analysis.yml").write_text("users:\n  - name: eve\n    password: !vault x\n")
    decrypted = desired_state.Reading(lambda name: {"users": [{"name": "eve", "password": "x"}]})
    found = desired_state.variables(desired_state.read(tmp_path, decrypted))
    assert found["analysis_config_users"][0]["password"] == "x"


def test_secret_whose_variable_cannot_be_evaluated_is_named(tmp_path: Path) -> None:
    def undefined(name: str) -> Any:
        raise ToolchainError("invalid", f"the variable {name} cannot be evaluated")

    text = "users: [{name: eve, password: {from: one}}]"
    (tmp_path / "analysis.yml").write_text(text, encoding="utf-8")
    told = r"analysis\.yml: users\[0\]\.password: the variable one cannot be evaluated$"
    with pytest.raises(desired_state.DesiredStateError, match=told):
        desired_state.read(tmp_path, desired_state.Reading(load, undefined))


BASE = {
    "tracker": "versions:\n  - {project: REL, name: a, description: base}\n  - {project: REL, name: b}\n",
    "ci": "jobs: [{job: a, src: a.xml, enabled: true}]\ncheck_java: true\n",
    "repo": "rules: [{repo: libs, created_before: 4w}]",
    "wiki": "trees: [{src: team, space: REL}]",
}


def test_environment_overrides_base(tmp_path: Path) -> None:
    production = {
        "tracker": "versions: [{project: REL, name: a, state: released}, {project: OPS, name: a}]",
        "ci": "jobs: [{job: a, enabled: false}, {job: b, src: b.xml}]\ncheck_java: false\n",
        "repo": "rules: [{repo: libs, created_before: 8w}]",
        "wiki": "trees: [{src: team, space: REL, prune: true}]",
        "analysis": "groups: [{name: quality}]",
    }
    write(
        tmp_path, **{f"environments__production__{name}": production[name] for name in production}
    )
    (tmp_path / "environments/test").mkdir()
    base = read(tmp_path, **BASE)
    assert read(tmp_path, environment="test") == base
    assert base["repo_housekeeping_rules"] == [{"repo": "libs", "created_before": "4w"}]
    assert read(tmp_path, environment="production") == {
        "desired_state_versions": [
            {"project": "REL", "name": "a", "description": "base", "state": "released"},
            {"project": "REL", "name": "b"},
            {"project": "OPS", "name": "a"},
        ],
        "desired_state_jobs": [
            {"job": "a", "src": str(tmp_path / "a.xml"), "enabled": False},
            {"job": "b", "src": str(tmp_path / "environments/production/b.xml")},
        ],
        "ci_baseline_check_java": False,
        "repo_housekeeping_rules": [{"repo": "libs", "created_before": "8w"}],
        "desired_state_trees": [{"src": str(tmp_path / "team"), "space": "REL", "prune": True}],
        "analysis_config_groups": [{"name": "quality"}],
    }


@pytest.mark.parametrize(
    "name", ["", "staging", "../environments/production", "production/ci", "."]
)
def test_unknown_environment_is_rejected(tmp_path: Path, name: str) -> None:
    write(tmp_path, **BASE, environments__production__ci="check_java: false")
    with pytest.raises(
        desired_state.DesiredStateError, match=r"no environment .*: it has production"
    ) as raised:
        desired_state.read(tmp_path, READING, name)
    assert ("mkdir" in str(raised.value)) == (name in ("", "staging"))


def test_invalid_input_of_an_environment_is_reported_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, "production", **BASE, environments__production__ci="check_jav: false")
    assert str(raised.value).startswith("environments/production/ci.yml:1: check_jav is unknown")
    with pytest.raises(
        desired_state.DesiredStateError,
        match=r"it has no folder environments\. For a new one, run mkdir -p \S+/environments/",
    ):
        desired_state.read(tmp_path / "environments/production", READING, "x")


#: Entries of an environment: the service, the list, an entry that is not whole, and what completes it.
INCOMPLETE: dict[str, tuple[str, str, str, str]] = {
    "job": ("ci", "jobs", "job: x, enabled: false", "config: <project/>"),
    "no folder": ("ci", "jobs", "job: x, folder: false", "src: x.xml"),
    "credential": ("ci", "credentials", "id: x, login_password: {from: one}", "kind: secret_text"),
    "credential of a folder": ("ci", "credentials", "id: base, folder: f", "kind: secret_text"),
    "node": ("ci", "nodes", "name: x, executors: 2", "remote_root: /x"),
    "script": ("ci", "scripts", "name: x, unless: x", "script: x"),
    "view": ("ci", "views", "name: x, description: x", "jobs: []"),
    "repository": ("repo", "repositories", "key: x, description: x", "rclass: local"),
    "user": ("repo", "users", "name: x, admin: true", "email: x@example.org"),
    "permission": ("repo", "permissions", "name: x, mode: add", "resources: {}"),
    "retention": ("repo", "retention", "build_name: base, project: x", "count: 3"),
    "module": ("analysis", "modules", "project: x, name: base", "paths: [a]"),
    "view of issues": ("analysis", "views", "project: p, name: x, tags: [a]", "query: x"),
    "role": ("tracker", "project_roles", "project: P, role: x, mode: add", "users: []"),
    "page": ("wiki", "pages", "space: S, title: x, labels: [a]", "body: x"),
    "restriction": ("wiki", "restrictions", "space: S, title: x, force: true", "read: {}"),
    "space": ("wiki", "spaces", "key: x, description: x", "name: X"),
}
BASES = {
    "ci": "jobs: [{job: base}]\ncredentials: [{id: base}]",
    "repo": "retention: [{build_name: base, count: 1}]",
    "analysis": "modules: [{project: p, name: base}]",
    "wiki": "pages: [{space: S, title: base}]",
}


@pytest.mark.parametrize("case", INCOMPLETE)
def test_entry_that_overrides_nothing_must_be_whole(case: str, tmp_path: Path) -> None:
    service, name, entry, rest = INCOMPLETE[case]

    def environment(text: str) -> str:
        return f"{name}: [{{{text}}}]"

    file = f"environments__test__{service}"
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, "test", **BASES, **{file: environment(entry)})
    said = str(raised.value)
    assert said.startswith(f"environments/test/{service}.yml: the entry ")
    assert f" of {name} overrides nothing" in said
    assert "remove it, or describe the whole object with " in said
    # without the environment, and for names only, nothing is wrong
    read(tmp_path)
    naming = desired_state.Reading(load, lambda name: name, names_only=True)
    desired_state.read(tmp_path, naming, "test")
    for whole in (f"{entry}, {rest}", f"{entry}, state: absent"):
        if "absent" in whole and name in ("scripts", "retention", "project_roles"):
            continue
        read(tmp_path, "test", **BASES, **{file: environment(whole)})
    write(tmp_path, **{f"{service}__more": environment(entry)})
    read(tmp_path, "test", **BASES, **{file: environment(entry)})


def test_similar_name_of_the_base_is_suggested_and_each_server_has_a_built_in_node(
    tmp_path: Path,
) -> None:
    nodes = "nodes: [{name: (built-in), labels: [a]}]\njobs: [{job: Base, enabled: true}]"
    with pytest.raises(desired_state.DesiredStateError) as raised:
        read(tmp_path, "test", **BASES, environments__test__ci=nodes)
    assert str(raised.value) == (
        "environments/test/ci.yml: the entry Base of jobs overrides nothing (did you mean base?):"
        " remove it, or describe the whole object with config or src or folder"
    )


def test_retention_of_two_projects_has_two_entries(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "test",
        repo="retention: [{build_name: b, count: 1}, {build_name: b, project: p, count: 2}]",
        environments__test__repo="retention: [{build_name: b, project: p, count: 3}]",
    )
    counts = [entry["count"] for entry in found["repo_housekeeping_retention"]]
    assert counts == [1, 3]


def test_unmanaged_objects_are_listed(tmp_path: Path) -> None:
    described = {"tracker": {"versions": [{"project": "REL", "name": "a"}]}, "ci": {"jobs": []}}
    on_server = {
        "tracker": {"versions": [{"project": "REL", "name": name} for name in "cab"]},
        "ci": {"jobs": [{"job": "x"}], "plugins": [{"name": "git"}]},
        "analysis": {"groups": [{"name": "quality"}]},
    }
    found = desired_state.unmanaged(described, on_server)
    assert [(one["service"], one["text"], one["action"], one["status"]) for one in found] == [
        ("tracker", "version REL/b: not managed", "none", "unmanaged"),
        ("tracker", "version REL/c: not managed", "none", "unmanaged"),
        ("ci", "job x: not managed", "none", "unmanaged"),
    ]
    assert desired_state.unmanaged(on_server, on_server) == []


def test_what_an_export_could_not_read_is_not_compared(tmp_path: Path) -> None:
    write(tmp_path, tracker="versions: [{project: REL, name: a}]", analysis="groups: [{name: a}]")
    (tmp_path / "export").mkdir()

    def left(kind: str, name: str) -> dict[str, Any]:
        return {"kind": kind, "name": name, "reason": "403", "unread": True}

    named = {"kind": "project", "name": "x", "reason": "it has no key"}
    tracker = [left("project", "OPS"), left("roles", "REL"), named]
    run = run_of(
        desired_state_folder=str(tmp_path),
        desired_state_exported_tracker={"left_out": tracker},
        desired_state_exported_analysis={
            "left_out": [left("list", "groups"), left("list", "views")]
        },
    )
    values = {"export": str(tmp_path / "export"), "known": []}
    found = bookkeeping.perform("unmanaged", replace(run, load=load), values)["findings"]
    assert [(one["service"], one["text"], one["status"]) for one in found] == [
        ("analysis", "list groups: not compared with the folder: 403", "unknown"),
        ("tracker", "project OPS: not compared with the folder: 403", "unknown"),
    ]


def test_unmanaged_objects_have_the_kind_of_their_module() -> None:
    assert len(kinds.KINDS) > 15
    for kind in kinds.KINDS:
        # the others have no single objects
        if kind.role == kinds.ROLE and kind.list not in ("configuration", "trees"):
            expected = descriptor_of(kind.module).kind
            assert kinds.name_of(kind.service, kind.list) == expected, kind


SECRET = "jenkins: {securityRealm: {local: {users: [{password: hunter2}]}}}"
JOBS = [{"job": "team/app"}, {"job": "team", "folder": True}, {"job": "old", "folder": False}]
LISTS = {
    "configuration": [
        {"config": {"jenkins": {}, "tool": {}}},
        {"src": "/a/b.yml"},
        {"config": SECRET},
    ],
    "views": "x",
    "nodes": [{"name": "{{ later }}"}],
    "jobs": JOBS,
    "credentials": [{}],
    "versions": [{"project": "REL", "name": "1.0"}],
    "pages": [{"space": "REL", "title": "A"}, {"page_id": 5}],
    "trees": [{"src": "/docs/guide", "space": "REL"}],
}


def test_objects_of_other_projects_are_left_out(tmp_path: Path) -> None:
    there = {
        "analysis": {
            "users": [{"name": "eve"}],
            "projects": [{"name": "agent"}, {"name": "other"}],
            "modules": [{"project": "agent", "name": "a"}, {"project": "other", "name": "a"}],
            "role_assignments": [{"role": "r", "project": None}, {"role": "r", "project": "other"}],
        },
        "tracker": {"versions": [{"project": "REL"}, {"project": "OPS"}]},
    }
    assert desired_state.without_other_projects(there, tmp_path) == there
    for service, given in (
        ("analysis", {"project": ["agent"]}),
        ("tracker", {"projects": ["REL"]}),
    ):
        text = json.dumps({"format": 1, "files": {}, "chosen": given})
        (tmp_path / f".export-{service}.json").write_text(text, encoding="utf-8")
    assert desired_state.without_other_projects(there, tmp_path) == {
        "analysis": {
            "users": [{"name": "eve"}],
            "projects": [{"name": "agent"}],
            "modules": [{"project": "agent", "name": "a"}],
            "role_assignments": [{"role": "r", "project": None}],
        },
        "tracker": {"versions": [{"project": "REL"}]},
    }


def test_entries_are_chosen_in_order_and_without_secrets() -> None:
    run = run_of(**{f"desired_state_{name}": entries for name, entries in LISTS.items()})
    chosen = bookkeeping.perform("choose_entries", run, {})["entries"]
    assert [(one["list"], one["index"], one["label"]) for one in chosen] == [
        ("configuration", 0, "configuration jenkins, tool"),
        ("configuration", 1, "configuration b.yml"),
        ("configuration", 2, "configuration configuration"),
        ("jobs", 1, "job team"),
        ("credentials", None, "credentials of the CI server"),
        ("nodes", None, "nodes of the CI server"),
        ("jobs", 0, "job team/app"),
        ("jobs", 2, "job old"),
        ("views", None, "views of the CI server"),
        ("versions", None, "versions of projects"),
        ("pages", 0, "page REL/A"),
        ("pages", 1, "page 5"),
        ("trees", 0, "tree REL/guide"),
    ]
    nothing = bookkeeping.perform("choose_entries", run_of(desired_state_jobs=[]), {})
    assert nothing == {"entries": []}


def test_entry_is_applied_by_its_module() -> None:
    """An entry is passed on as it is; a module with `entries` gets all of them."""
    ran = []

    def execute(module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        ran.append((module, options))
        return {"changed": True}

    lists = {f"desired_state_{name}": entries for name, entries in LISTS.items()}
    applied = []
    for name, index in (("jobs", 0), ("jobs", 1), ("nodes", None), ("versions", None)):
        entry = {"list": name, "index": index}
        run = replace(run_of(**lists, desired_state_entry=entry), execute=execute)
        applied.append(bookkeeping.perform("apply", run, {})["applied_by"])
    assert ran == [
        *(("ci_job", job) for job in JOBS[:2]),
        ("ci_node", {"entries": LISTS["nodes"]}),
        ("tracker_version", {"entries": LISTS["versions"]}),
    ]
    assert applied[0] == {"module": "ci_job", "label": "team/app", "names": {"job": "team/app"}}
    assert applied[3] == {
        "module": "tracker_version",
        "label": "versions of projects",
        "names": {},
    }


def test_secret_that_cannot_be_decrypted_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class Encrypted:
        def __str__(self) -> str:
            raise AnsibleError("no vault secrets found")

    def refused(*_given: Any) -> dict[str, Any]:
        raise AnsibleError("no vault secrets found")

    monkeypatch.setattr(ansible_internals, "module_arguments", refused)
    options = {"entries": [{"name": "a"}, {"name": "b", "user_password": Encrypted()}]}
    parts = {"task": SimpleNamespace(action="x", args={}), "templar": None}
    told = "entries[1].user_password cannot be decrypted: no vault secrets found"
    assert bookkeeping.execute(parts, {}, "repo_user", options)["msg"] == told
    assert bookkeeping.execute(parts, {}, "repo_user", {})["msg"] == "no vault secrets found"


def test_objects_are_deleted_before_those_that_contain_them() -> None:
    assert [f"{kind.service} {kind.list}" for kind in kinds.deleted()] == [
        *("wiki restrictions", "wiki pages", "wiki spaces"),
        *("tracker components", "tracker versions"),
        *("ci views", "ci credentials", "ci jobs", "ci nodes"),
        *("repo permissions", "repo users", "repo groups", "repo repositories"),
        *("analysis views", "analysis modules", "analysis role_assignments"),
        *("analysis groups", "analysis users", "analysis roles", "analysis projects"),
    ]


@pytest.mark.parametrize(
    ("described", "exports"),
    [
        ({"wiki": ["pages"], "ci": ["scripts", "configuration"], "repo": ["rules"]}, {}),
        ({"analysis": ["users"], "tracker": ["project_roles"]}, {"analysis": {}, "tracker": {}}),
        (
            {"ci": ["plugins", "nodes"], "repo": ["groups"]},
            {
                "repo": {},
                "ci": {"plugins": True, "credentials": False, "nodes": True, "views": False},
            },
        ),
    ],
)
def test_exports_read_what_the_folder_describes(
    described: dict[str, list[str]], exports: dict[str, Any]
) -> None:
    assert kinds.exports(described) == exports


def test_comparison_needs_a_folder() -> None:
    run = run_of(desired_state_unmanaged="report")
    with pytest.raises(bookkeeping.StepError, match="name it in desired_state_folder"):
        bookkeeping.perform("choose_entries", run, {})


def test_every_kind_is_a_list_of_its_schema() -> None:
    for kind in kinds.KINDS:
        schema = desired_schema.schema_of(kind.service)["properties"][kind.list]
        assert (schema["type"], schema["x-variable"]) == ("array", kind.variable)
        options = schema["items"]["properties"]
        assert {*kind.key, *kind.whole} <= options.keys()


@pytest.mark.parametrize("named", ["", None, True, []])
def test_folder_without_a_path_is_rejected(named: Any) -> None:
    run = run_of(desired_state_folder=named)
    with pytest.raises(
        bookkeeping.StepError,
        match=r"^Cannot use the desired state: set desired_state_folder to the path of a folder\.$",
    ):
        bookkeeping.perform("read_folder", run, {})


def test_role_sets_each_variable_of_other_roles() -> None:
    *_others, task = yaml.safe_load((ROOT / "roles/desired_state/tasks/read.yml").read_text())
    properties = [
        desired_schema.schema_of(file.name.partition(".")[0])["properties"]
        for file in desired_files.FOLDER.glob("*.schema.json")
    ]
    names = {one[desired_schema.VARIABLE] for each in properties for one in each.values()}
    assert task["ansible.builtin.set_fact"] == {
        name: f"{{{{ desired_state_values.variables.{name} | default(omit) }}}}"
        for name in names
        if not name.startswith("desired_state_")
    }


def test_export_ends_with_a_line_for_each_service() -> None:
    run = bookkeeping.Run({}, str, str)
    results = {
        "ci": {
            "exported": {"jobs": 1200, "configuration": 1, "credentials": 0, "views": 1},
            "left_out": [{}, {}],
            "not_exported": ["Scripts stay."],
        },
        "repo": {"exported": {"repositories": 1}, "left_out": [], "not_exported": []},
        "wiki": {"skipped": True},
        "tracker": {"exported": {"versions": 0}, "left_out": [], "not_exported": []},
    }
    lines = bookkeeping.perform("exported", run, {"place": "/x", "results": results})["lines"]
    assert lines == [
        "Exported to /x:",
        "  ci: 1,200 jobs, 1 configuration section, 1 view (2 left out, listed at the top of ci.yml)",
        "  repo: 1 repository",
        "  tracker: nothing",
        "Scripts stay.",
    ]
    failed = {"ci": {"failed": True, "msg": "no"}}
    shown = bookkeeping.perform("exported", run, {"place": "/x", "results": failed})
    assert shown == {"lines": ["Nothing was exported."]}
