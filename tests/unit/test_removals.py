# SPDX-License-Identifier: GPL-3.0-or-later
"""Test which objects are deleted because they were removed from the folder."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    bookkeeping,
    desired_state,
    removals,
)

State = Mapping[str, Mapping[str, Any]]


def titles(before: State, *after: State) -> list[str]:
    return [one.title for one in removals.removed(after, before)[0]]


def ci(*jobs: Any, **lists: Any) -> State:
    return {"ci": {"jobs": [{"job": job} for job in jobs], **lists}}


def wiki(**lists: Any) -> State:
    return {"wiki": lists}


def analysis(**lists: Any) -> State:
    return {"analysis": lists}


ABOVE = {"space": "REL", "title": "Above"}
LOGIN = {"folder": "team", "id": "login"}
#: Desired states before and after, and what is deleted.
DIFFERENCES: dict[str, tuple[State, State, list[str]]] = {
    "equal": (ci("a"), ci("a"), []),
    "removed": (ci("a", "b"), ci("b"), ["job a"]),
    "no service any more": (ci("a"), {}, ["job a"]),
    "twice": (ci("a", "a", "/A/"), {}, ["job /A/"]),
    "spelt differently": (ci("Team/One", "x"), ci("/team/one/", "X"), []),
    "as a URL": (ci("https://ci.example.org/job/team/view/x/job/one/"), ci("team/one"), []),
    "composed": (ci("Se\u0301rie"), ci("s\u00e9rie"), []),
    "children first": (ci("a", "a/b", "a/b/c"), {}, ["job a/b/c", "job a/b", "job a"]),
    "absent before": ({"ci": {"jobs": [{"job": "a", "state": "absent"}]}}, {}, []),
    "absent now": (ci("a"), {"ci": {"jobs": [{"job": "a", "state": "absent"}]}}, []),
    "released version": (
        {"tracker": {"versions": [{"project": "REL", "name": "1", "state": "released"}]}},
        {},
        ["version REL/1"],
    ),
    "default domain": (
        ci(credentials=[{**LOGIN, "domain": "_"}]),
        ci(credentials=[{**LOGIN, "folder": "/Team/"}]),
        [],
    ),
    "empty folder": (ci(views=[{"name": "x", "folder": ""}]), ci(views=[{"name": "x"}]), []),
    "another folder": (
        ci(credentials=[LOGIN, {"id": "login"}]),
        ci(credentials=[{"id": "login"}]),
        ["credential team/login"],
    ),
    "renamed": (
        {"tracker": {"components": [{"project": "REL", "name": "old"}]}},
        {"tracker": {"components": [{"project": "rel", "name": "Old", "new_name": "new"}]}},
        [],
    ),
    "was renamed": (
        {"tracker": {"components": [{"project": "REL", "name": "old", "new_name": "new"}]}},
        {"tracker": {"components": [{"project": "REL", "name": "new"}]}},
        [],
    ),
    "removed after it was renamed": (
        {"tracker": {"components": [{"project": "REL", "name": "old", "new_name": "new"}]}},
        {},
        ["component REL/new"],
    ),
    "modules of a renamed project": (
        analysis(projects=[{"name": "p"}], modules=[{"project": "p", "name": "m"}]),
        analysis(
            projects=[{"name": "p", "new_name": "q"}], modules=[{"project": "Q", "name": "m"}]
        ),
        [],
    ),
    "assignment to everything": (
        analysis(role_assignments=[{"name": "r", "account": "a", "group": False}]),
        analysis(role_assignments=[{"name": "r", "account": "a"}]),
        [],
    ),
    "assignment to a group": (
        analysis(role_assignments=[{"name": "r", "account": "a", "group": True}]),
        analysis(role_assignments=[{"name": "r", "account": "a"}]),
        ["role assignment r/group:a"],
    ),
    "kinds that are never deleted": (
        {
            "ci": {
                "plugins": [{"name": "git"}],
                "configuration": [{"config": {"jenkins": {}}}],
                "scripts": [{"name": "x"}],
            },
            "repo": {"rules": [{"repo": "x"}], "retention": [{"build_name": "x"}]},
            "tracker": {"project_roles": [{"project": "REL", "role": "Developers"}]},
            "wiki": {"trees": [{"src": "x", "space": "REL"}]},
            "analysis": {"defect_types": [{"project": "p", "code": "X", "enabled": True}]},
        },
        {},
        [],
    ),
    "folder of a job": (ci("a", "a/b"), ci("a/b"), []),
    "folder of a folder": (ci("a", "a/b", "x"), ci("a/b/c"), ["job x"]),
    "folder of a credential": (ci("team", "TEAM/x"), ci(credentials=[LOGIN]), ["job TEAM/x"]),
    "space of a page": (wiki(spaces=[{"key": "REL"}]), wiki(pages=[{**ABOVE, "space": "rel"}]), []),
    "space of a tree": (wiki(spaces=[{"key": "REL"}]), wiki(trees=[{"space": "REL"}]), []),
    "project of a defect type": (
        analysis(projects=[{"name": "p"}]),
        analysis(defect_types=[{"project": "P", "code": "x", "enabled": False}]),
        [],
    ),
    "parent of a page": (
        wiki(pages=[ABOVE]),
        wiki(pages=[{"space": "REL", "title": "Below", "parent_title": "above"}]),
        [],
    ),
    "parent of a tree": (
        wiki(pages=[{"page_id": "7"}]),
        wiki(trees=[{"space": "REL", "parent_id": "7"}]),
        [],
    ),
    "home page": (wiki(pages=[ABOVE]), wiki(spaces=[{"key": "rel", "home_page": "Above"}]), []),
    "new title of a page": (
        wiki(pages=[{"page_id": "7", "space": "REL", "title": "Old"}]),
        wiki(pages=[{"page_id": "7", "title": "New"}]),
        [],
    ),
    "section of a page": (wiki(pages=[{**ABOVE, "section": "Ours"}]), {}, []),
    "parents last": (
        wiki(pages=[ABOVE, {"space": "REL", "title": "Below", "parent_title": "Above"}]),
        {},
        ["page REL/Below", "page REL/Above"],
    ),
    "parents listed last": (
        wiki(pages=[{"space": "REL", "title": "Below", "parent_title": "Above"}, ABOVE]),
        {},
        ["page REL/Below", "page REL/Above"],
    ),
    "pages in a circle": (
        wiki(
            pages=[
                {**ABOVE, "parent_title": "Below"},
                {"space": "REL", "title": "Below", "parent_title": "Above"},
            ]
        ),
        {},
        ["page REL/Below", "page REL/Above"],
    ),
    "restrictions of a removed page": (
        wiki(pages=[ABOVE], restrictions=[ABOVE, {"page_id": "9"}]),
        {},
        ["restriction 9", "page REL/Above"],
    ),
    "restrictions that moved to the page": (
        wiki(restrictions=[ABOVE]),
        wiki(pages=[{**ABOVE, "restrictions": {"read": {}}}]),
        [],
    ),
    "virtual repositories first": (
        {"repo": {"repositories": [{"key": "v", "rclass": "virtual"}, {"key": "l"}]}},
        {},
        ["repository v", "repository l"],
    ),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_difference_is_deleted_children_first(case: str) -> None:
    before, after, expected = DIFFERENCES[case]
    assert titles(before, after) == expected
    assert titles(before, after, before) == titles(before, before) == titles({}, before) == []


WARNINGS = {
    "folder of a job": "The job a is not in the folder any more, but stays: the folder describes objects in it.",
    "section of a page": (
        "The page REL/Above is not in the folder any more, but stays: only a section of it was"
        " described."
    ),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_object_that_stays_is_a_warning(case: str) -> None:
    before, after, _expected = DIFFERENCES[case]
    assert removals.removed([after], before)[1] == [WARNINGS[case]]


def test_removal_has_the_options_that_identify_the_object() -> None:
    before: State = {
        "ci": {
            "jobs": [{"job": "a", "folder": True, "enabled": True, "force": True}],
            "credentials": [{**LOGIN, "secret": "x", "kind": "secret_text"}],
        },
        "repo": {"users": [{"name": "u", "user_password": "x", "force": True}]},
        "wiki": {"pages": [{"page_id": "7", "space": "REL", "title": "New", "body": "x"}]},
        "analysis": {"users": [{"name": "eve", "password": "x"}]},
    }
    found, _warnings = removals.removed([], before)
    assert {one.module: one.options for one in found} == {
        "ci_job": {"job": "a", "folder": True},
        "ci_credential": {"folder": "team", "id": "login"},
        "repo_user": {"name": "u"},
        "wiki_page": {"page_id": "7", "space": "REL"},
        "analysis_config": {"users": [{"name": "eve", "state": "absent"}]},
    }


_NAMES = st.sampled_from(["a", "A", "b", "a/b", "a/b/c", "d", "/d", "e/f"])
_ENTRIES = st.fixed_dictionaries(
    {"job": _NAMES}, optional={"state": st.sampled_from(["present", "absent"])}
)
_STATES = st.lists(_ENTRIES, max_size=6)


@given(_STATES, _STATES)
@settings(max_examples=100, deadline=None)
def test_nothing_but_the_difference_is_deleted(
    before: list[dict[str, str]], after: list[dict[str, str]]
) -> None:
    found = [
        one.options["job"].strip("/").lower()
        for one in removals.removed([ci(), {"ci": {"jobs": after}}], {"ci": {"jobs": before}})[0]
    ]
    owned = {entry["job"].strip("/").lower() for entry in before if entry.get("state") != "absent"}
    kept = {entry["job"].strip("/").lower() for entry in after}
    assert set(found) == {
        job for job in owned if not any(f"{one}/".startswith(f"{job}/") for one in kept)
    }
    assert sorted(found, key=lambda job: -job.count("/")) == found
    assert len(set(found)) == len(found)


# -- the folders ----------------------------------------------------------------------------------


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def run_with(variables: Mapping[str, Any]) -> bookkeeping.Run:
    def load(file: str) -> Any:
        return yaml.safe_load(Path(file).read_text("utf-8"))

    return bookkeeping.Run({"inventory_hostname": "one", **variables}, lambda value: value, load)


def step(name: str, variables: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    return bookkeeping.perform(name, run_with(variables), values)


def find(before: Path, after: Path, **variables: Any) -> list[str]:
    given_ = {"desired_state_folder": str(after), "desired_state_previous": str(before)}
    return found_by({**given_, **variables})[0]


def found_by(
    given_: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[list[str], list[str]]:
    """Return what the host `one` would delete, and its warnings.

    :param others: variables of the other hosts of the play
    """
    hosts = {"one": given_, **(others or {})}
    runs = {
        name: partial(run_with, {"inventory_hostname": name, **values})
        for name, values in hosts.items()
    }
    run = replace(runs["one"](), of_play=lambda: runs)
    known = bookkeeping.perform("describe", run, {})
    json.dumps(known)
    found = bookkeeping.perform("find_removals", run, {"known": known})
    removals_ = [one["title"] for one in found["removals"]]
    return removals_, found["messages"]


SECRET = "users: [{name: eve, password: {from: gone}}, {name: adam}]"


def test_folders_are_read_with_the_same_environment(tmp_path: Path) -> None:
    before = write(
        tmp_path / "before",
        {
            "analysis.yml": SECRET,
            "ci/jobs.yml": "jobs: [{job: a}, {job: b}, {job: c, state: absent}]",
            "environments/test/ci.yml": "jobs: [{job: t}, {job: b, state: absent}]",
            "environments/production/ci.yml": "jobs: [{job: p}]",
        },
    )
    after = write(
        tmp_path / "after",
        {"ci.yaml": "jobs: [{job: a}]", "environments/test/analysis.yml": "users: [{name: adam}]"},
    )
    assert find(before, after) == ["job b", "user eve"]
    assert find(before, after, desired_state_environment="test") == ["job t", "user eve"]
    # objects in variables are described too
    described = {"desired_state_jobs": [{"job": "b"}], "analysis_config_users": [{"name": "adam"}]}
    assert find(before, after, **described) == ["user eve"]
    assert find(before, before, gone="secret") == []


def _empty(folder: Path) -> None:
    folder.mkdir()


def _file(folder: Path) -> None:
    folder.write_text("jobs: []")


def _invalid(folder: Path) -> None:
    write(folder, {"ci.yml": "job: []"})


def _linked(folder: Path) -> None:
    write(folder, {"repo.yml": "groups: []"})
    (folder / "ci").symlink_to(folder.parent / "after")


def _other_environment(folder: Path) -> None:
    write(folder, {"ci.yml": "jobs: []", "environments/staging/ci.yml": "jobs: []"})


def _part(folder: Path) -> None:
    folder.symlink_to(folder.parent / "after/environments/test")


WRONG: dict[Callable[[Path], None], str] = {
    (lambda folder: None): "is not a folder",
    _empty: "has no files of a desired state",
    _file: "is not a folder",
    _invalid: "job is unknown",
    _linked: "ci is a link to a folder",
    _other_environment: "has no environment 'test'",
    _part: "is an environment of the present folder",
}


@pytest.mark.parametrize("make", WRONG)
def test_unusable_previous_folder_is_invalid(make: Callable[[Path], None], tmp_path: Path) -> None:
    after = {"ci.yml": "jobs: [{job: a}]", "environments/test/ci.yml": "jobs: []"}
    write(tmp_path / "after", after)
    make(tmp_path / "before")
    environment = "test" if make in (_other_environment, _part) else ""
    with pytest.raises(bookkeeping.StepError) as raised:
        find(tmp_path / "before", tmp_path / "after", desired_state_environment=environment)
    assert "desired_state_previous: " in str(raised.value)
    assert WRONG[make] in str(raised.value)


def test_unreadable_part_of_the_present_folder_is_no_removal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"ci/jobs.yml": "jobs: []", "repo.yml": "groups: []"})
    listed = os.listdir

    def refuse(path: Any) -> list[str]:
        if str(path).endswith("ci"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(desired_state.DesiredStateError, match="ci cannot be read: Permission"):
        desired_state.read(tmp_path, desired_state.Reading(lambda name: {}))


@pytest.mark.parametrize(
    ("previous", "message"),
    [
        (True, "to the path of a folder"),
        ([], "to the path of a folder"),
        ("x", "set desired_state_folder"),
    ],
)
def test_previous_folder_needs_a_path_and_a_present_folder(previous: Any, message: str) -> None:
    given_ = {"desired_state_previous": previous, "desired_state_jobs": [{"job": "a"}]}
    check = partial(step, "choose_entries") if previous == "x" else found_by
    with pytest.raises(bookkeeping.StepError, match=message):
        check(given_)


# -- other hosts, other environments, other files -------------------------------------------------

HERE = {"toolchain_analysis_url": "https://kw.example.org/"}


@pytest.mark.parametrize(
    ("server", "stays"),
    [
        ("https://kw.example.org", True),
        ("HTTPS://KW.example.org:443/", True),
        ("http://kw.example.org", True),
        ("", True),
        ("https://kw.example.org:8080", False),
        ("https://other.example.org", False),
        ("https://kw.example.org/second", False),
    ],
)
def test_object_that_another_host_of_the_server_describes_is_present(
    server: str, *, stays: bool, tmp_path: Path
) -> None:
    groups = "groups: [{name: mv-x}, {name: mv-y}]"
    before = write(tmp_path / "before", {"analysis.yml": groups})
    after = write(tmp_path / "after", {"analysis.yml": "groups: [{name: mv-y}]"})
    groups = "groups: [{name: MV-x}]"
    files = {"ci.yml": "jobs: []", "environments/e/analysis.yml": groups}
    two = write(tmp_path / "two", files)
    given_ = {**HERE, "desired_state_folder": str(after), "desired_state_previous": str(before)}
    other: dict[str, Any] = {"desired_state_folder": str(two), "toolchain_analysis_url": server}
    expected = [] if stays else ["group mv-x"]
    assert found_by(given_, {"two": other}) == (expected, [])
    # variables of the other host count too
    other = {
        "analysis_config_groups": [{"name": "mv-x"}],
        "toolchain_analysis_url": server,
    }
    assert found_by(given_, {"two": other}) == (expected, [])
    other["desired_state_folder"] = str(tmp_path / "nowhere")
    if stays:
        with pytest.raises(bookkeeping.StepError, match=r"host two: .*nowhere is not a folder"):
            found_by(given_, {"two": other})


def test_other_service_of_a_host_does_not_count(tmp_path: Path) -> None:
    """Verify that the second host prevents deletions on the server that it shares only."""
    before = write(
        tmp_path / "before", {"ci.yml": "jobs: [{job: a}]", "repo.yml": "groups: [{name: a}]"}
    )
    after = write(tmp_path / "after", {"ci.yml": "jobs: []"})
    given_ = {"desired_state_folder": str(after), "desired_state_previous": str(before)}
    urls = {"toolchain_ci_url": "https://ci.example.org", "toolchain_repo_url": "https://a.org"}
    other = {
        **urls,
        "toolchain_repo_url": "https://b.org",
        "desired_state_jobs": [{"job": "a"}],
        "desired_state_groups": [{"name": "a"}],
    }
    assert found_by({**given_, **urls}, {"two": other})[0] == ["group a"]


@pytest.mark.parametrize("environment", ["", "test", "prod"])
def test_object_that_moves_to_another_environment_stays(environment: str, tmp_path: Path) -> None:
    base = {"ci.yml": "jobs: [{job: base}]", "environments/prod/ci.yml": "jobs: []"}
    before = write(
        tmp_path / "before", {**base, "environments/test/ci.yml": "jobs: [{job: moves}]"}
    )
    after = write(
        tmp_path / "after",
        {
            "ci.yml": "views: []",
            "environments/test/ci.yml": "jobs: []",
            "environments/prod/ci.yml": "jobs: [{job: moves}, {job: base, state: absent}]",
        },
    )
    given_ = {"desired_state_folder": str(after), "desired_state_previous": str(before)}
    found, warnings = found_by({**given_, "desired_state_environment": environment})
    assert found == []
    stays = {"": ["base"], "test": ["moves", "base"], "prod": []}[environment]
    assert warnings == [
        removals.staying(f"job {name}", "another environment of it describes it") for name in stays
    ]


def test_other_environment_needs_no_secrets_and_is_validated(tmp_path: Path) -> None:
    secret = "credentials: [{id: x, secret: {from: gone}}]"
    files = {"ci.yml": "jobs: [{job: a}]", "environments/prod/ci.yml": secret}
    folder = write(tmp_path / "folder", files)
    assert find(folder, folder) == []
    write(folder, {"environments/prod/ci.yml": "jobs: [{jop: a}]"})
    with pytest.raises(bookkeeping.StepError, match=r"environments/prod/ci.yml:1: jobs\[0\].jop"):
        find(folder, folder)


BEFORE_FILES = {
    "ci.yml": "jobs: [{job: a}]",
    "ci/more.yaml": "views: [{name: v}]",
    "ci/jobs/a.xml": "<project/>",
    "repo.yml": "groups: []",
}
#: What replaces a file: its path, its content, and the file that is no longer there.
UNREAD = {
    "other case": ("ci.YML", "jobs: []", "ci.yml"),
    "template": ("ci.yaml.j2", "jobs: []", "ci.yml"),
    "template of another kind": ("ci.j2", "jobs: []", "ci.yml"),
    "JSON": ("ci.json", "{}", "ci.yml"),
    "hidden": (".ci.yml", "jobs: []", "ci.yml"),
    "hidden folder": (".ci/more.yml", "jobs: []", "ci/more.yaml"),
    "without ending": ("ci/more", "views: []", "ci/more.yaml"),
    "other ending in the folder": ("ci/more.json", "views: []", "ci/more.yaml"),
    "other case in the folder": ("ci/More.YAML", "views: []", "ci/more.yaml"),
    "backup": ("ci.yml.bak", "jobs: []", "ci.yml"),
    "new file": ("ci/new.Yml", "jobs: []", ""),
    "in an environment": ("environments/test/ci.YML", "jobs: []", ""),
    "empty": ("ci.yml", "", ""),
    "only comments": ("ci.yml", "# jobs: []\n\n", ""),
}


@pytest.mark.parametrize("case", UNREAD)
def test_file_that_nobody_reads_is_no_removal(case: str, tmp_path: Path) -> None:
    name, text, without = UNREAD[case]
    before = write(tmp_path / "before", BEFORE_FILES)
    after = write(tmp_path / "after", BEFORE_FILES)
    if without:
        (after / without).unlink()
    write(after, {name: text})
    with pytest.raises(bookkeeping.StepError) as raised:
        find(before, after)
    assert raised.value.kind == "invalid"
    assert f"{name} is {'empty' if name == 'ci.yml' else 'not read'}:" in str(raised.value)
    if name == "ci.yml":  # without the service before, nothing could be removed
        write(tmp_path / "other", {"repo.yml": "groups: []"})
        assert find(tmp_path / "other", after) == []


def test_files_beside_the_desired_state_are_no_mistake(tmp_path: Path) -> None:
    others = {
        ".export-ci.json": "{}",
        "ci.yml~": "jobs: [",
        "ci/.more.yaml.swp": "x",
        "ci.md": "# How we build",
        "README.md": "x",
        "ci/jobs/b.json": "{}",
        "ci/.gitignore": "x",
        ".git/ci.YML": "x",
        "wiki/pages/deploy.json": "{}",
    }
    before = write(tmp_path / "before", {**BEFORE_FILES, "ci.md": "x"})
    after = write(tmp_path / "after", {**BEFORE_FILES, **others, "ci/more.yaml": "views: []"})
    assert find(before, after) == ["view v"]


# -- tags of Git ----------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> None:
    name = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    command = ["git", "-C", str(folder), *name, *arguments]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with the folder `desired` for two environments, and its two states."""
    folder = tmp_path / "repository"
    environments = ("staging", "production")
    write(folder, {f"desired/environments/{name}/ci.yml": "jobs: []" for name in environments})
    write(folder, {"desired/ci.yml": "jobs: [{job: a}, {job: b}]"})
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    git(folder, "tag", "applied-staging")
    git(folder, "commit", "-q", "--allow-empty", "-m", "same content")
    git(folder, "tag", "same")
    write(folder, {"desired/ci.yml": "jobs: [{job: b}]"})
    git(folder, "commit", "-qam", "two")
    return folder


