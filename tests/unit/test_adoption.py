# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose findings to adopt, and write the state of servers into a folder."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.files import atomic_write
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    adopted_objects,
    bookkeeping,
    masked_patch,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.adopted_entry import (
    CannotAdopt,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.desired_state import (
    DesiredStateError,
    Reading,
    read,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import finding_id

#: Five changes a run.
RANDOM_RUNS = 6
SERVERS = {
    "ci": "https://ci.example",
    "repo": "https://repo.example",
    "tracker": "https://tracker.example",
    "wiki": "https://wiki.example",
}
SECRET = "!vault |\n      $ANSIBLE_VAULT;1.1;AES256\n      6162"
FOLDER = {
    "repo.yml": f"""\
# repositories
repositories:
  - &base
    key: libs
    rclass: local   # for now
    description: "Libraries"
    settings: {{xrayIndex: true}}
  - <<: *base
    key: apps
  - key: mirror
    rclass: remote
    remote_password: {SECRET}
groups:
- name: dev
  members: [alice, bob]
  members_mode: add
permissions: []
""",
    "ci.yml": """\
jobs:
- job: build
  src: ci/jobs/build.xml
- job: inline
  config: |
    <project><a>1</a></project>
- job: twin
  src: ci/jobs/build.xml
nodes:
- name: agent
  labels: [linux]
""",
    "ci/jobs/build.xml": "<project>\n  <token>plain</token>\n  <a>1</a>\n</project>\n",
    "tracker.yml": "versions:\n- {project: REL, name: '1.0', state: present, description: old}\n",
    "wiki.yml": "pages:\n- {space: REL, title: Gone, src: gone.xml}\n- {space: REL, title: T, body: x}\n",
    "gone.xml": "<p>gone</p>\n",
    "environments/prod/ci.yml": "jobs:\n- job: inline\n  config: <project><a>2</a></project>\n",
}
EXPORT = {
    "repo.yml": """\
repositories:
- {key: libs, rclass: local, description: Libraries, settings: {xrayIndex: false, other: 1}}
- {key: apps, rclass: federated, description: Libraries, settings: {xrayIndex: true}}
- {key: mirror, rclass: local}
- {key: new, rclass: local}
groups:
- {name: dev, description: d, members: [bob, carol]}
""",
    "ci.yml": """\
jobs:
- {job: build, src: ci/jobs/build.xml}
- {job: inline, src: ci/jobs/inline.xml}
- {job: added, src: ci/jobs/added.xml}
nodes:
- {name: agent, src: ci/nodes/agent.xml}
""",
    "ci/jobs/build.xml": (
        "<project>\n  <token>(kept by the server)</token>\n  <a>2</a>\n</project>\n"
    ),
    "ci/jobs/inline.xml": "<project>\n  <a>3</a>\n</project>\n",
    "ci/jobs/added.xml": "<project/>\n",
    "ci/nodes/agent.xml": "<?xml version='1.1'?>\n<slave><label>linux big</label></slave>\n",
    "tracker.yml": "versions:\n- {project: REL, name: '1.0', state: released, description: new}\n",
}


def finding(service: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "host": "localhost",
        "service": service,
        "server": SERVERS[service],
        "kind": kind,
    }
    found |= {"name": name, "action": "update", "status": "drift", "before": None, "after": None}
    return {**found, **more}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


class Trial:
    """A folder, an export and a report."""

    def __init__(self, path: Path, *findings: Mapping[str, Any], **variables: Any) -> None:
        self.folder = write(path / "state", FOLDER)
        self.export = write(path / "export", EXPORT)
        rows = [{"service": service, "server": url} for service, url in SERVERS.items()]
        report = {"findings": findings, "servers": variables.pop("servers", rows)}
        write(path / "report", {"report.json": json.dumps(report)})
        self.exports: dict[str, Any] = {}
        self.variables = {
            "inventory_hostname": "localhost",
            "playbook_dir": str(path),
            "desired_state_folder": "state",
            "adopt_report": "report",
            "adopt_findings": [finding_id(each) for each in findings],
            "adopt_connections": {service: {"url": url} for service, url in SERVERS.items()},
            **variables,
        }

    def adopt(self, left_out: Any = ()) -> dict[str, Any]:
        """Adopt, and return the result with the removed and added lines in `lines`."""
        run = bookkeeping.Run(self.variables, lambda value: value, lambda path: {})
        bookkeeping.perform("choose_adopted", run, {})
        exports = {"ci": {"exported": {}, "left_out": left_out}, "repo": {"skipped": True}}
        exports |= self.exports
        found = bookkeeping.perform("adopt", run, {"export": str(self.export), "exports": exports})
        self.written = found
        bookkeeping.perform("require_adopted", run, {"failures": found["failures"]})
        rows = str(found["patch"]).splitlines()
        found["lines"] = [
            row for row in rows if row[:1] in "+-" and row[:3] not in ("+++", "---", "")
        ]
        return found

    def fails(self, left_out: Any = ()) -> tuple[str, str]:
        with pytest.raises(bookkeeping.StepError) as caught:
            self.adopt(left_out)
        return caught.value.kind, str(caught.value)


ADOPTED: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
    # other entries inherit the value, and keep it
    (
        finding("repo", "repository", "libs"),
        {},
        [
            "-    settings: {xrayIndex: true}",
            "+    settings: {xrayIndex: false}",
            "+    settings:",
            "+      xrayIndex: true",
        ],
    ),
    (finding("repo", "repository", "apps"), {}, ["+    rclass: federated"]),
    # the secret stays as it is
    (
        finding("repo", "repository", "mirror"),
        {},
        ["-    rclass: remote", "+    rclass: local"],
    ),
    (
        finding("repo", "repository", "new", status="unmanaged", action="none"),
        {},
        ["+  - key: new", "+    rclass: local"],
    ),
    # members that are to be added, and that the server lacks
    (
        finding("repo", "group", "dev"),
        {},
        ["-  members: [alice, bob]", "+  members: [bob]"],
    ),
    # bob is the account of alice
    (
        finding("repo", "group", "dev"),
        {"desired_state_accounts": {"repo": {"alice": "bob"}}},
        ["-  members: [alice, bob]", "+  members: [alice]"],
    ),
    (
        finding("tracker", "version", "REL/1.0"),
        {},
        [
            "-- {project: REL, name: '1.0', state: present, description: old}",
            "+- {project: REL, name: '1.0', state: present, description: new}",
        ],
    ),
    # two entries share the file: the entry gets its own, with the folder's secret
    (
        finding("ci", "job", "build"),
        {},
        [
            "-  src: ci/jobs/build.xml",
            "+  src: ci/jobs/build-2.xml",
            "+<project>",
            "+  <token>***</token>",
            "+  <a>2</a>",
            "+</project>",
        ],
    ),
    (
        finding("ci", "job", "inline"),
        {},
        [
            "-    <project><a>1</a></project>",
            "+    <project><a>3</a></project>",
        ],
    ),
    (
        finding("ci", "job", "inline"),
        {"desired_state_environment": "prod"},
        [
            "-  config: <project><a>2</a></project>",
            "+  config: <project><a>3</a></project>",
        ],
    ),
    (
        finding("ci", "job", "added", status="unmanaged", action="none"),
        {},
        ["+- job: added", "+  src: ci/jobs/added.xml", "+<project/>"],
    ),
    (
        finding("ci", "node", "agent"),
        {},
        ["-  labels: [linux]", "+  labels: [big, linux]"],
    ),
    (
        finding("ci", "job", "twin", action="create"),
        {"adopt_deletions": True},
        ["-- job: twin", "-  src: ci/jobs/build.xml"],
    ),
    (finding("ci", "job", "twin", action="create"), {}, []),
    # the file of the removed page goes with it
    (
        finding("wiki", "page", "REL/Gone", action="create"),
        {"adopt_deletions": True},
        ["-- {space: REL, title: Gone, src: gone.xml}", "-<p>gone</p>"],
    ),
]


@pytest.mark.parametrize(("one", "variables", "lines"), ADOPTED)
def test_only_the_entry_changes(
    one: dict[str, Any], variables: dict[str, Any], lines: list[str], tmp_path: Path
) -> None:
    found = Trial(tmp_path, one, **variables).adopt()
    assert found["lines"] == lines
    assert bool(found["notes"]) == (not lines)
    again = Trial(tmp_path / "again", one, ansible_check_mode=True, **variables)
    before = {path: path.read_bytes() for path in again.folder.rglob("*") if path.is_file()}
    assert again.adopt()["lines"] == lines
    assert before == {path: path.read_bytes() for path in before}
    applied = subprocess.run(
        ["git", "apply", "--unsafe-paths", "-"],
        input=found["patch"].encode(),
        cwd=again.folder,
        check=bool(lines),
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert applied.returncode == 0 or not lines


def test_entries_are_found_by_the_accounts_of_their_names(tmp_path: Path) -> None:
    accounts = {"repo": {"dev": "developers", "alice": "carol"}}
    trial = Trial(tmp_path, finding("repo", "group", "developers"), desired_state_accounts=accounts)
    path = trial.export / "repo.yml"
    path.write_text(path.read_text("utf-8").replace("name: dev", "name: developers"), "utf-8")
    assert trial.adopt()["adopted"][0]["action"] == "updated"
    assert "members: [alice, bob]" in (trial.folder / "repo.yml").read_text("utf-8")
    (trial.folder / "repo.yml").write_text("groups: []\n", "utf-8")
    assert trial.adopt()["adopted"][0]["action"] == "added"
    text = (trial.folder / "repo.yml").read_text("utf-8")
    assert yaml.safe_load(text) == {
        "groups": [{"name": "dev", "description": "d", "members": ["bob", "alice"]}]
    }


def test_accounts_without_a_certain_name_are_not_adopted(tmp_path: Path) -> None:
    accounts = {"repo": {"one": "carol", "two": "carol"}}
    found = (finding("repo", "group", "dev"), finding("repo", "repository", "apps"))
    trial = Trial(tmp_path, *found, desired_state_accounts=accounts)
    assert trial.fails() == (
        "invalid",
        (
            "cannot adopt group dev: desired_state_accounts does not tell the names of accounts on"
            " the server: carol has the names one, two: leave one of them."
        ),
    )
    # the other finding is adopted
    assert [each["name"] for each in trial.written["adopted"]] == ["apps"]


def test_bodies_are_adopted_with_names(tmp_path: Path) -> None:
    accounts = {"wiki": {"alice": "5b10"}}
    trial = Trial(tmp_path, finding("wiki", "page", "REL/T"), desired_state_accounts=accounts)
    (trial.export / "wiki/t").mkdir(parents=True)
    page = '---\ntitle: T\n---\n<p><ri:user ri:account-id="5b10"/></p>'
    (trial.export / "wiki/t/index.xml").write_text(page, "utf-8")
    tree = "trees:\n- {src: wiki/t, space: REL, mark: false}\n"
    (trial.export / "wiki.yml").write_text(tree, "utf-8")
    trial.exports = {"wiki": {"exported": {}}}
    trial.adopt()
    pages = yaml.safe_load((trial.folder / "wiki.yml").read_text("utf-8"))["pages"]
    assert pages[1]["body"] == '<p><ri:user ri:username="alice"/></p>'


@pytest.mark.parametrize(
    ("option", "after"), [("parent_id", "'1001'"), ("parent_title", "Home"), ("labels", "[]")]
)
def test_parent_is_adopted_as_the_entry_names_it(tmp_path: Path, option: str, after: str) -> None:
    before = "[a]" if option == "labels" else "other"
    folder = {"wiki.yml": f"pages:\n- {{space: REL, title: T, {option}: {before}}}\n"}
    row = finding("wiki", "page", "REL/T", before={"parent_id": "1001"}, after={"parent_id": "7"})
    trial = Trial(tmp_path, row)
    write(trial.folder, folder)
    (trial.export / "wiki/t").mkdir(parents=True)
    page = "---\ntitle: T\nlabels: []\n---\n<p/>"
    (trial.export / "wiki/t/index.xml").write_text(page, "utf-8")
    tree = "trees:\n- {src: wiki/t, space: REL, mark: false, parent_title: Home}\n"
    (trial.export / "wiki.yml").write_text(tree, "utf-8")
    trial.exports = {"wiki": {"exported": {}, "parents": {"REL/T": "1001"}}}
    trial.adopt()
    (entry,) = yaml.safe_load((trial.folder / "wiki.yml").read_text("utf-8"))["pages"]
    assert {**entry, "body": ""} == {
        "space": "REL",
        "title": "T",
        "body": "",
        option: yaml.safe_load(after),
    }


JOB = finding("ci", "job", "inline")
INVALID: list[tuple[dict[str, Any], dict[str, Any], str, str]] = [
    (JOB, {"adopt_findings": None}, "invalid", "adopt_findings is empty or no list"),
    (JOB, {"adopt_findings": []}, "invalid", "adopt_findings is empty or no list"),
    (JOB, {"adopt_findings": 1.5}, "invalid", "adopt_findings is empty or no list"),
    (JOB, {"adopt_findings": "x"}, "invalid", "adopt_findings[0] matches no finding of the report"),
    (JOB, {"adopt_findings": [{"kid": "job"}]}, "invalid", "(did you mean kind?)"),
    (JOB, {"adopt_findings": [{"kind": "view"}]}, "invalid", "matches no finding"),
    (JOB, {"adopt_report": None}, "invalid", "adopt_report: cannot read"),
    (JOB, {"adopt_report": "state"}, "invalid", "adopt_report: cannot read"),
    (JOB, {"servers": [{}]}, "invalid", "it is not a report of drift"),
    (JOB, {"servers": ["x"]}, "invalid", "it is not a report of drift"),
    (JOB, {"servers": None}, "invalid", "it is not a report of drift"),
    (JOB, {"servers": {"a": 1}}, "invalid", "it is not a report of drift"),
    ({**JOB, "status": 1}, {}, "invalid", "it is not a report of drift"),
    (JOB, {"adopt_report": True}, "invalid", "adopt_report must be the path"),
    (JOB, {"desired_state_folder": "none"}, "invalid", "is not a folder"),
    (JOB, {"desired_state_environment": "test"}, "invalid", "has no environment 'test'"),
    (JOB, {"adopt_connections": {"repo": {}}}, "invalid", "adopt_connections has no url for ci"),
    (
        JOB,
        {"adopt_connections": {"ci": {"url": "https://other.example"}}},
        "invalid",
        "the report does not name the server https://other.example",
    ),
    (JOB, {"adopt_deletions": "maybe"}, "invalid", "set it to true or false"),
    ({**JOB, "host": "other"}, {}, "invalid", "findings of other"),
    ({**JOB, "status": "failed"}, {}, "invalid", "is a failure"),
    (finding("ci", "script", "x"), {}, "invalid", "is no object of a desired state"),
    (finding("ci", "job", "twin"), {}, "failed", "it was deleted since the report"),
]


@pytest.mark.parametrize(("one", "variables", "kind", "text"), INVALID)
def test_what_cannot_be_adopted_changes_nothing(
    one: dict[str, Any], variables: dict[str, Any], kind: str, text: str, tmp_path: Path
) -> None:
    trial = Trial(tmp_path, one, **variables)
    found = trial.fails()
    assert found[0] == kind, found
    assert text in found[1]
    assert {name: (trial.folder / name).read_text("utf-8") for name in FOLDER} == FOLDER


def test_random_changes_on_servers_change_their_entries_only(tmp_path: Path) -> None:
    chance = random.Random(3)
    repositories = [{"key": f"r{n}", "description": "d", "includes": ["a"]} for n in range(30)]
    versions = [{"project": "REL", "name": f"v{n}", "description": "d"} for n in range(30)]
    state: dict[str, dict[str, list[dict[str, Any]]]] = {
        "repo": {"repositories": repositories},
        "tracker": {"versions": versions},
    }
    values = ["true", "1.0", "", "# x", "a: b", "two\nlines\n", "ü", "- x", "'", "{x}"]
    for number in range(RANDOM_RUNS):
        home = tmp_path / str(number)
        trial = Trial(home)
        commented = {
            f"{service}.yml": "# kept\n"
            + yaml.safe_dump(lists, sort_keys=False, indent=number % 3 + 2)
            for service, lists in state.items()
        }
        write(trial.folder, commented)
        changed = copy.deepcopy(state)
        findings = []
        for entry in chance.sample(changed["repo"]["repositories"], 3):
            entry["includes"] = chance.sample(["a", "b/**", "*", "c"], chance.randint(1, 4))
            entry["description"] = chance.choice(values)
            findings.append(finding("repo", "repository", entry["key"], before={"includes": []}))
        for entry in chance.sample(changed["tracker"]["versions"], 2):
            entry["description"] = chance.choice(values)
            findings.append(finding("tracker", "version", f"REL/{entry['name']}"))
        for service, lists in changed.items():
            write(trial.export, {f"{service}.yml": yaml.safe_dump(lists, sort_keys=False)})
        again = Trial(home, *findings)
        write(trial.folder, commented)
        for service, lists in changed.items():
            write(trial.export, {f"{service}.yml": yaml.safe_dump(lists, sort_keys=False)})
        again.adopt()
        for service, lists in changed.items():
            text = (trial.folder / f"{service}.yml").read_text("utf-8")
            assert yaml.safe_load(text) == lists
            names = {str(each["name"]).removeprefix("REL/") for each in findings}
            assert _others(text, names) == _others(commented[f"{service}.yml"], names)


def _others(text: str, names: set[str]) -> list[str]:
    """Return the lines of a file without those of the named entries."""
    found: list[str] = []
    for part in re.split(r"(?m)^(?= *- +(?:key|project):)", text):
        name = re.search(r"(?m)^ *(?:- +key|name): (\S+)$", part)
        is_named = name is not None and name[1] in names
        found += [] if is_named else part.splitlines()
    return found


def test_what_the_export_left_out_is_never_removed(tmp_path: Path) -> None:
    missing = finding("ci", "job", "twin", action="create")
    trial = Trial(tmp_path, missing, adopt_deletions=True)
    kind, text = trial.fails([{"kind": "job", "name": "*", "reason": "no permission"}])
    assert (kind, "no permission" in text) == ("failed", True)


def test_uncommitted_changes_are_a_conflict(tmp_path: Path) -> None:
    trial = Trial(tmp_path, JOB)
    for command in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm one"):
        subprocess.run(["git", *command.split()], cwd=trial.folder, check=True)
    write(trial.folder, {"repo.yml": FOLDER["repo.yml"] + "# other file\n"})
    assert [row["file"] for row in trial.adopt()["files"]] == ["ci.yml"]
    write(trial.folder, {"ci.yml": FOLDER["ci.yml"] + "# mine\n"})
    kind, text = trial.fails()
    assert (kind, "uncommitted changes in ci.yml" in text) == ("conflict", True)
    trial.variables["adopt_force"] = True
    trial.adopt()
    assert (trial.folder / "ci.yml").read_text("utf-8").endswith("# mine\n")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("update-index --skip-worktree ci.yml", "changes Git does not show: ci.yml"),
        ("update-index --assume-unchanged ci.yml", "changes Git does not show: ci.yml"),
        ("rm -q --cached ci.yml", "has files that Git ignores: ci.yml"),
    ],
)
def test_files_that_git_does_not_watch_are_a_conflict(
    command: str, words: str, tmp_path: Path
) -> None:
    trial = Trial(tmp_path, JOB)
    write(trial.folder, {".gitignore": "ci.yml\n"})
    setup = ("init -q", "add -f .", "-c user.name=a -c user.email=a@b.c commit -qm one", command)
    commit = "-c user.name=a -c user.email=a@b.c commit -qm two --allow-empty"
    for each in (*setup, commit):
        subprocess.run(["git", *each.split()], cwd=trial.folder, check=True)
    kind, text = trial.fails()
    assert (kind, words in text) == ("conflict", True), text
    assert (trial.folder / "ci.yml").read_text("utf-8") == FOLDER["ci.yml"]
    trial.variables["adopt_force"] = True
    trial.adopt()


