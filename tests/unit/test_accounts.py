# SPDX-License-Identifier: GPL-3.0-or-later
"""Replace the names of a desired state by accounts of an environment, and accounts by names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.accounts import (
    AccountNames,
    translated,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import mentions
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    bookkeeping,
    desired_schema,
    enforcement,
    kinds,
)

#: The two names stand for each other's accounts: an account that is translated twice is seen.
SWAPPED = {"alice": "boris", "boris": "alice"}
FOLDER = {
    "analysis.yml": """\
users: [{name: alice}]
groups: [{name: qa, users: [alice, carol, boris]}]
role_assignments: [{name: Reviewer, account: boris, group: false}]
""",
    "repo.yml": """\
groups: [{name: qa, members: [alice]}]
users: [{name: alice, email: alice@example.org, groups: [qa]}]
permissions:
  - name: alice
    resources: {artifact: {targets: [{repo: alice}], users: {alice: [read], boris: [write]}, groups: {qa: [read]}}}
""",
    "ci.yml": """\
configuration:
  - config:
      jenkins:
        systemMessage: alice
        securityRealm: {local: {users: [{id: alice, name: alice}]}}
        authorizationStrategy:
          projectMatrix:
            entries: [{user: {name: alice, permissions: [Job/Read]}}, {group: {name: qa, permissions: [Job/Read]}}]
            permissions: ['USER:Job/Read:boris', 'Job/Build:alice']
  - config:
      jenkins:
        authorizationStrategy:
          roleBased: {roles: {global: [{name: alice, entries: [{user: alice}, {group: qa}], assignments: [boris]}]}}
  - src: alice
""",
    "tracker.yml": """\
components: [{project: REL, name: alice, lead: alice}, {project: REL, name: none, lead: ''}]
project_roles: [{project: REL, role: alice, users: [alice, boris], groups: [qa]}]
""",
    "wiki.yml": """\