def find_in(repository: Path, tag: str, environment: str = "") -> tuple[list[str], list[str]]:
    previous = repository.parent / "previous"
    git(repository, "worktree", "add", "--detach", "--force", str(previous), tag)
    given_ = {
        "desired_state_folder": str(repository / "desired"),
        "desired_state_previous": str(previous / "desired"),
        "desired_state_environment": environment,
    }
    return found_by(given_)


@pytest.mark.parametrize("tag", ["applied-staging", "same"])
def test_folder_that_was_applied_for_the_environment_is_accepted(
    repository: Path, tag: str
) -> None:
    assert find_in(repository, tag, "staging") == (["job a"], [])


@pytest.mark.parametrize(
    ("tag", "environment", "message"),
    [
        ("applied-staging", "production", "was applied for staging, and not for production"),
        ("main", "staging", "is not what was applied for staging: the tag applied-staging marks"),
        ("same", "", "was applied for staging: set desired_state_environment"),
    ],
)
def test_folder_that_was_applied_for_another_environment_is_rejected(
    repository: Path, tag: str, environment: str, message: str
) -> None:
    with pytest.raises(bookkeeping.StepError, match=message) as raised:
        find_in(repository, tag, environment)
    assert raised.value.kind == "invalid"


def test_one_tag_for_two_environments_is_a_warning(repository: Path) -> None:
    git(repository, "tag", "applied", "applied-staging")
    git(repository, "tag", "--delete", "applied-staging")
    found, (warning,) = find_in(repository, "applied", "production")
    assert found == ["job a"]
    assert "Use a tag for each, such as applied-production" in warning