def test_links_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    trial = Trial(tmp_path, finding("ci", "job", "build"))
    file = trial.folder / "ci/jobs/build.xml"
    file.rename(tmp_path / "outside.xml")
    file.symlink_to(tmp_path / "outside.xml")
    assert trial.fails()[0] == "invalid"


def test_a_page_keeps_its_front_matter_and_line_ends() -> None:
    own = "---\ntitle: One  # the first\r\nlabels: [b, a]\n---\n<p>old</p>\r\n<p>b</p>\n<p>c</p>"
    body = "<p>new</p>\n<p>b</p>\n<p>c</p>"
    text = adopted_objects.page_text(own, body, Path("one.xml"), ["a", "c"])
    assert text == own.replace("b, a", "a, c").replace("old", "new")
    with pytest.raises(CannotAdopt, match=r"one.md is not in storage format"):
        adopted_objects.page_text(own, "<p>new</p>", Path("one.md"), None)


_JOB = {"ci.yml": "jobs:\n- {job: j, src: j.xml}\n", "j.xml": "<project>\n  <a>1</a>\n</project>\n"}
_OTHERS = {
    "ci.yml": "jobs:\n- {job: j, src: a.xml}\n",
    "a.xml": "<project><a>0</a></project>",
    "environments/test/ci.yml": "jobs:\n- {job: k, src: ../../a.xml}\n",
}
_RENAMED = "components:\n- {project: P, name: old, new_name: new, description: x}\n"


