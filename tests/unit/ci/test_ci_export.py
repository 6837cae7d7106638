# SPDX-License-Identifier: GPL-3.0-or-later
"""Test jobs as files of a desired state: secrets stay on the server, names stay in the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import (
    kept_secrets,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_export import (
    CiExportOperation,
    CiExportOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.xml_reader import (
    KEPT,
    parse,
    written_in_lines,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Seen, Stub

FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
BRANCHES = "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject"
SEALED = "{AQAAABAAAAAwAAAA/+09azAZ==}"
OTHER = "{AQAAABAAAAAQbbbbbbbbbbbb=}"
CONFIG = f"""<?xml version='1.1' encoding='UTF-8'?>
<project>
  <url>https://build:hunter2hunter@git.example/a.git</url>
  <p><apiToken>{SEALED}</apiToken></p>
  <hudson.model.PasswordParameterDefinition plugin="x@1">
    <name>PIN</name><defaultValue>{SEALED}</defaultValue>
  </hudson.model.PasswordParameterDefinition>
  <command>echo ${{WORKSPACE}} {OTHER} &amp;&amp; curl https://u:$PASS@h/</command>
</project>"""
SECRETS = ("hunter2hunter", SEALED, OTHER)


def test_secrets_are_removed_and_restored() -> None:
    text, count = kept_secrets.without_secrets(CONFIG)
    assert count == 4
    assert [secret for secret in SECRETS if secret in text] == []
    assert "${WORKSPACE}" in text
    assert "u:$PASS@h" in text
    whole, missing = kept_secrets.with_secrets(CONFIG, text)
    assert missing == []
    assert [secret for secret in SECRETS if secret not in whole] == []
    assert kept_secrets.without_secrets(whole) == (text, 4)
    assert kept_secrets.without_secrets("<a> <b/></a>") == ("<a> <b/></a>", 0)


def entries(*secrets: tuple[str, str]) -> str:
    inner = "".join(
        f"<x.Entry><id>{name}</id><secret>{secret}</secret></x.Entry>" for name, secret in secrets
    )
    return f"<project><list>{inner}</list></project>"


def test_passwords_in_addresses_return_to_their_entries() -> None:
    urls = "".join(
        f"<scm.Git><url>https://{name}:pw-{name}@host/{name}</url></scm.Git>" for name in "ab"
    )
    text, count = kept_secrets.without_secrets(f"<project><scms>{urls}</scms></project>")
    assert count == 2
    whole, missing = kept_secrets.with_secrets(f"<project><scms>{urls}</scms></project>", text)
    assert missing == []
    assert kept_secrets.without_secrets(whole) == (text, 2)
    assert "https://b:pw-b@host/b" in whole


def test_secret_is_never_moved_to_another_entry() -> None:
    live = entries(("one", SEALED), ("two", OTHER))
    wanted = entries(("new", KEPT), ("two", KEPT))
    whole, missing = kept_secrets.with_secrets(live, wanted)
    assert missing == ["secret"]
    assert SEALED not in whole
    assert whole.index("two") < whole.index(OTHER)


def _parameter(name: str, text: str, value: str) -> str:
    kind = "hudson.model.PasswordParameterDefinition"
    head = f"<name>{name}</name><description>{text}</description>"
    return f"<{kind}>{head}<defaultValue>{value}</defaultValue></{kind}>"


def _pair(name: str, value: str) -> str:
    return f"<entry><string>{name}</string><hudson.util.Secret>{value}</hudson.util.Secret></entry>"


def _rule(color: str, value: str) -> str:
    return f"<x.Rule><color>{color}</color><token>{value}</token></x.Rule>"


MARK = KEPT
#: Children of the folder's and of the exported configuration, and the children after adoption.
OWN_SECRETS = [
    # the name decides, not the position and not the description
    (
        _parameter("one", "a", "s-1") + _parameter("two", "b", "s-2"),
        _parameter("new", "a", MARK) + _parameter("two", "c", MARK) + _parameter("one", "a", MARK),
        _parameter("new", "a", MARK)
        + _parameter("two", "c", "s-2")
        + _parameter("one", "a", "s-1"),
    ),
    # a parameter was replaced by another one
    (_parameter("one", "a", "s-1"), _parameter("two", "a", MARK), _parameter("two", "a", MARK)),
    (_pair("A", "s-1") + _pair("B", "s-2"), _pair("B", MARK), _pair("B", "s-2")),
    (_pair("A", "s-1"), _pair("B", MARK), _pair("B", MARK)),
    # without names, the siblings of the secret decide
    (_rule("red", "s-1") + _rule("blue", "s-2"), _rule("blue", MARK), _rule("blue", "s-2")),
    (
        _rule("red", "s-1") + _rule("blue", "s-2"),
        _rule("blue", MARK) + _rule("green", MARK),
        _rule("blue", "s-2") + _rule("green", MARK),
    ),
    (_rule("red", "s-1") + _rule("red", "s-2"), _rule("red", MARK), _rule("red", MARK)),
    # the only object of its kind, with another setting
    (
        "<t><x.Push><on>false</on><token>s-1&#13;&#10;x</token></x.Push></t>",
        f"<t><x.Push><on>true</on><token>{MARK}</token></x.Push></t>",
        "<t><x.Push><on>true</on><token>s-1&#xd;\nx</token></x.Push></t>",
    ),
    # another server or account, also in addresses
    (
        "<s><host>a</host><token>s-1</token></s>",
        f"<s><host>b</host><token>{MARK}</token></s>",
        f"<s><host>b</host><token>{MARK}</token></s>",
    ),
    (
        "<v var='A' password='s-1'/><v var='B' password='s-2'/>",
        f"<v var='B' password='{MARK}'/><v var='C' password='{MARK}'/>",
        f'<v var="B" password="s-2"></v><v var="C" password="{MARK}"></v>',
    ),
    (
        "<c>get https://u:s-1@a/x\nget https://u:s-2@b/y</c>",
        f"<c>get https://u:{MARK}@c/x\nget https://u:{MARK}@b/z\nget https://v:{MARK}@a/x</c>",
        f"<c>get https://u:{MARK}@c/x\nget https://u:s-2@b/z\nget https://v:{MARK}@a/x</c>",
    ),
]


@pytest.mark.parametrize(("own", "exported", "filled"), OWN_SECRETS, ids=range(len(OWN_SECRETS)))
def test_secrets_of_a_copy_stay_with_their_objects(own: str, exported: str, filled: str) -> None:
    found = kept_secrets.with_own_secrets(
        f"<project><b>1</b><p>{exported}</p></project>", f"<project><p>{own}</p></project>"
    )
    assert found == written_in_lines(parse(f"<project><b>1</b><p>{filled}</p></project>"))
    assert "\r" not in found


def test_placeholders_stay_without_a_readable_copy() -> None:
    text = f"<project><token>{MARK}</token></project>"
    for own in ("", "<a", "<folder><token>s</token></folder>"):
        assert kept_secrets.with_own_secrets(text, own) == text
    assert (
        kept_secrets.with_own_secrets("<project> <a/></project>", "<a")
        == "<project> <a/></project>"
    )


def test_secret_is_never_moved_to_a_renamed_parameter() -> None:
    live = f"<project>{_parameter('one', 'a', SEALED)}</project>"
    wanted = f"<project>{_parameter('two', 'a', MARK)}</project>"
    assert kept_secrets.with_secrets(live, wanted)[1] == ["defaultValue"]


def test_secret_is_never_moved_to_another_class() -> None:
    live = f'<project><scm class="a.Svn"><password>{SEALED}</password></scm></project>'
    wanted = '<project><scm class="b.Git"><password>new</password></scm></project>'
    assert SEALED not in kept_secrets.with_kept_secrets(live, wanted)
    whole, missing = kept_secrets.with_secrets(live, wanted.replace("new", KEPT))
    assert (SEALED in whole, missing) == (False, ["password"])
    same = wanted.replace("b.Git", "a.Svn")
    assert SEALED in kept_secrets.with_kept_secrets(live, same)


@pytest.mark.parametrize("live", ["<project/>", "<project><token>****</token></project>", "<x/>"])
def test_secret_hidden_by_server_is_reported_missing(live: str) -> None:
    wanted = f"<project><token>{KEPT}</token></project>"
    assert kept_secrets.with_secrets(live, wanted)[1] == ["token"]


def server(configs: dict[str, str | Reply], listings: dict[str, list[Any]]) -> Any:
    """Simulate a CI server: configurations by path of the job, listings by path of the folder."""

    headers = {"X-Jenkins": "2.4"}

    def response(seen: Seen) -> Reply:
        place = unquote(seen.path.split("?")[0]).strip("/").removeprefix("base").strip("/")
        if place.endswith("api/json") and place.removesuffix("api/json").strip("/") in listings:
            return Reply(body={"jobs": listings[place.removesuffix("api/json").strip("/")]})
        found = configs.get(place.removesuffix("/config.xml"), Reply(404, headers=headers))
        return found if isinstance(found, Reply) else Reply(body=found, headers=headers)

    return response


def export(response: Callable[[Seen], Reply], folder: Path, **options: Any) -> Any:
    with Stub(response=response) as stub:
        left_out = dict.fromkeys(
            ("plugins", "configuration", "credentials", "nodes", "views"), False
        )
        chosen = options_of(CiExportOptions, dest=str(folder), **left_out, **options)
        result = Run(stub.url).play(lambda task: CiExportOperation(task, chosen))
        assert [seen.method for seen in stub.seen if seen.method != "GET"] == []
    return result


def test_jobs_become_files_and_omissions_are_listed(tmp_path: Path) -> None:
    listings: dict[str, list[Any]] = {
        "": [
            {"name": "team", "_class": FOLDER, "jobs": []},
            {"name": "../../evil", "_class": "x"},
            {"name": "..", "_class": "x"},
            {"name": "branches", "_class": BRANCHES, "jobs": [{"name": "main"}]},
            {"name": "hidden", "_class": "x"},
        ],
        "job/team": [{"name": "build it", "_class": "x"}],
    }
    configs: dict[str, str | Reply] = {
        "job/team": f"<{FOLDER}/>",
        "job/team/job/build it": CONFIG,
        "job/branches": f"<{BRANCHES}/>",
        "job/hidden": Reply(403),
    }
    result = export(server(configs, listings), tmp_path / "desired")
    written = yaml.safe_load((tmp_path / "desired/ci.yml").read_text("utf-8"))
    assert written["jobs"] == [
        {"job": "team", "src": "ci/jobs/team.xml", "folder": True},
        {"job": "team/build it", "src": "ci/jobs/team/build-it.xml"},
        {"job": "branches", "src": "ci/jobs/branches.xml"},
    ]
    assert {one["name"] for one in result["left_out"]} == {
        *("../../evil", "..", "branches/*", "hidden"),
    }
    text = (tmp_path / "desired/ci/jobs/team/build-it.xml").read_text("utf-8")
    assert [secret for secret in SECRETS if secret in text] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["desired"]


def test_folders_that_are_too_deep_are_left_out_by_name(tmp_path: Path) -> None:
    places = ["/".join(["job/a"] * depth) for depth in range(51)]
    listings: dict[str, list[Any]] = {
        place: [{"name": "a", "_class": FOLDER, "jobs": []}] for place in places
    }
    configs: dict[str, str | Reply] = dict.fromkeys(places[1:], f"<{FOLDER}/>")
    result = export(server(configs, listings), tmp_path / "desired")
    (deep,) = result["left_out"]
    assert deep["name"] == f"{'/'.join(['a'] * 50)}/*"
    assert deep["reason"] == "folders are more than 50 levels deep"


#: What a server adds to a job that nobody has changed [ci-15], and what a person may change.
REWRITTEN = (
    "<actions>\n  </actions>\n  <triggers/><scm class='hudson.scm.NullSCM'/>",
    "<description/><builders/><canRoam>false</canRoam>",
    "<actions><a.DeclarativeJobAction plugin='m@2'/><b.JobPropertyTrackerAction/></actions>",
)
CHANGED = (
    "<actions><a.Other/></actions>",
    "<triggers><x.Timer><spec>@daily</spec></x.Timer></triggers>",
    "<token>new one</token>",
)


@pytest.mark.parametrize(
    ("added", "kept"),
    [*((text, True) for text in REWRITTEN), *((text, False) for text in CHANGED)],
)
def test_second_export_keeps_files_that_only_the_server_rewrote(
    tmp_path: Path, added: str, kept: bool
) -> None:
    listings: dict[str, list[Any]] = {"": [{"name": "a", "_class": "x"}]}
    # server fact [ci-15]: members of an object have no class names
    config = CONFIG.replace("  <hudson.", "  <properties><hudson.").replace(
        "Definition>\n  <command>", "Definition></properties>\n  <command>"
    )
    export(server({"job/a": config}, listings), tmp_path)
    before = (tmp_path / "ci/jobs/a.xml").read_text("utf-8")
    again = config.replace('plugin="x@1"', 'plugin="x@2"').replace(SEALED, OTHER)
    again = again.replace("</project>", f"{added}</project>")
    result = export(server({"job/a": again}, listings), tmp_path)
    after = (tmp_path / "ci/jobs/a.xml").read_text("utf-8")
    assert (after == before, result["changed"]) == (kept, not kept)


def test_patterns_select_jobs_and_folders(tmp_path: Path) -> None:
    listings: dict[str, list[Any]] = {
        "": [{"name": "a", "_class": FOLDER}, {"name": "b", "_class": "x"}],
        "job/a": [{"name": "x1", "_class": "x"}, {"name": "x2", "_class": "x"}],
    }
    configs: dict[str, str | Reply] = {"job/a": f"<{FOLDER}/>", "job/b": "<b/>"}
    configs |= {"job/a/job/x1": "<x/>", "job/a/job/x2": "<x/>"}
    export(server(configs, listings), tmp_path, jobs=["a", "none"], exclude=["a/*2"])
    written = yaml.safe_load((tmp_path / "ci.yml").read_text("utf-8"))
    assert [job["job"] for job in written["jobs"]] == ["a", "a/x1"]


@pytest.mark.parametrize(
    "damaged",
    [
        Reply(body="<project><description>"),
        Reply(body=""),
        Reply(body="<!DOCTYPE html><html><body>busy</body></html>"),
        Reply(body="<!DOCTYPE x><x/>"),
        Reply(body="no gzip", headers={"Content-Encoding": "gzip"}),
        Reply(404, body="no such page"),
    ],
)
def test_damaged_configuration_fails_and_keeps_all_files(tmp_path: Path, damaged: Reply) -> None:
    listings: dict[str, list[Any]] = {"": [{"name": name, "_class": "x"} for name in "abc"]}
    configs: dict[str, str | Reply] = dict.fromkeys(("job/a", "job/b", "job/c"), "<project/>")
    export(server(configs, listings), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    changed = "<project><description>new</description></project>"
    configs |= {"job/a": changed, "job/b": damaged}
    with pytest.raises(ToolchainError) as caught:
        export(server(configs, listings), tmp_path)
    assert caught.value.kind == "protocol"
    assert "job 'b'" in caught.value.message
    assert {path: path.read_bytes() for path in before} == before
    configs["job/b"] = "<project/>"
    export(server(configs, listings), tmp_path)
    assert "new" in (tmp_path / "ci/jobs/a.xml").read_text("utf-8")


def test_rejected_listing_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        export(lambda seen: Reply(403), tmp_path / "desired")
    assert caught.value.kind == "permission"
    assert list(tmp_path.iterdir()) == []


def test_missing_job_cannot_receive_kept_secrets() -> None:
    text, _count = kept_secrets.without_secrets(CONFIG)
    with Stub(response=server({}, {"": []})) as stub:
        chosen = options_of(CiJobOptions, job="gone", config=text)
        with pytest.raises(
            ToolchainError, match=r"has '.kept by the server.' in apiToken"
        ) as caught:
            Run(stub.url).play(lambda task: CiJobOperation(task, chosen))
    assert caught.value.kind == "invalid"