def test_folder_outside_of_git_says_nothing(repository: Path, tmp_path: Path) -> None:
    """Verify the output of `git archive` in the checkout, which is a part of no commit."""
    inner = write(repository / "previous", {"ci.yml": "jobs: [{job: a}]"})
    for name in ("staging", "production"):
        write(inner, {f"environments/{name}/ci.yml": "jobs: []"})
    given_ = {"desired_state_folder": str(repository / "desired")}
    given_ |= {"desired_state_previous": str(inner), "desired_state_environment": "production"}
    assert found_by(given_) == (["job a"], [])


@pytest.mark.parametrize("limit", ["many", 1.5, True])
def test_limit_is_read_before_anything_else(limit: Any, tmp_path: Path) -> None:
    folder = write(tmp_path, {"ci.yml": "jobs: []"})
    with pytest.raises(bookkeeping.StepError, match="must be a whole number"):
        find(folder, folder, desired_state_max_deletions=limit)


# -- the answers of the servers -------------------------------------------------------------------


def result(name: str, kind: str = "jobs", **values: Any) -> dict[str, Any]:
    removal = {"service": "ci", "list": kind, "module": "ci_job", "name": name, "title": name}
    return {"desired_state_removal": removal, "http": {}, "changed": True, **values}


def refused(name: str, kind: str) -> dict[str, Any]:
    return result(name, changed=False, msg=f"{name} must stay", error={"kind": kind})