def _trial(
    path: Path,
    one: Mapping[str, Any],
    folder: Mapping[str, str],
    export: Mapping[str, str],
    **variables: Any,
) -> Trial:
    trial = Trial(path, one, **variables)
    for place, files in ((trial.folder, folder), (trial.export, export)):
        shutil.rmtree(place)
        write(place, files)
    return trial


def test_file_of_another_environment_stays(tmp_path: Path) -> None:
    trial = _trial(tmp_path, finding("ci", "job", "j"), _OTHERS, _JOB)
    trial.adopt()
    assert (trial.folder / "a.xml").read_text("utf-8") == _OTHERS["a.xml"]
    assert "<a>1</a>" in (trial.folder / "ci/jobs/a.xml").read_text("utf-8")


def test_file_of_another_environment_is_not_removed(tmp_path: Path) -> None:
    gone = {**_OTHERS, "ci.yml": "jobs:\n- {job: z, src: a.xml}\n- {job: q}\n"}
    one = finding("ci", "job", "z", action="create")
    trial = _trial(tmp_path, one, gone, _JOB, adopt_deletions=True)
    trial.adopt()
    assert (trial.folder / "a.xml").exists()
    assert "job: z" not in (trial.folder / "ci.yml").read_text("utf-8")


PARAMETER = "<hudson.model.PasswordParameterDefinition><name>{}</name><defaultValue>{}</defaultValue></hudson.model.PasswordParameterDefinition>"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIsecretKey\nline\n-----END PRIVATE KEY-----"


