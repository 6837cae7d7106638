# SPDX-License-Identifier: GPL-3.0-or-later
"""Test configurations that the server completes: the same configuration before and after a write
leaves the task unchanged, with a warning [C11.1].
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    server_values,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.credentials.ci_credential import (
    CiCredentialOperation,
    CiCredentialOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_job import (
    CiJobOperation,
    CiJobOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs.ci_view import (
    CiViewOperation,
    CiViewOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_configuration import (
    CiConfigurationOperation,
    CiConfigurationOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_node import (
    CiNodeOperation,
    CiNodeOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.in_process import run
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Seen, Stub

OWNER = "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject"
FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
LAUNCHER = '<launcher class="hudson.slaves.JNLPLauncher">'
#: Module, its options, and what the server adds after the first occurrence of a text.
CASES: dict[str, tuple[Any, type, dict[str, Any], str, str]] = {
    "folder": (
        CiJobOperation,
        CiJobOptions,
        {"job": "x", "config": f"<{FOLDER}><description>d</description></{FOLDER}>"},
        f"<{FOLDER}>",
        '<icon class="x.OtherIcon"/>',
    ),
    "multibranch": (
        CiJobOperation,
        CiJobOptions,
        {"job": "x", "config": f'<{OWNER}><factory class="x.Factory"><a>b</a></factory></{OWNER}>'},
        '<factory class="x.Factory">',
        "<markerFile>Jenkinsfile</markerFile>",
    ),
    "node": (
        CiNodeOperation,
        CiNodeOptions,
        {"name": "x", "config": f"<slave><name>x</name>{LAUNCHER}</launcher></slave>"},
        LAUNCHER,
        "<workDirSettings><internalDir>other</internalDir></workDirSettings>",
    ),
    "view": (
        CiViewOperation,
        CiViewOptions,
        {"name": "x", "config": "<hudson.model.ListView><name>x</name></hudson.model.ListView>"},
        "<hudson.model.ListView>",
        "<filters><x.Filter/></filters>",
    ),
    "credential": (
        CiCredentialOperation,
        CiCredentialOptions,
        {"id": "x", "kind": "xml", "config": "<a.B><id>x</id><apiUri>u</apiUri></a.B>"},
        "<a.B>",
        "<usage>any</usage>",
    ),
}


class Server:
    """A server with one object, whose configuration it completes.

    :param drops: a text that the server does not save
    """

    def __init__(self, after: str, added: str, drops: str = "") -> None:
        self.after, self.added, self.drops = after, added, drops
        self.document: str | None = None
        self.writes = 0

    def respond(self, seen: Seen) -> Reply:
        here = {"X-Jenkins": "2.579"}
        if seen.method == "POST" and seen.body.startswith(b"<?xml"):
            text = seen.body.decode().partition("?>")[2]
            text = "".join(line.strip() for line in text.splitlines()).replace(self.drops, "")
            self.document = text.replace(self.after, self.after + self.added, 1)
            self.writes += 1
            return Reply(headers=here)
        if seen.method == "POST":
            self.document = "<slave/>"
            return Reply(302, headers={**here, "Location": "."})
        above = "/x/" not in seen.path
        if "crumbIssuer" in seen.path or (self.document is None and not above):
            return Reply(404, headers=here)
        if seen.path.endswith("config.xml"):
            return Reply(body=f"<?xml version='1.0' encoding='UTF-8'?>{self.document}")
        shown = {"domains": {"_": {}}, "jobs": [], "fullName": "" if above else "x"}
        return Reply(body=shown, headers=here)


@pytest.mark.parametrize("case", CASES)
def test_completed_configuration_is_unchanged_with_a_warning(case: str) -> None:
    operation, kind, given, after, added = CASES[case]
    server = Server(after, added)
    options: Any = options_of(kind, **given)
    with Stub(response=server.respond) as stub:
        created, again = Run(stub.url), Run(stub.url)
        assert created.play(lambda task: operation(task, options))["changed"]
        assert added in (server.document or "")
        writes = server.writes
        assert again.play(lambda task: operation(task, options))["changed"] is False
    assert server.writes == writes + 1
    assert any("did not take" in line for line in again.warnings), again.warnings


@pytest.mark.parametrize(
    ("case", "added"),
    [
        ("folder", '<icon class="x.icons.StockFolderIcon"/>'),
        ("multibranch", f'<owner class="{OWNER}" reference="../.."/>'),
        ("node", "<workDirSettings><internalDir>remoting</internalDir></workDirSettings>"),
        ("view", '<properties class="hudson.model.View$PropertyList"/>'),
        ("view", "<columns><hudson.views.JobColumn/></columns>"),
    ],
)
def test_members_that_every_server_adds_need_no_write(case: str, added: str) -> None:
    operation, kind, given, after, _added = CASES[case]
    server = Server(after, added)
    options: Any = options_of(kind, **given)
    with Stub(response=server.respond) as stub:
        runs = Run(stub.url), Run(stub.url)
        assert [run.play(lambda task: operation(task, options))["changed"] for run in runs] == [
            True,
            False,
        ]
    assert server.writes == 1
    assert [run.warnings for run in runs] == [[], []]


@pytest.mark.parametrize("case", [case for case in CASES if case != "credential"])
@pytest.mark.parametrize("exists", [True, False])
def test_what_the_server_adds_is_remembered(
    case: str, exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation, kind, given, after, added = CASES[case]
    server = Server(after, added)
    if exists:  # somebody has created the object
        server.document = given["config"].replace(after, after + added, 1)
    options: Any = options_of(kind, **given)

    def play(stub: Stub, *, check: bool = False) -> tuple[bool, int]:
        writes, run = server.writes, Run(stub.url, check)
        changed = run.play(lambda task: operation(task, options))["changed"]
        return changed, server.writes - writes

    monkeypatch.setenv(server_values.FOLDER, str(tmp_path / "report"))
    with Stub(response=server.respond) as stub:
        assert play(stub) == (not exists, 1)
        assert play(stub, check=True) == (False, 0)
        assert play(stub) == (False, 0)
        # somebody has changed the value that the server adds
        other = re.sub(r">\w+<|x\.\w+", lambda found: found[0].replace("x", "y") + "", added)
        other = other if other != added else added.replace(">o", ">p").replace(">J", ">K")
        server.document = (server.document or "").replace(added, other)
        assert play(stub, check=True) == (True, 0)
        assert play(stub) == (True, 1)
        monkeypatch.setenv(server_values.FOLDER, str(tmp_path / "other report"))
        assert play(stub) == (False, 1)
    (file,) = (tmp_path / "other report").iterdir()
    record = json.loads(file.read_text())
    assert (record["server"], record["name"]) == (stub.url, "x")
    assert len(record["values"]) == 1


def test_what_the_server_does_not_take_is_sent_once_and_named_in_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(server_values.FOLDER, str(tmp_path))
    operation, kind, given, after, _added = CASES["view"]
    server = Server(after, "", "<a>b</a>")
    wanted = given["config"].replace("</name>", "</name><a>b</a>")
    server.document = given["config"]
    runs = []
    with Stub(response=server.respond) as stub:
        for value in ("b", "b", "b", "c"):
            options: Any = options_of(kind, name="x", config=wanted.replace("b<", f"{value}<"))
            runs.append(run := Run(stub.url))
            assert run.play(lambda task, given=options: operation(task, given))["changed"] is (  # type: ignore[misc]
                value == "c"
            )
    assert [len(run.warnings) for run in runs] == [1, 1, 1, 0]
    assert server.writes == 2


def test_secrets_are_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(server_values.FOLDER, str(tmp_path))
    operation, kind, given, after, _added = CASES["view"]
    server = Server(after, "<a><password>long-secret</password></a>")
    options: Any = options_of(kind, **given)
    with Stub(response=server.respond) as stub:
        for writes in (1, 2, 3):
            Run(stub.url).play(lambda task: operation(task, options))
            assert server.writes == writes
    assert not list(tmp_path.iterdir())


def test_new_folder_without_a_configuration_does_not_warn() -> None:
    server = Server(f"<{FOLDER}>", "<icon class='x.OtherIcon'/>")
    options = options_of(CiJobOptions, job="x", folder=True)
    with Stub(response=server.respond) as stub:
        run = Run(stub.url)
        assert run.play(lambda task: CiJobOperation(task, options))["changed"]
    assert (run.warnings, server.writes) == ([], 1)


@pytest.mark.parametrize(
    ("case", "drops"), [("node", "<name>x</name>"), ("credential", "<apiUri>u</apiUri>")]
)
def test_lost_part_of_a_new_configuration_is_rejected(case: str, drops: str) -> None:
    operation, kind, given, after, added = CASES[case]
    server = Server(after, added, drops)
    options: Any = options_of(kind, **given)
    with (
        Stub(response=server.respond) as stub,
        pytest.raises(ToolchainError, match="did not save") as caught,
    ):
        Run(stub.url).play(lambda task: operation(task, options))
    assert caught.value.kind == "rejected"
    assert caught.value.result["changed"] is True


def test_configuration_that_the_server_does_not_take_is_unknown() -> None:
    def respond(seen: Seen) -> Reply:
        if "crumbIssuer" in seen.path:
            return Reply(404, headers={"X-Jenkins": "2.579"})
        exported = "jenkins:\n  numExecutors: 2\n" if seen.path.endswith("export") else "[]"
        return Reply(body=exported)

    config = {"jenkins": {"systemMessage": "x"}}
    options = options_of(CiConfigurationOptions, config=config)
    with Stub(response=respond) as stub:
        run = Run(stub.url)
        values = run.play(lambda task: CiConfigurationOperation(task, options))
    assert (values["changed"], values["changes"]) == (False, [])
    assert values["unknown"] == ["jenkins.systemMessage"]
    assert "did not take jenkins.systemMessage" in run.warnings[-1]


LOGIN = "com.cloudbees.plugins.credentials.impl.UsernamePasswordCredentialsImpl"


def test_secret_may_be_stored_although_the_fields_are_not() -> None:
    """The server stores only the secret, whose state was not known: the task has changed it."""
    redacted = "<password><secret-redacted/></password>"
    stored = f"<{LOGIN}><id>x</id><username>old</username>{redacted}</{LOGIN}>"

    def respond(seen: Seen) -> Reply:
        if seen.path.endswith("config.xml") and seen.method == "GET":
            return Reply(body=stored)
        return Reply(404 if "crumbIssuer" in seen.path else 200, headers={"X-Jenkins": "2.579"})

    given = {"login_username": "new", "login_password": "a-new-secret"}
    options = options_of(CiCredentialOptions, id="x", **given)
    with Stub(response=respond) as stub, pytest.raises(ToolchainError) as caught:
        Run(stub.url).play(lambda task: CiCredentialOperation(task, options))
    assert (caught.value.kind, caught.value.result["changed"]) == ("rejected", True)
    assert "login_username" in caught.value.message


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("<a.B><id>x</id><c><secret-redacted/></c></a.B>", "the element secret-redacted"),
        ("<a.B>", "not the XML of a credential"),
        ("<a.B><id>y</id></a.B>", "has the id 'y'"),
    ],
)
def test_unusable_xml_of_a_credential_is_rejected_before_requests(config: str, words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        options_of(CiCredentialOptions, id="x", kind="xml", config=config).check()
    assert caught.value.kind == "invalid"


def test_messages_name_the_credential_and_its_description_is_returned() -> None:
    config = "<a.B><id>x</id><description>Deploys</description></a.B>"
    server = Server("<a.B>", "")
    options = options_of(CiCredentialOptions, id="x", kind="xml", config=config)
    missing: Any = options_of(CiCredentialOptions, id="x", kind="secret_text")
    with Stub(response=server.respond) as stub:
        with pytest.raises(ToolchainError, match="the credential 'x': a new credential"):
            Run(stub.url).play(lambda task: CiCredentialOperation(task, missing))
        made = Run(stub.url).play(lambda task: CiCredentialOperation(task, options))
        assert made["credential"]["description"] == "Deploys"
        with pytest.raises(ToolchainError, match="the credential 'x' already exists"):
            Run(stub.url).play(lambda task: CiCredentialOperation(task, missing))


def test_placeholder_on_a_line_of_its_own_is_named() -> None:
    """Lines of a secret are masked, so the message must not contain any of them."""
    config = "<a.B>\n<id>x</id>\n<c>\n<secret-redacted/>\n</c>\n</a.B>"
    given = {"url": "http://ci.example", "id": "x", "kind": "xml", "config": config}
    assert "the element secret-redacted" in run("ci_credential", given)["msg"]