def deletable(
    folder: Path,
    results: Sequence[Mapping[str, Any]],
    runs: Sequence[Any] = (),
    content: Sequence[Any] = (),
    **variables: Any,
) -> dict[str, Any]:
    values = {"removed": {"messages": ["first"]}, "results": results, "content": content}
    values["runs"] = runs
    given_ = {"desired_state_folder": str(folder), **variables}
    known = step("describe", given_)
    return step("deletable", given_, **values, known=known, reports=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pages = "pages: [{page_id: '7'}, {space: REL, title: Named}]\n"
    return write(tmp_path / "present", {"wiki.yml": pages})


def test_refusals_are_warnings_and_failures_stop_no_other(folder: Path) -> None:
    results = [
        result("one"),
        result("gone", changed=False),
        *(refused(kind, kind) for kind in ("conflict", "invalid", "not_found")),
        *(refused(kind, kind) for kind in ("permission", "protocol")),
        {**result("crash"), "http": None, "msg": "no result"},
        {key: value for key, value in result("crashed", msg="broken").items() if key != "http"},
        refused("down", "network"),
    ]
    found = deletable(folder, results)
    assert [one["name"] for one in found["removals"]] == ["one", "crash"]
    assert [line.rpartition(": ")[2] for line in found["warnings"]] == [
        "first",
        *(f"{kind} must stay." for kind in ("conflict", "invalid", "not_found")),
    ]
    assert [(one["kind"], one["name"], one["status"]) for one in found["report"]["findings"]] == [
        ("job", "permission", "failed"),
        ("job", "protocol", "failed"),
        ("job", "crashed", "failed"),
        ("server", "", "failed"),
    ]


def test_project_with_builds_and_version_with_issues_stay(folder: Path) -> None:
    names = ("full", "empty", "unknown", "null", "missing", "unread")
    content = [
        *(result("null", kind, builds=None, issues=None) for kind in ("projects", "versions")),
        *(result("missing", kind) for kind in ("projects", "versions")),
        result("full", "projects", changed=False, builds=[{"name": "1"}]),
        result("full", "versions", changed=False, issues=[{"key": "REL-1"}]),
        *(result("empty", kind, builds=[], issues=[]) for kind in ("projects", "versions")),
        *(refused("unknown", "permission") for _kind in ("projects", "versions")),
    ]
    for one, kind in zip(content[-2:], ("projects", "versions"), strict=True):
        one["desired_state_removal"]["list"] = kind
    results = [result(name, kind) for kind in ("projects", "versions") for name in names]
    found = deletable(folder, results, content=content)
    assert [one["name"] for one in found["removals"]] == ["empty", "empty"]
    assert [line.rpartition(": ")[2] for line in found["warnings"][1:]] == [
        "it has builds.",
        *["the server does not show whether it has builds."] * 3,
        "it has issues.",
        *["the server does not show whether it has issues."] * 3,
    ]
    assert found["failures"] == [
        "project unknown: unknown must stay",
        "version unknown: unknown must stay",
    ]


def test_page_that_is_described_in_another_way_stays(folder: Path) -> None:
    pages = {
        "by id": {"id": "7", "space": "REL", "title": "Seven"},
        "by title": {"id": "8", "space": "rel", "title": "named"},
        "of a tree": {"id": "9", "space": "REL", "title": "Tree"},
        "of a failed tree": {"id": "10", "space": "DOC", "title": "Ten"},
        "gone": {"id": "11", "space": "REL", "title": "Gone"},
    }
    pages_of_tree = [{"id": "9", "title": "Tree"}, {"id": None, "title": "New"}]
    runs: list[dict[str, Any]] = [
        {"applied_by": {"module": "wiki_tree", "names": {"space": "REL"}}, "pages": pages_of_tree},
        {"applied_by": {"module": "wiki_tree", "names": {"space": "DOC"}}, "failed": True},
    ]
    results = [result(name, "pages", page=page) for name, page in pages.items()]
    found = deletable(folder, results, runs)
    assert [one["name"] for one in found["removals"]] == ["gone"]
    # the restrictions of these pages are described nowhere
    results = [result(name, "restrictions", page=page) for name, page in pages.items()]
    assert len(deletable(folder, results)["removals"]) == len(pages)


@pytest.mark.parametrize(("limit", "number"), [(None, 10), ("2", 2), (0, 0), (12, 12)])
def test_number_of_deletions_is_limited(folder: Path, limit: Any, number: int) -> None:
    variables = {} if limit is None else {"desired_state_max_deletions": limit}
    kept = [refused("kept", "invalid"), result("gone", changed=False)]
    fits = [result(f"job-{n}") for n in range(number)]
    assert len(deletable(folder, [*fits, *kept], **variables)["removals"]) == number
    with pytest.raises(bookkeeping.StepError) as raised:
        deletable(folder, [*fits, *kept, result("last")], **variables)
    count = f"{number + 1} objects that are not in the folder any more would be deleted"
    assert count in str(raised.value)
    assert f"desired_state_max_deletions is {number}" in str(raised.value)


@pytest.mark.parametrize("limit", [True, -1, 1.5, "many", [], "\u0663"])
def test_limit_is_a_whole_number(folder: Path, limit: Any) -> None:
    with pytest.raises(bookkeeping.StepError, match="must be a whole number, such as 10"):
        deletable(folder, [], desired_state_max_deletions=limit)


def digests(*found: str) -> list[dict[str, Any]]:
    return [{"kind": "", "name": "x", "digests": [*found]}]


def test_deletion_that_is_not_chosen_is_not_tried(folder: Path) -> None:
    """A folder would fail because its jobs stay, although nobody asked for it."""
    results = [
        result("one", findings=digests("1")),
        result("two", findings=digests("2", "3")),
    ]
    plan = {"writes": ["3"], "rest": "skip"}
    found = deletable(folder, results, toolchain_sealed={"sealed": plan})
    assert [one["name"] for one in found["removals"]] == ["two"]
    strict = deletable(folder, results, toolchain_sealed={"sealed": {**plan, "rest": "fail"}})
    assert len(strict["removals"]) == 2