def _project(*parts: str) -> str:
    return "\n".join(["<project>", *parts, "</project>", ""])


BASE = {
    "environments/prod/ci.yml": "jobs:\n- {job: k, src: k.xml}\n",
    "environments/prod/k.xml": "<project><a>1</a></project>",
    "k0.xml": "<project><a>0</a></project>",
    "repo.yml": "repositories:\n# all\n- {key: libs, rclass: local, description: old}\npermissions:\n- name: p\n- name: gone\n",
    "ci.yml": "jobs:\n- {job: j, src: j.xml, enabled: true}\n- {job: k, src: k0.xml}\nconfiguration:\n- config:\n    jenkins:\n      mode: X\n",
    "j.xml": _project(PARAMETER.format("one", "s-1"), "<a>1</a>"),
    "tracker.yml": "project_roles:\n- {project: P, role: R, users: [a]}\n",
    "wiki.yml": "trees:\n- {src: docs, space: REL}\n",
    "docs/one.xml": "---\ntitle: One\n---\n<p>old</p>\n",
    "environments/prod/repo.yml": "# prod\nrepositories:\n- {key: other, rclass: local}\npermissions:\n- name: gone\n  state: absent\n",
    "environments/test/ci.yml": "jobs:\n- {job: j, enabled: false}\n",
}
SERVER = {
    "ci/k.xml": "<project>\n  <a>2</a>\n</project>\n",
    "repo.yml": "repositories:\n- {key: libs, rclass: local, description: new}\n- {key: added, rclass: local}\npermissions:\n- name: gone\n",
    "ci.yml": "jobs:\n- {job: j, src: ci/j.xml}\n- {job: k, src: ci/k.xml}\nconfiguration:\n- config: {jenkins: {mode: Y}}\n",
    "ci/j.xml": _project(
        PARAMETER.format("one", "(kept by the server)"), "<a>2</a>", "<disabled>false</disabled>"
    ),
    "tracker.yml": "{}\n",
    "wiki.yml": "trees:\n- {src: wiki/One, space: REL}\n",
    "wiki/One/index.xml": "---\ntitle: One\n---\n<p>new</p>\n",
}
SECTION = """\
configuration:
# ours
- config:
    jenkins:
      systemMessage: '${MESSAGE}'   # by environment
      numExecutors: '5'
      mode: "NORMAL"   # for now
      labelString: b
      globalNodeProperties:
      - envVars:
          env:
          # second
          - {key: B, value: "1"}   # b
          - key: A   # a
            value: '${A}'   # kept
          - key: C   # c
            value: "x"   # old
      disabledAdministrativeMonitors: [z, 'a']
    unclassified: {location: {url: 'https://x/'}}
"""
PROPERTIES = [
    {
        "envVars": {
            "env": [
                {"key": "A", "value": "r"},
                {"key": "B", "value": 1},
                {"key": "C", "value": "y"},
            ]
        }
    }
]
LIVE = {
    "systemMessage": "resolved",
    "numExecutors": 5,
    "mode": "EXCLUSIVE",
    "labelString": "other",
    "globalNodeProperties": PROPERTIES,
    "disabledAdministrativeMonitors": ["a", "m", "z"],
}
OPTIONS = """\
repositories:
- key: libs
  description: old   # why
  environments: ["PROD", DEV]
  settings: {maxUniqueSnapshots: '5', xrayIndex: yes, other: "1"}
  repositories: [b, 'a']  # order
"""
#: Files of the folder and of the export, a finding, and the lines that change.
SPELLED: list[tuple[str, Any, dict[str, Any], list[str]]] = [
    (
        SECTION,
        LIVE,
        {"jenkins.mode": 1},
        ['-      mode: "NORMAL"   # for now', '+      mode: "EXCLUSIVE"   # for now'],
    ),
    (
        SECTION,
        LIVE,
        {
            "jenkins.globalNodeProperties[envVars].envVars.env[C].value": 1,
            "jenkins.disabledAdministrativeMonitors": [],
        },
        [
            '-            value: "x"   # old',
            "-      disabledAdministrativeMonitors: [z, 'a']",
            '+            value: "y"   # old',
            "+      disabledAdministrativeMonitors: [z, 'a', m]",
        ],
    ),
    # the order of items differs
    (
        SECTION,
        LIVE,
        {"jenkins.globalNodeProperties[envVars].envVars.env": []},
        [
            '-          - {key: B, value: "1"}   # b',
            '+          - {key: B, value: "1"}   # b',
            '-            value: "x"   # old',
            '+            value: "y"   # old',
        ],
    ),
    # of what the server does not have, nothing is left
    (
        SECTION,
        {key: value for key, value in LIVE.items() if key != "labelString"},
        {"jenkins.labelString": None},
        ["-      labelString: b"],
    ),
    (
        OPTIONS,
        {
            "description": "new",
            "environments": ["DEV", "PROD"],
            "settings": {"maxUniqueSnapshots": 5, "xrayIndex": True, "other": 1},
        },
        {"description": "new"},
        ["-  description: old   # why", "+  description: new   # why"],
    ),
    (
        OPTIONS,
        {"description": "a\nb\n"},
        {"description": "new"},
        ["-  description: old   # why", "+  description: |   # why", "+    a", "+    b"],
    ),
    (
        OPTIONS,
        {
            "settings": {"maxUniqueSnapshots": 5, "xrayIndex": True, "other": 2},
            "environments": ["DEV", "NEW", "PROD"],
        },
        {"settings.other": 2, "environments": []},
        [
            '-  environments: ["PROD", DEV]',
            "-  settings: {maxUniqueSnapshots: '5', xrayIndex: yes, other: \"1\"}",
            '+  environments: ["PROD", DEV, NEW]',
            "+  settings: {maxUniqueSnapshots: '5', xrayIndex: yes, other: 2}",
        ],
    ),
    # the order of these counts
    (
        OPTIONS,
        {"repositories": ["a", "c", "b"]},
        {"repositories": []},
        ["-  repositories: [b, 'a']  # order", "+  repositories: ['a', c, b]  # order"],
    ),
]


