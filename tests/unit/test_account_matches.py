# SPDX-License-Identifier: GPL-3.0-or-later
"""Match the accounts that a folder names with those of other servers, by email address."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    account_matches,
    bookkeeping,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.account_matches import (
    Match,
    User,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.accounts import (
    Accounts,
    read,
)

Row = Mapping[str, Any]

FOLDER = {
    "tracker.yml": "components: [{project: REL, name: client, lead: alice}]\n"
    "project_roles: [{project: REL, role: Developers, users: [alice, boris], groups: [qa]}]\n",
    "wiki.yml": "restrictions: [{space: REL, title: T, read: {users: [alice], groups: [qa]}}]\n"
    "trees: [{src: pages, space: REL}]\n",
    "pages/index.xml": "<p><ri:user ri:userkey='ff80'/><ri:user ri:account-id='5b'/></p>",
    "repo.yml": "users: [{name: zoe, email: zoe@example.com}]\n",
    "environments/eu/tracker.yml": "components: [{project: REL, name: client, lead: dora}]\n",
}
SERVERS = {"tracker": {"url": "https://a.example"}, "wiki": {"url": "https://b.example"}}
VARIABLES = {
    "match_accounts_from": SERVERS,
    "match_accounts_to": SERVERS,
    "match_accounts_file": "a.csv",
}


def _write(path: Path) -> None:
    for name, text in FOLDER.items():
        file = path / "state" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def _run(path: Path, **variables: Any) -> bookkeeping.Run:
    given = {"playbook_dir": str(path), "desired_state_folder": "state", **VARIABLES, **variables}

    def load(file: str) -> Any:
        return yaml.safe_load(Path(file).read_text("utf-8"))

    return bookkeeping.Run(given, lambda value: value, load)


def _old(**emails: str | None) -> list[Row]:
    return [
        {
            "user": name,
            "email": None,
            "matches": [{"account": name, "key": name, "email": email, "display_name": name}],
        }
        for name, email in emails.items()
    ]


def _found(account: str, email: str | None, key: str | None = None) -> dict[str, Any]:
    return {"account": account, "key": key, "email": email, "display_name": f"The {account}"}


def _new(**accounts: Sequence[Row]) -> list[Row]:
    return [
        {"user": None, "email": f"{name}@x.example", "matches": list(found)}
        for name, found in accounts.items()
    ]


ALICE, BORIS = _found("id-alice", "alice@x.example"), _found("id-boris", "boris@x.example")
OLD = _old(alice="alice@x.example", boris="boris@x.example", dora="dora@x.example")
NEW = _new(alice=[ALICE], boris=[BORIS], dora=[])
KEYS = [{"key": "ff80", "account": "alice"}]


def _matched(
    path: Path,
    old: Sequence[Row] = (),
    new: Sequence[Row] = (),
    keys: Sequence[Row] = (),
    **variables: Any,
) -> dict[str, Any]:
    values = {"old": old, "new": new, "keys": keys}
    return bookkeeping.perform("write_accounts", _run(path, **variables), values)


def test_users_of_all_environments_are_matched_but_no_groups(tmp_path: Path) -> None:
    _write(tmp_path)
    found = bookkeeping.perform("users_without_account", _run(tmp_path), {})
    assert found == {"users": ["alice", "boris", "dora"], "user_keys": ["ff80"]}
    found = bookkeeping.perform(
        "users_without_account", _run(tmp_path), {"keys": [{"key": "ff80", "account": "erik"}]}
    )
    assert found["users"] == ["alice", "boris", "dora", "erik"]
    one = {"tracker": SERVERS["tracker"]}
    found = bookkeeping.perform("users_without_account", _run(tmp_path, match_accounts_to=one), {})
    assert found == {"users": ["alice", "boris", "dora"], "user_keys": []}
    found = bookkeeping.perform(
        "users_without_account", _run(tmp_path, match_accounts_from=one), {}
    )
    assert found["user_keys"] == []


@pytest.mark.parametrize("ending", ["csv", "yml"])
def test_accounts_are_written_once(tmp_path: Path, ending: str) -> None:
    _write(tmp_path)
    variables: dict[str, Any] = {"match_accounts_file": f"new/a.{ending}"}
    done = _matched(tmp_path, OLD, NEW, KEYS, **variables)
    assert (done["changed"], done["matched"]) == (True, 4)
    assert done["lines"] == [
        "4 accounts found, 1 not found.",
        "tracker,dora: missing: the new tracker has no user with dora@x.example",
    ]
    assert [(one["name"], one["status"]) for one in done["unmatched"]] == [("dora", "missing")]
    text = (tmp_path / f"new/a.{ending}").read_text("utf-8")
    assert text.endswith(f"# {done['lines'][1]}\n")
    known = read(f"new/a.{ending}", lambda name: tmp_path / name)
    assert known.by_service == {
        "tracker": {"alice": "id-alice", "boris": "id-boris"},
        "wiki": {"alice": "id-alice"},
        # an export finds the name for the account, not the key
        "all": {"ff80": "id-alice"},
    }
    assert known.named("wiki", "restrictions", {"read": {"users": ["id-alice"]}}) == {
        "read": {"users": ["alice"]}
    }
    again = _matched(tmp_path, OLD, NEW, KEYS, **variables)
    assert (again["changed"], again["matched"]) == (False, 0)


@pytest.mark.parametrize("ending", ["csv", "yml"])
def test_account_that_is_found_later_replaces_its_comment(tmp_path: Path, ending: str) -> None:
    _write(tmp_path)
    variables: dict[str, Any] = {"match_accounts_file": f"a.{ending}"}
    file = tmp_path / f"a.{ending}"
    assert _matched(tmp_path, **variables)["matched"] == 0
    first = file.read_text("utf-8")
    assert first.count(": missing: ") == 5
    assert _matched(tmp_path, **variables)["changed"] is False
    done = _matched(tmp_path, OLD, NEW, KEYS, **variables)
    assert (done["matched"], file.read_text("utf-8").count("# ")) == (4, 1)


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    _write(tmp_path)
    run = replace(_run(tmp_path), check_mode=True)
    done = bookkeeping.perform("write_accounts", run, {"old": OLD, "new": NEW, "keys": KEYS})
    assert done["changed"] is True
    assert not (tmp_path / "a.csv").exists()
    assert _matched(tmp_path, OLD, NEW, KEYS)["diff"] == done["diff"]
    assert (tmp_path / "a.csv").read_text("utf-8") == done["diff"]["after"]


NONE = [
    ([], NEW, "missing: the old tracker has no user alice"),
    (_old(alice=None), NEW, "hidden: the old tracker hides the email address of alice"),
    (
        OLD,
        _new(alice=[_found("id-1", None)]),
        (
            "hidden: for alice@x.example the new tracker finds id-1 (The id-1), but hides the"
            " address: check it, and write the line"
        ),
    ),
    (
        OLD,
        _new(alice=[ALICE, {**ALICE, "account": "id-2"}]),
        (
            "ambiguous: alice@x.example is the address of id-alice (The id-alice), id-2 (The"
            " id-alice): write the line of the right one"
        ),
    ),
    (
        _old(alice="alice@x.example", boris="alice@x.example"),
        NEW,
        "ambiguous: id-alice is also the account of boris: write the right line",
    ),
]


@pytest.mark.parametrize(("old", "new", "reason"), NONE)
def test_account_is_never_guessed(
    tmp_path: Path, old: Sequence[Row], new: Sequence[Row], reason: str
) -> None:
    _write(tmp_path)
    done = _matched(tmp_path, old, new)
    assert f"tracker,alice: {reason}" in done["lines"]
    assert "id-alice," not in (tmp_path / "a.csv").read_text("utf-8")


def test_address_that_is_visible_decides_over_hidden_ones(tmp_path: Path) -> None:
    _write(tmp_path)
    done = _matched(tmp_path, OLD, _new(alice=[_found("id-0", None), ALICE]), KEYS)
    assert "tracker,alice,id-alice\n" in done["diff"]["after"]


def test_account_in_the_file_is_not_given_to_somebody_else(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "a.csv").write_text("service,name,account\nall,alice,id-boris\n", "utf-8")
    done = _matched(tmp_path, OLD, NEW, KEYS)
    reason = "id-boris is also the account of alice: write the right line"
    assert f"tracker,boris: ambiguous: {reason}" in done["lines"]


def test_account_in_the_file_is_the_same_in_other_case(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "a.csv").write_text("service,name,account\nall,alice,ID-Boris\n", "utf-8")
    done = _matched(tmp_path, OLD, NEW, KEYS)
    reason = "id-boris is also the account of alice: write the right line"
    assert f"tracker,boris: ambiguous: {reason}" in done["lines"]


def test_users_of_two_services_do_not_get_the_same_account() -> None:
    rows = {"account": "id-alice", "email": "a@x.example", "display_name": "Alice", "key": None}
    old = {name: [{**rows, "account": name}] for name in ("alice", "boris")}
    servers = account_matches.Servers(old=old, new={"a@x.example": [rows]})
    users = [User("tracker", "alice"), User("wiki", "boris")]
    found = account_matches.matched(users, servers, Accounts())
    assert [match.status for match in found] == ["ambiguous"] * 2
    same = [User(service, "alice") for service in ("tracker", "wiki")]
    found = account_matches.matched(same, servers, Accounts())
    assert [match.account for match in found] == ["id-alice"] * 2


@pytest.mark.parametrize("ending", ["csv", "yml"])
def test_display_name_writes_no_line(tmp_path: Path, ending: str) -> None:
    """Everybody can choose the own display name, also one with line breaks."""
    _write(tmp_path)
    evil = "x\u2028all: {root: id-evil} #\u2029all,root,id-evil\r\n\x85all,root,id-evil"
    new = _new(alice=[{**_found("id-1", None), "display_name": evil}])
    texts = []
    for _again in range(2):
        _matched(tmp_path, OLD, new, match_accounts_file=f"a.{ending}")
        texts.append((tmp_path / f"a.{ending}").read_text("utf-8"))
        found = read(f"a.{ending}", lambda name: tmp_path / name)
        assert "root" not in found.of("tracker")
    assert texts[0] == texts[1]


def test_user_key_needs_its_wiki(tmp_path: Path) -> None:
    _write(tmp_path)
    reason = "all,ff80: missing: the old wiki shows no user with this key"
    assert reason in _matched(tmp_path, OLD, NEW)["lines"]
    reason = "all,ff80: missing: alice is id-alice on a server with other keys: mention the user by"
    new = _new(alice=[_found("id-alice", "alice@x.example", "JIRAUSER1")])
    assert f"{reason} ri:username" in _matched(tmp_path, OLD, new, KEYS)["lines"]


KEPT = {
    "csv": '\ufeff# ours\r\nAccount , Service,name,why\r\nid-9, tracker ,boris,"a, b"\r\n\r\n# end',
    "yml": "# ours\r\nwiki:   # people\r\n    'alice' : id-9\r\n# tracker,x: missing: none\r\n",
}


@pytest.mark.parametrize("ending", [*KEPT])
def test_existing_lines_stay(tmp_path: Path, ending: str) -> None:
    _write(tmp_path)
    file = tmp_path / f"a.{ending}"
    file.write_bytes(KEPT[ending].encode())
    done = _matched(tmp_path, OLD, NEW, KEYS, match_accounts_file=file.name)
    after = file.read_bytes().decode("utf-8")
    lines = after.splitlines(keepends=True)
    kept = [line for line in KEPT[ending].splitlines() if "x: missing" not in line]
    assert [line.rstrip("\r\n") for line in lines if line.rstrip("\r\n") in kept] == kept
    assert all(line.endswith("\r\n") for line in lines)
    assert done["matched"] >= 2
    assert "x: missing" not in after
    known = read(file.name, lambda name: tmp_path / name)
    assert known.of("tracker")["alice"] == "id-alice"
    assert _matched(tmp_path, OLD, NEW, KEYS, match_accounts_file=file.name)["changed"] is False


_NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1).filter(
    lambda name: not name.startswith("#")
)


@given(st.dictionaries(_NAMES, _NAMES, max_size=5), st.booleans())
def test_any_name_and_account_can_be_written(found: dict[str, str], is_yaml: bool) -> None:
    matches = [Match(User("tracker", name), account) for name, account in found.items()]
    text = account_matches.completed("", matches, is_yaml=is_yaml)
    if is_yaml:
        written = (yaml.safe_load(text) or {}).get("tracker", {})
    else:
        _header, *rows = list(csv.reader(io.StringIO(text, newline=""))) or [[]]
        written = {name: account for _service, name, account in rows}
    assert written == found
    assert account_matches.completed(text, [], is_yaml=is_yaml) == text


WRONG = [
    ({"match_accounts_from": {}}, "match_accounts_from has no connection to a tracker"),
    ({"match_accounts_to": {"wiki": {}}}, "match_accounts_to has no connection to a tracker"),
    ({"match_accounts_to": {"jira": {}}}, "match_accounts_to has no service jira"),
    ({"match_accounts_to": "x"}, "match_accounts_to is not a mapping"),
    ({"match_accounts_to": {"tracker": "x"}}, "match_accounts_to.tracker is not a mapping"),
    ({"match_accounts_file": None}, "match_accounts_file must be the path of a CSV or YAML file"),
    ({"match_accounts_file": "a.txt"}, "match_accounts_file must be the path of a CSV or YAML"),
    ({"desired_state_folder": None}, "Cannot use the desired state: set desired_state_folder"),
]


@pytest.mark.parametrize(("variables", "message"), WRONG)
def test_wrong_variable_is_invalid(tmp_path: Path, variables: Row, message: str) -> None:
    _write(tmp_path)
    with pytest.raises(bookkeeping.StepError) as caught:
        bookkeeping.perform("users_without_account", _run(tmp_path, **variables), {})
    assert caught.value.kind == "invalid"
    assert str(caught.value).startswith(message)


def test_unreadable_file_is_invalid_and_stays(tmp_path: Path) -> None:
    _write(tmp_path)
    file = tmp_path / "a.csv"
    file.write_text("service;name;account\n", "utf-8")
    with pytest.raises(bookkeeping.StepError, match="semicolons"):
        _matched(tmp_path, OLD, NEW)
    assert file.read_text("utf-8") == "service;name;account\n"


def test_other_services_are_named(tmp_path: Path) -> None:
    _write(tmp_path)
    done = _matched(tmp_path, OLD, NEW, KEYS, match_accounts_to={**SERVERS, "repo": {"url": "c"}})
    assert done["lines"][-1] == "Accounts of repo are not matched: only tracker and wiki."