spaces: [{key: DOC, permissions: [{user: alice, operations: [alice]}, {group: qa}, {anonymous: true}]}]
restrictions: [{space: DOC, title: alice, read: {users: [alice], groups: [qa]}}]
pages: [{space: DOC, title: alice, body: alice, restrictions: {update: {users: [boris]}}}]
trees: [{src: alice, space: DOC, restrictions: {read: {groups: [qa]}}}]
""",
}


def _run(path: Path, **variables: Any) -> bookkeeping.Run:
    given = {"inventory_hostname": "localhost", "playbook_dir": str(path), **variables}

    def load(file: str) -> Any:
        return yaml.safe_load(Path(file).read_text("utf-8"))

    return bookkeeping.Run({"desired_state_folder": "state", **given}, lambda value: value, load)


def _write(path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (path / "state" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "state" / name).write_text(text, "utf-8")


def _variables(path: Path, **variables: Any) -> dict[str, Any]:
    found: dict[str, Any] = bookkeeping.perform("read_folder", _run(path, **variables), {})
    return dict(found["variables"])


def _fails(path: Path, **variables: Any) -> str:
    with pytest.raises(bookkeeping.StepError) as caught:
        bookkeeping.perform("validate_folder", _run(path, **variables), {})
    assert caught.value.kind == "invalid"
    return str(caught.value)


def test_accounts_are_replaced_in_every_kind_once(tmp_path: Path) -> None:
    _write(tmp_path, FOLDER)
    found = _variables(tmp_path, desired_state_accounts={"all": {**SWAPPED, "qa": "Q-1"}})
    assert found["analysis_config_users"] == [{"name": "boris"}]
    assert found["analysis_config_groups"] == [
        {"name": "Q-1", "users": ["boris", "carol", "alice"]}
    ]
    assert found["analysis_config_role_assignments"][0]["account"] == "alice"
    assert found["desired_state_groups"] == [{"name": "Q-1", "members": ["boris"]}]
    assert found["desired_state_users"] == [
        {"name": "boris", "email": "alice@example.org", "groups": ["Q-1"]}
    ]
    assert found["desired_state_permissions"] == [
        {
            "name": "alice",
            "resources": {
                "artifact": {
                    "targets": [{"repo": "alice"}],
                    "users": {"boris": ["read"], "alice": ["write"]},
                    "groups": {"Q-1": ["read"]},
                }
            },
        }
    ]
    matrix, roles, source = found["desired_state_configuration"]
    assert source == {"src": str(tmp_path / "state/alice")}
    jenkins = matrix["config"]["jenkins"]
    assert jenkins["systemMessage"] == "alice"
    assert jenkins["securityRealm"]["local"]["users"] == [{"id": "boris", "name": "alice"}]
    strategy = jenkins["authorizationStrategy"]["projectMatrix"]
    assert [next(iter(one.values()))["name"] for one in strategy["entries"]] == ["boris", "Q-1"]
    assert strategy["permissions"] == ["USER:Job/Read:alice", "Job/Build:boris"]
    role = roles["config"]["jenkins"]["authorizationStrategy"]["roleBased"]["roles"]["global"][0]
    assert role == {
        "name": "alice",
        "entries": [{"user": "boris"}, {"group": "Q-1"}],
        "assignments": ["alice"],
    }
    assert found["desired_state_components"] == [
        {"project": "REL", "name": "alice", "lead": "boris"},
        {"project": "REL", "name": "none", "lead": ""},
    ]
    assert found["desired_state_project_roles"] == [
        {"project": "REL", "role": "alice", "users": ["boris", "alice"], "groups": ["Q-1"]}
    ]
    assert found["desired_state_spaces"][0]["permissions"] == [
        {"user": "boris", "operations": ["alice"]},
        {"group": "Q-1"},
        {"anonymous": True},
    ]
    assert found["desired_state_restrictions"] == [
        {"space": "DOC", "title": "alice", "read": {"users": ["boris"], "groups": ["Q-1"]}}
    ]
    (page,), (tree,) = found["desired_state_pages"], found["desired_state_trees"]
    assert page["restrictions"] == {"update": {"users": ["alice"]}}
    assert tree["restrictions"] == {"read": {"groups": ["Q-1"]}}
    # the module translates the text
    assert page["body"] == "alice"
    assert page["accounts"] == tree["accounts"] == {**SWAPPED, "qa": "Q-1"}


@pytest.mark.parametrize("accounts", [None, {}, {"ci": {"alice": "x"}}])
def test_services_without_accounts_are_unchanged(tmp_path: Path, accounts: Any) -> None:
    _write(tmp_path, {"wiki.yml": FOLDER["wiki.yml"], "tracker.yml": FOLDER["tracker.yml"]})
    plain = _variables(tmp_path)
    assert plain["desired_state_components"][0]["lead"] == "alice"
    assert "accounts" not in plain["desired_state_pages"][0]
    assert _variables(tmp_path, desired_state_accounts=accounts) == plain


def test_accounts_differ_by_service(tmp_path: Path) -> None:
    _write(tmp_path, FOLDER)
    file = tmp_path / "accounts.csv"
    file.write_bytes(
        b"\xef\xbb\xbfservice,account,name,team\r\n# who is who\r\n"
        b'tracker,"5b10, a",alice,one\r\nall, everywhere ,alice,\r\n\r\nwiki,w,alice,\r\n'
    )
    found = _variables(tmp_path, desired_state_accounts="accounts.csv")
    assert found["desired_state_components"][0]["lead"] == "5b10, a"
    assert found["desired_state_users"][0]["name"] == "everywhere"
    assert found["desired_state_restrictions"][0]["read"]["users"] == ["w"]
    (tmp_path / "accounts.yml").write_text("tracker:\n  alice: 0012\nall: {alice: x}\n", "utf-8")
    found = _variables(tmp_path, desired_state_accounts="accounts.yml")
    assert found["desired_state_components"][0]["lead"] == "0012"
    assert found["desired_state_users"][0]["name"] == "x"


def test_environment_overrides_entries_by_the_names_of_the_folder(tmp_path: Path) -> None:
    _write(tmp_path, FOLDER)
    _write(tmp_path, {"environments/prod/repo.yml": "users: [{name: alice, groups: [boris]}]\n"})
    found = _variables(
        tmp_path, desired_state_environment="prod", desired_state_accounts={"repo": SWAPPED}
    )
    assert found["desired_state_users"] == [
        {"name": "boris", "email": "alice@example.org", "groups": ["alice"]}
    ]


def test_names_with_the_same_account_are_listed_once(tmp_path: Path) -> None:
    _write(tmp_path, FOLDER)
    accounts = {"tracker": {"alice": "one", "boris": "one"}}
    found = _variables(tmp_path, desired_state_accounts=accounts)
    assert found["desired_state_project_roles"][0]["users"] == ["one"]
    assert _fails(tmp_path, desired_state_accounts={"repo": {"alice": "one", "boris": "one"}}) == (
        "Cannot use the desired state: permission: alice and boris are both the account one: join"
        " their entries."
    )


def test_names_without_an_account_are_listed_at_once(tmp_path: Path) -> None:
    _write(
        tmp_path,
        {
            "tracker.yml": FOLDER["tracker.yml"],
            "wiki.yml": "trees: [{src: pages, space: DOC}]\n"
            "pages: [{space: DOC, title: T, body: '<p><ri:user ri:username=\"dora\"/></p>'}]\n",
            "pages/index.xml": "<p><ri:user ri:userkey='erik'/></p>",
            "pages/notes.txt": "<ri:user ri:userkey='nobody'/>",
        },
    )
    required = {"desired_state_accounts_required": True}
    accounts = {"tracker": {"alice": "a", "qa": "q"}, "wiki": {"boris": "b"}}
    assert _fails(tmp_path, desired_state_accounts=accounts, **required) == (
        "Cannot use the desired state: desired_state_accounts has no account for tracker/boris,"
        " wiki/dora, wiki/erik: add a line for each of them, or set desired_state_accounts_required"
        " to false."
    )
    assert "tracker/alice, tracker/boris, tracker/qa, wiki/dora" in _fails(tmp_path, **required)
    known = {"all": dict.fromkeys(("alice", "boris", "qa", "dora", "erik"), "x")}
    assert _variables(tmp_path, desired_state_accounts=known, **required)


FILES = [
    ("a.csv", "servce,name,account\n", "a.csv:1: the first line has no column service: write"),
    ("a.csv", "service,name,name,account\n", "a.csv:1: the first line has name twice: write"),
    ("a.csv", "service;name;account\n", "a.csv:1: the columns are separated by semicolons: use"),
    ("a.csv", "service\tname\taccount\n", "a.csv:1: the columns are separated by tabs: use commas"),
    ("a.csv", "", "a.csv:1: the file is empty: write service,name,account in its first line"),
    (
        "a.csv",
        "service,name,account\ntraker,a,b\n",
        "a.csv:2: the service traker is unknown (did you mean tracker?)",
    ),
    (
        "a.csv",
        "service,name,account\nx,a,b\n",
        "a.csv:2: the service x is unknown (write one of repo, tracker, wiki, ci, analysis, all)",
    ),
    (
        "a.csv",
        "service,name,account\nall,a,\nall,,b\n",
        "a.csv:2: account of a is empty: write it, or remove the line; a.csv:3: name is empty",
    ),
    (
        "a.csv",
        "service,name,account\nall,a,b\nall,a,b\nall,a,c\n",
        "a.csv:4: a of all is also the account b: leave one of the two lines",
    ),
    (
        "a.csv",
        "service,name,account\nall,a,b,c\n",
        "a.csv:2 has 4 cells, but the first line has 3: write service,name,account, and put",
    ),
    ("a.csv", 'service,name,account\nall,"a,b\n', "a.csv:2: this is not valid CSV: unexpected end"),
    ("a.yml", "tracker:\n  alice: 1.5\n", "a.yml:2: the account of alice must be a string in"),
    ("a.yml", "tracker:\n  alice:\n", "a.yml:2: account of alice is empty: write it, or remove"),
    (
        "a.yml",
        "wiki:\n  a: b\n  a: c\n",
        "a.yml:3: a of wiki is also the account b: leave one of the two lines",
    ),
    ("a.yml", "wiki: [a]\n", "a.yml:1: write a mapping of names to accounts in wiki"),
    ("a.yml", "- a\n", "a.yml:1: write a mapping by service"),
    ("a.yml", "", "a.yml:1: write a mapping by service"),
    ("a.yml", "a: [\n", "a.yml:2: this is not valid YAML: "),
    ("a.yml", "traker: {a: b}\n", "a.yml:1: the service traker is unknown (did you mean tracker?)"),
    ("a.txt", "", "a.txt must end in .csv, .yml or .yaml"),
]


@pytest.mark.parametrize(("name", "text", "said"), FILES)
def test_files_with_errors_are_rejected(tmp_path: Path, name: str, text: str, said: str) -> None:
    _write(tmp_path, FOLDER)
    (tmp_path / name).write_text(text, "utf-8")
    assert said in _fails(tmp_path, desired_state_accounts=name)


def test_files_that_cannot_be_read_are_rejected(tmp_path: Path) -> None:
    _write(tmp_path, FOLDER)
    assert "cannot read gone.csv: No such file" in _fails(
        tmp_path, desired_state_accounts="gone.csv"
    )
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe")
    assert "cannot read a.csv: save it as UTF-8" in _fails(tmp_path, desired_state_accounts="a.csv")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["a"], "must be the path of a YAML or CSV file, or a mapping by service"),
        ({"wiki": "a"}, "desired_state_accounts.wiki must be a mapping of names to accounts"),
        ({"wiki": {"a": None}}, "desired_state_accounts.wiki.a: account of a is empty"),
        (
            {"wiki": {"a": 1.5}},
            "desired_state_accounts.wiki.a must be a string: put it into quotes",
        ),
        ({"wki": {"a": "b"}}, "desired_state_accounts.wki.a: the service wki is unknown (did you"),
    ],
)
def test_mappings_with_errors_are_rejected(tmp_path: Path, given: Any, said: str) -> None:
    _write(tmp_path, FOLDER)
    assert said in _fails(tmp_path, desired_state_accounts=given)


# -- the table of kinds ---------------------------------------------------------------------------


#: Options that hold names of other things: levels of repositories, accounts of other servers.
OTHERS = ("repositories.members[]", "role_assignments.group")
NAMES = ("users[]", "users", "groups[]", "groups", "members[]", "lead", "account", "user", "group")


def _options(schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """Yield the places of the options without options of their own."""
    for name, option in schema.get("properties", {}).items():
        inner = f"{place}.{name}".lstrip(".")
        items = option.get("items", {})
        below = [*_options(option, inner), *_options(items, f"{inner}[]")]
        yield from below or [f"{inner}[]" if items else inner]


def test_every_option_with_accounts_is_in_the_table_of_kinds() -> None:
    for kind in kinds.KINDS:
        schema = desired_schema.schema_of(kind.service)["properties"][kind.list].get("items", {})
        options = [*_options(schema)]
        holding = {
            re.sub(r"^resources\.\w+\.", "resources.*.", option)
            for option in options
            if option.rpartition(".")[2] in NAMES and f"{kind.list}.{option}" not in OTHERS
        }
        named = {place.replace("{}", "") for place in kind.accounts}
        if kind.list == "configuration":
            assert holding == set()
            continue
        # the names of the users and groups themselves
        own = {"name"} if kind.list in ("users", "groups") else set()
        assert named == holding | own, kind.list


# -- accounts to names ----------------------------------------------------------------------------


def test_accounts_get_their_names_back() -> None:
    names = AccountNames({**SWAPPED, "everybody": "5b10", "carol": "5b10"}, ["carol", "alice"])
    entry = {"users": ["alice", "boris", "5b10", "other"], "groups": {"5b10": 1}}
    assert translated(entry, ("users[]", "groups{}"), names.name_of) == {
        "users": ["boris", "alice", "carol", "other"],
        "groups": {"carol": 1},
    }
    names.require_names()


@pytest.mark.parametrize(
    ("accounts", "required", "account", "said"),
    [
        ({"b": "x", "a": "x"}, False, "x", "x has the names a, b: leave one of them"),
        (
            {"alice": "5b10"},
            False,
            "alice",
            "alice has no name, and the name alice is that of 5b10: add a line with another name",
        ),
        ({"alice": "5b10"}, True, "boris", "boris has no name: add a line for it"),
    ],
)
def test_accounts_without_a_certain_name_are_refused(
    accounts: dict[str, str], required: bool, account: str, said: str
) -> None:
    names = AccountNames(accounts, required=required)
    names.name_of(account)
    with pytest.raises(ToolchainError, match=said) as caught:
        names.require_names()
    assert caught.value.kind == "invalid"


# -- mentions -------------------------------------------------------------------------------------

BODY = (
    '<p>Ask <ac:link><ri:user ri:username="alice" /></ac:link>, <ac:link><ri:user\n'
    " ac:x='1' ri:userkey='boris'/></ac:link> or <ri:user ri:account-id=\"R&amp;D\"/>"
    ' <ri:page ri:username="alice"/> ri:username="alice"'
    '<![CDATA[<ri:user ri:username="alice"/>]]><!-- <ri:user ri:username="alice"/> --></p>'
)


def test_mentions_are_translated_in_text_only() -> None:
    accounts = {**SWAPPED, "R&D": 'a"b'}
    assert mentions.with_accounts(BODY, accounts, in_cloud=False) == (
        BODY.replace('<ri:user ri:username="alice" />', '<ri:user ri:username="boris" />', 1)
        .replace("ri:userkey='boris'", 'ri:userkey="alice"')
        .replace('ri:account-id="R&amp;D"', 'ri:username="a&quot;b"')
    )
    in_cloud = mentions.with_accounts(BODY, accounts, in_cloud=True)
    assert [*mentions.names(in_cloud)] == ["boris", "alice", 'a"b']
    assert in_cloud.count("ri:account-id=") == 3
    assert mentions.with_accounts(BODY, {"zoe": "x"}, in_cloud=True) == BODY


def test_mentions_take_linear_time() -> None:
    for text in ("<![CDATA[", "<!--", "<ri:user ", "<ri:user ri:username=' "):
        assert mentions.names(text * 50_000) == {}


# -- deletions ------------------------------------------------------------------------------------


def test_removed_objects_are_named_by_their_accounts(tmp_path: Path) -> None:
    """An entry that is in both folders stays, whatever its account."""
    _write(tmp_path, {"repo.yml": "users: [{name: boris}]\n"})
    _write(tmp_path, {"../previous/repo.yml": "users: [{name: boris}, {name: alice}]\n"})
    run = _run(
        tmp_path,
        desired_state_previous="previous",
        desired_state_accounts={"repo": {"alice": "a-1", "boris": "alice"}},
    )
    known = bookkeeping.perform("describe", run, {})
    found = bookkeeping.perform("find_removals", run, {"known": json.loads(json.dumps(known))})
    assert [(one["name"], one["options"]) for one in found["removals"]] == [
        ("a-1", {"name": "a-1"})
    ]


def test_accounts_alone_describe_nothing() -> None:
    given = {"desired_state_accounts": {"all": {"a": "b"}}, "desired_state_accounts_required": True}
    assert enforcement.roles(given, lambda value: value) == []