@pytest.mark.parametrize(("folder", "live", "before", "lines"), SPELLED, ids=range(len(SPELLED)))
def test_only_what_differs_is_written(
    folder: str, live: Any, before: dict[str, Any], lines: list[str], tmp_path: Path
) -> None:
    exported: dict[str, Any]
    if folder is SECTION:
        one = finding("ci", "configuration", "jenkins, unclassified", before=before)
        state: dict[str, Any] = {
            "jenkins": live,
            "unclassified": {"location": {"url": "https://y/"}},
        }
        file, exported = (
            "ci.yml",
            {"configuration": [{"config": {name: value}} for name, value in state.items()]},
        )
    else:
        one = finding("repo", "repository", "libs", before=before)
        file, exported = "repo.yml", {"repositories": [{"key": "libs", **live}]}
    export = {file: yaml.safe_dump(exported)}
    trial = _trial(tmp_path, one, {file: folder}, export)
    found = trial.adopt()
    assert [*found["lines"]] == lines
    assert trial.adopt()["lines"] == []


@pytest.mark.parametrize("in_file", [False, True])
def test_sections_in_strings_and_files_are_edited(in_file: bool, tmp_path: Path) -> None:
    text = "jenkins:  # ours\n  mode: 'A'  # for now\n  systemMessage: ${M}\n"
    block = "".join(f"    {line}\n" for line in text.splitlines())
    entry = "- src: casc/all.yaml\n" if in_file else f"- config: |\n{block}"
    folder = {"ci.yml": f"configuration:\n{entry}", "casc-all.txt": text}
    live = {"jenkins": {"mode": "B", "systemMessage": "x"}}
    export = {"ci.yml": yaml.safe_dump({"configuration": [{"config": live}]})}
    one = finding("ci", "configuration", "jenkins", before={"jenkins.mode": "B"})
    trial = _trial(tmp_path, one, folder, export)
    if in_file:
        folder["ci.yml"] = folder["ci.yml"].replace("casc/all.yaml", "casc-all.txt")
        write(trial.folder, folder)
    trial.adopt()
    file = "casc-all.txt" if in_file else "ci.yml"
    assert (trial.folder / file).read_text("utf-8") == folder[file].replace("'A'", "'B'")


LIBS = finding("repo", "repository", "libs")
PROD = {"desired_state_environment": "prod"}
#: Finding, variables, the text of each file that changes (`...` for any text), and words of an error.
INTO: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    (
        LIBS,
        PROD,
        {
            "environments/prod/repo.yml": BASE["environments/prod/repo.yml"].replace(
                "permissions", "- key: libs\n  description: new\npermissions"
            )
        },
        "",
    ),
    (
        LIBS,
        {**PROD, "adopt_into": "base"},
        {"repo.yml": BASE["repo.yml"].replace("old", "new")},
        "",
    ),
    (LIBS, {}, {"repo.yml": BASE["repo.yml"].replace("old", "new")}, ""),
    (
        finding("ci", "job", "j"),
        PROD,
        {
            "environments/prod/ci.yml": BASE["environments/prod/ci.yml"]
            + "- job: j\n  src: ci/jobs/j.xml\n",
            "environments/prod/ci/jobs/j.xml": _project(
                PARAMETER.format("one", "s-1"), "<a>2</a>", "<disabled>false</disabled>"
            ),
        },
        "",
    ),
    (
        finding("repo", "repository", "added", status="unmanaged", action="none"),
        {**PROD, "adopt_into": "base"},
        {
            "repo.yml": BASE["repo.yml"].replace(
                "permissions", "- key: added\n  rclass: local\npermissions"
            )
        },
        "",
    ),
    (
        finding("repo", "permission", "p", action="create"),
        {**PROD, "adopt_deletions": True},
        {
            "environments/prod/repo.yml": BASE["environments/prod/repo.yml"]
            + "- name: p\n  state: absent\n"
        },
        "",
    ),
    (
        finding("repo", "permission", "p", action="create"),
        {**PROD, "adopt_deletions": True, "adopt_into": "base"},
        {"repo.yml": BASE["repo.yml"].replace("- name: p\n", "")},
        "",
    ),
    (
        finding("tracker", "role", "P/R", action="create"),
        {**PROD, "adopt_deletions": True},
        {},
        "entries of project_roles cannot be absent in one environment: set adopt_into: base",
    ),
    (
        finding("ci", "configuration", "jenkins", before={"jenkins.mode": "Y"}),
        PROD,
        {},
        "an environment replaces the whole list configuration",
    ),
    (
        finding("ci", "configuration", "jenkins", before={"jenkins.mode": "Y"}),
        {**PROD, "adopt_into": "base"},
        {"ci.yml": BASE["ci.yml"].replace("X", "Y")},
        "",
    ),
    (finding("wiki", "page", "REL/One"), PROD, {}, "its file one.xml is for all environments"),
    (
        finding("wiki", "page", "REL/One"),
        {**PROD, "adopt_into": "base"},
        {"docs/one.xml": BASE["docs/one.xml"].replace("old", "new")},
        "",
    ),
    # the environment only says that the object is not there
    (
        finding("repo", "permission", "gone", action="delete"),
        PROD,
        {
            "environments/prod/repo.yml": BASE["environments/prod/repo.yml"].replace(
                "absent", "present"
            )
        },
        "",
    ),
    (
        finding("ci", "job", "k"),
        {**PROD, "adopt_into": "base"},
        {"environments/prod/k.xml": BASE["environments/prod/k.xml"].replace("1", "2")},
        "",
    ),
    (LIBS, {**PROD, "adopt_into": "prod"}, {}, "adopt_into must be environment or base"),
    (LIBS, {**PROD, "adopt_into": 1.5}, {}, "adopt_into must be environment or base"),
    (LIBS, {"adopt_into": "environment"}, {}, "set desired_state_environment"),
]


@pytest.mark.parametrize(("one", "variables", "files", "words"), INTO)
def test_differences_go_into_the_environment(
    one: dict[str, Any],
    variables: dict[str, Any],
    files: dict[str, str],
    words: str,
    tmp_path: Path,
) -> None:
    trial = _trial(tmp_path, one, BASE, SERVER, **variables)
    if words:
        assert words in trial.fails()[1]
    else:
        rows = trial.adopt()["files"]
        assert sorted(row["file"] for row in rows) == sorted(files)
        assert {row["finding"] for row in rows} == {finding_id(one)}
    texts = {
        path.relative_to(trial.folder).as_posix(): path.read_text("utf-8")
        for path in trial.folder.rglob("*")
        if path.is_file()
    }
    changed = {name: text for name, text in texts.items() if BASE.get(name) != text}
    for name, text in changed.items():
        assert "".join(text.split()) == "".join(files[name].split()), text
    assert set(changed) == set(files)
    assert set(texts) >= set(BASE)


def test_one_finding_that_cannot_be_adopted_stops_no_other(tmp_path: Path) -> None:
    page = finding("wiki", "page", "123")
    failed = finding("repo", "repository", "x", status="failed")
    trial = _trial(tmp_path, LIBS, BASE, SERVER)
    rows = [{"service": service, "server": url} for service, url in SERVERS.items()]
    findings = [page, failed, LIBS, finding("ci", "job", "j")]
    write(tmp_path / "report", {"report.json": json.dumps({"findings": findings, "servers": rows})})
    trial.variables["adopt_findings"] = [finding_id(each) for each in findings]
    trial.exports = {"ci": {"msg": "cannot reach the server", "failed": False}}
    kind, message = trial.fails()
    assert kind == "failed"
    for words in (
        "page 123: its entry has a page_id",
        "is a failure",
        "job j: its server could not be read: cannot",
    ):
        assert words in message
    assert [each["name"] for each in trial.written["adopted"]] == ["libs"]
    assert trial.written["lines"] == [
        "1 of 4 findings adopted in repo.yml.",
        "repository libs: repo.yml",
    ]
    assert (trial.folder / "repo.yml").read_text("utf-8") == BASE["repo.yml"].replace("old", "new")


def test_finding_whose_file_cannot_be_edited_stops_no_other(tmp_path: Path) -> None:
    folder = {
        "repo.yml": "groups:\n- {name: g, description: &d old}\n- {name: h, description: *d}\n"
    }
    export = {
        "repo.yml": 'groups:\n- {name: h, description: "new"}\n- {name: g, bad: 1, description: [x]}\n'
    }
    one, two = finding("repo", "group", "g"), finding("repo", "group", "h")
    trial = _trial(tmp_path, one, folder, export)
    rows = [{"service": service, "server": url} for service, url in SERVERS.items()]
    write(
        tmp_path / "report", {"report.json": json.dumps({"findings": [one, two], "servers": rows})}
    )
    trial.variables["adopt_findings"] = [finding_id(one), finding_id(two)]
    kind, message = trial.fails()
    assert (kind, "cannot adopt group g: the server's state violates the schema" in message) == (
        "failed",
        True,
    )
    text = (trial.folder / "repo.yml").read_text("utf-8")
    assert text == folder["repo.yml"].replace("*d", "new")


@pytest.mark.parametrize("inline", [False, True])
def test_secret_stays_with_its_parameter_and_is_not_shown(inline: bool, tmp_path: Path) -> None:
    own = _project(
        PARAMETER.format("one", "s-1"),
        PARAMETER.format("two", "s&amp;2"),
        "<a>1</a>",
        f"<key>{KEY}</key>",
        "<!-- <token>t-0</token> s-1-long -->",
        PARAMETER.format("six", "s-1-long"),
    )
    kept = "(kept by the server)"
    exported = _project(
        *(PARAMETER.format(name, kept) for name in ("new", "two", "one")), "<a>2</a>"
    )
    block = "".join(f"    {line}\n" for line in own.splitlines())
    folder = {
        "ci.yml": f"jobs:\n- job: j\n  config: |\n{block}"
        if inline
        else "jobs:\n- {job: j, src: j.xml}\n",
        "j.xml": own,
    }
    export = {"ci.yml": "jobs:\n- {job: j, src: x.xml}\n", "x.xml": exported}
    trial = _trial(tmp_path, finding("ci", "job", "j"), folder, export)
    found = trial.adopt()
    text = (trial.folder / ("ci.yml" if inline else "j.xml")).read_text("utf-8")
    pairs = re.findall(r"<name>(\w+)</name>\s*<defaultValue>(.*?)</defaultValue>", text)
    assert pairs == [("new", kept), ("two", "s&amp;2"), ("one", "s-1")]
    for secret in ("s-1", "s&amp;2", "MIIsecretKey", "t-0"):
        assert secret not in found["patch"] + found["diff"]["prepared"]
    assert {"-<a>1</a>", "+<a>2</a>"} <= {line.replace(" ", "") for line in found["lines"]}
    assert found["patch"].count("***") > 5


SHOWN = """\
configuration:
- config:
    unclassified:
      mail:
        smtpPassword: "hush hush"   # kept
        port: 25
      entries:
        - {name: DEPLOY_TOKEN, value: abcdef}
        - {name: COLOR, value: red}
      key: &k |-
        first
        second
      secretText: *k
      text: |
        token: inner-secret
        port: 1
      url: https://u:pass-word@host/x
"""


def test_patch_masks_values_by_their_names() -> None:
    text = masked_patch.patch("ci.yml", SHOWN, SHOWN.replace("25", "26"))
    assert "-        port: 25\n" in text
    assert "+        port: 26\n" in text
    assert "         smtpPassword: ***   # kept\n" in text
    whole = masked_patch.patch("ci.yml", SHOWN, None)
    for secret in ("hush", "abcdef", "first", "second", "pass-word", "inner"):
        assert secret not in whole
    assert "value: red" in whole
    assert whole.count("\n") == SHOWN.count("\n") + 3
    broken = "<project><token>hush</token>"
    assert "hush" not in masked_patch.patch("j.xml", None, broken)


@pytest.mark.parametrize(
    ("start", "end", "line"),
    [
        ("---", "---", "\r\n"),
        ("--- ", "---\t", "\n"),
        ("---", "...", "\n"),
        ("\ufeff---", "---", "\n"),
    ],
)
def test_page_of_a_tree_keeps_its_layout(start: str, end: str, line: str, tmp_path: Path) -> None:
    head = f"{start}{line}title: One  # first{line}labels: a, c{line}{end}{line}"
    folder = {"wiki.yml": "trees:\n- {src: docs, space: REL}\n"}
    export = {
        "wiki.yml": "trees:\n- {src: wiki/One, space: REL}\n",
        "wiki/One/index.xml": "---\ntitle: One\nlabels: [c, a]\n---\n<p>new</p>\n",
    }
    trial = _trial(tmp_path, finding("wiki", "page", "REL/One"), folder, export)
    page = trial.folder / "docs/one.xml"
    page.parent.mkdir()
    page.write_bytes(f"{head}<p>old</p>{line}".encode())
    trial.adopt()
    assert page.read_bytes().decode() == f"{head}<p>new</p>{line}"


def test_absent_job_gets_its_configuration(tmp_path: Path) -> None:
    one = finding("ci", "job", "j", action="delete")
    trial = _trial(tmp_path, one, {"ci.yml": "jobs:\n- {job: j, state: absent}\n"}, _JOB)
    trial.adopt()
    text = (trial.folder / "ci.yml").read_text("utf-8")
    assert "state: present" in text
    assert (trial.folder / text.split("src: ")[1].split("}")[0].strip(" ,\n")).is_file()


def test_leftovers_of_a_killed_run_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    trial = _trial(tmp_path, finding("ci", "job", "j"), _OTHERS, _JOB)
    run = bookkeeping.Run(trial.variables, lambda value: value, lambda path: {})
    ended = subprocess.Popen(["true"])
    ended.wait()
    first = Path(bookkeeping.perform("export_folder", run, {})["path"])
    killed = first.rename(str(first).replace(f"-{os.getppid()}-", f"-{ended.pid}-"))
    (killed / "ci.yml").touch()
    second = Path(bookkeeping.perform("export_folder", run, {})["path"])
    third = Path(bookkeeping.perform("export_folder", run, {})["path"])
    assert (killed.exists(), second.is_dir(), third.is_dir()) == (False, True, True)
    old, other = trial.folder / "ci/.0123456789abcdef.part", trial.folder / ".mine.part"
    old.parent.mkdir()
    for path in (old, other):
        path.touch()
    with atomic_write(str(trial.folder / "x.txt")) as stream:
        stream.write(b"x")
        trial.adopt()
    assert (old.exists(), other.exists(), (trial.folder / "x.txt").exists()) == (False, True, True)


def test_object_with_two_entries_is_not_adopted(tmp_path: Path) -> None:
    twice = "jobs:\n- {job: j, enabled: true}\n- {job: j, enabled: false}\n"
    folder = {**_OTHERS, "environments/prod/ci.yml": twice}
    variables = {"desired_state_environment": "prod"}
    trial = _trial(tmp_path, finding("ci", "job", "j"), folder, _JOB, **variables)
    assert "several entries describe it (environments/prod/ci.yml)" in trial.fails()[1]
    with pytest.raises(DesiredStateError, match=r"prod/ci.yml: jobs has the entry j twice"):
        read(trial.folder, Reading(lambda path: yaml.safe_load(Path(path).read_text())), "prod")


@pytest.mark.parametrize(
    ("one", "folder", "export", "words"),
    [
        (
            finding("ci", "job", "j"),
            {"ci.yml": "jobs:\n- {job: j, src: ci.yml}\n"},
            _JOB,
            "its src ci.yml is a YAML file",
        ),
        *(
            (
                finding("tracker", "component", f"P/{name}"),
                {"tracker.yml": _RENAMED},
                {"tracker.yml": f"components:\n- {{project: P, name: {name}, description: y}}\n"},
                "its entry has a new_name",
            )
            for name in ("old", "new")
        ),
    ],
)
def test_entry_that_cannot_be_edited_is_named(
    tmp_path: Path,
    one: dict[str, Any],
    folder: dict[str, str],
    export: dict[str, str],
    words: str,
) -> None:
    trial = _trial(tmp_path, one, folder, export)
    kind, message = trial.fails()
    assert kind == "failed"
    assert words in message
    assert {name: (trial.folder / name).read_text("utf-8") for name in folder} == folder
