# SPDX-License-Identifier: GPL-3.0-or-later
"""Test approvals of sealed plans with keys and signatures of `ssh-keygen`."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bookkeeping
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import (
    approvals,
    sealed,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from tests.helpers import installed
from tests.unit.arguments import run_of

PLAN = b'{"format": 1}\n'
NAMES = ("alice", "bob", "carol", "bob@example.com")


def _keygen(*arguments: str, content: bytes | None = None) -> bytes:
    command = ["ssh-keygen", "-q", *arguments]
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout


@pytest.fixture(scope="module", autouse=True)
def on_path() -> Iterator[None]:
    """Provide the program for this file, also if the system has none."""
    program = installed.program("ssh-keygen")
    if program is None:
        pytest.skip("there is no ssh-keygen")
    with pytest.MonkeyPatch.context() as patch:
        if shutil.which("ssh-keygen") is None:
            patch.setenv("PATH", str(program.parent), prepend=os.pathsep)
            for name, value in installed.environment().items():
                patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in NAMES:
        _keygen("-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name))
    return folder


class Desk:
    """A plan with its signatures, and the file of signers."""

    def __init__(self, folder: Path, keys: Path) -> None:
        self.plan, self.file, self._keys = folder / "plan.json", folder / "signers", keys
        self.plan.write_bytes(PLAN)
        self.warnings: list[str] = []
        self.signers("alice", "bob", "carol")

    def public(self, name: str) -> str:
        return " ".join((self._keys / f"{name}.pub").read_text("utf-8").split()[:2])

    def signers(self, *lines: str) -> None:
        """Write a line for each name, or the line itself if it contains a blank."""
        whole = [line if " " in line else f"{line} {self.public(line)}" for line in lines]
        self.file.write_text("# who may approve\n\n" + "\n".join(whole) + "\n", "utf-8")

    def sign(
        self, name: str, file: str = "", *, namespace: str = approvals.NAMESPACE, of: bytes = PLAN
    ) -> None:
        key = str(self._keys / name)
        signature = _keygen("-Y", "sign", "-n", namespace, "-f", key, content=of)
        (self.plan.parent / (file or f"plan.json.{name}.sig")).write_bytes(signature)

    def verify(self, number: int = 2, requester: str = "carol") -> list[str]:
        rules = approvals.Rules(number, self.file, requester)
        found = approvals.verify(rules, self.plan, self.plan.read_bytes(), self.warnings.append)
        return [approval.name for approval in found]

    def fails(self, number: int = 2, requester: str = "carol") -> str:
        with pytest.raises(sealed.PlanError) as caught:
            self.verify(number, requester)
        return str(caught.value)


@pytest.fixture
def desk(tmp_path: Path, keys: Path) -> Desk:
    return Desk(tmp_path, keys)


def test_two_persons_approve(desk: Desk) -> None:
    desk.sign("alice", "plan.json.sig")
    desk.sign("bob")
    assert desk.verify() == ["bob", "alice"]
    assert desk.warnings == []
    assert "has 2 of 3 approvals" in desk.fails(3)


def test_names_with_blanks_and_options_in_the_file(desk: Desk) -> None:
    key = desk.public("alice")
    desk.signers(
        f'"Alice A" valid-before="20990101",namespaces="{approvals.NAMESPACE}" {key} a comment',
        "bob",
        "carol",
    )
    desk.sign("alice")
    desk.sign("bob")
    assert desk.verify() == ["Alice A", "bob"]


#: What makes the signature of Alice worthless, and words of the warning.
WORTHLESS: dict[str, tuple[Callable[[Desk], object], str]] = {
    "another namespace": (lambda desk: desk.sign("alice", namespace="file"), "namespace is 'file'"),
    "another plan": (lambda desk: desk.sign("alice", of=b"{}"), "does not accept it"),
    "another person": (lambda desk: desk.signers("bob", "carol"), "its key is not in"),
    "expired": (
        lambda desk: desk.signers(
            f'alice valid-before="20200101" {desk.public("alice")}', "bob", "carol"
        ),
        "does not accept it",
    ),
    "not yet valid": (
        lambda desk: desk.signers(
            f'alice valid-after="20990101" {desk.public("alice")}', "bob", "carol"
        ),
        "does not accept it",
    ),
    "only for other namespaces": (
        lambda desk: desk.signers(f'alice namespaces="git" {desk.public("alice")}', "bob", "carol"),
        "does not accept it",
    ),
    "a pattern": (
        lambda desk: desk.signers(f"a* {desk.public('alice')}", "bob", "carol"),
        "line 3 of signers names a pattern or several persons",
    ),
    "several persons": (
        lambda desk: desk.signers(f"alice,dave {desk.public('alice')}", "bob", "carol"),
        "line 3 of signers names a pattern or several persons",
    ),
    "negation": (
        lambda desk: desk.signers(f"!bob {desk.public('alice')}", "bob", "carol"),
        "line 3 of signers names a pattern or several persons",
    ),
    "an authority": (
        lambda desk: desk.signers(f"alice cert-authority {desk.public('alice')}", "bob", "carol"),
        "line 3 of signers is a certificate authority",
    ),
    "a shared key": (
        lambda desk: desk.signers("alice", f"dave {desk.public('alice')}", "bob", "carol"),
        "several persons share its key",
    ),
    "the requester": (
        lambda desk: desk.signers(f"CAROL {desk.public('alice')}", "bob", "carol"),
        "CAROL has requested the run",
    ),
    "the requester by address": (
        lambda desk: desk.signers(f"Carol@example.com {desk.public('alice')}", "bob", "carol"),
        "Carol@example.com may be carol, who has requested the run",
    ),
    "the requester by another name of the line": (
        lambda desk: desk.signers(
            f"c.smith {desk.public('alice')}", "bob", f"carol,c.smith {desk.public('carol')}"
        ),
        "c.smith has requested the run",
    ),
    "the requester by another name of the key": (
        lambda desk: desk.signers(
            f"c.smith {desk.public('alice')}",
            "bob",
            f"carol {desk.public('carol')}",
            f"c.smith {desk.public('carol')}",
        ),
        "c.smith has requested the run",
    ),
    "the same person with two keys": (
        lambda desk: desk.signers(f"Bob {desk.public('alice')}", "bob", "carol"),
        "has signed already",
    ),
    "the same person by address": (
        lambda desk: desk.signers(f"bob@example.com {desk.public('alice')}", "bob", "carol"),
        "bob may be bob@example.com, who has signed already",
    ),
    "a quoted pattern": (
        lambda desk: desk.signers(f'"*@example.com" {desk.public("alice")}', "bob", "carol"),
        "names a pattern or several persons",
    ),
    "a line after a lone CR": (
        lambda desk: desk.file.write_bytes(
            f"# note\ralice {desk.public('alice')}\nbob {desk.public('bob')}\r\ncarol x\n".encode()
        ),
        "its key is not in",
    ),
    "no signature": (
        lambda desk: (desk.plan.parent / "plan.json.alice.sig").write_text("x"),
        "it is not a signature of OpenSSH",
    ),
    "half a signature": (
        lambda desk: _cut(desk.plan.parent / "plan.json.alice.sig"),
        "it is not a signature of OpenSSH",
    ),
    "a large file": (
        lambda desk: (desk.plan.parent / "plan.json.alice.sig").write_text("x" * 70_000),
        "it is too large",
    ),
    "a folder": (lambda desk: _folder(desk.plan.parent / "plan.json.alice.sig"), "cannot be read"),
}


def _cut(file: Path) -> None:
    lines = file.read_text("utf-8").splitlines()
    file.write_text("\n".join([*lines[:2], lines[-1]]), "utf-8")


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(("change", "words"), WORTHLESS.values(), ids=WORTHLESS)
def test_signature_does_not_count(desk: Desk, change: Callable[[Desk], object], words: str) -> None:
    desk.sign("alice")
    desk.sign("bob")
    change(desk)
    assert "has 1 of 2 approvals" in desk.fails()
    (warning,) = desk.warnings
    assert words in warning
    assert "plan.json." in warning


def test_two_signatures_of_a_person_are_one(desk: Desk) -> None:
    desk.sign("alice", "plan.json.sig")
    desk.sign("alice")
    assert "has 1 of 2 approvals" in desk.fails()
    assert "alice has signed already" in desk.warnings[0]


def test_requester_is_compared_in_every_spelling(desk: Desk) -> None:
    desk.sign("alice")
    for requester in ("ALICE", " alice", "\N{FULLWIDTH LATIN SMALL LETTER A}lice"):
        assert "has 0 of 1 approvals" in desk.fails(1, requester)


@pytest.mark.parametrize(
    ("lines", "requester", "similar"),
    [
        (("release-team@example.com {}",), "release-team", "release-team@example.com"),
        (("release-team {}",), "Release-Team@example.com", "release-team"),
        (("release-team {}", "bob {}"), "relaese-team", "release-team"),
        (("*@example.com {}", "alice {}"), "carol@example.com", ""),
        (("!carol,* {}",), "carol", ""),
        (("# carol {}",), "carol", ""),
        ((), "carol", ""),
    ],
)
def test_requester_who_is_not_in_the_file_is_invalid(
    desk: Desk, lines: tuple[str, ...], requester: str, similar: str
) -> None:
    desk.signers(*(line.format(desk.public("alice")) for line in lines))
    desk.sign("alice")
    with pytest.raises(ToolchainError) as caught:
        desk.verify(1, requester)
    assert caught.value.kind == "invalid"
    assert f"no line of {desk.file} names {requester}." in caught.value.message
    assert (f"Similar names there: {similar}." in caught.value.message) == bool(similar)


@pytest.mark.parametrize("mode", [0o622, 0o660])
def test_signers_that_others_may_write_are_rejected(desk: Desk, mode: int) -> None:
    desk.sign("alice")
    desk.file.chmod(mode)
    assert "others may write" in desk.fails(1)
    desk.file.chmod(0o644)
    desk.file.parent.chmod(0o777)
    assert "others may write" in desk.fails(1)
    desk.file.parent.chmod(0o1777)
    assert desk.verify(1) == ["alice"]
    desk.file.chmod(0o1666)
    assert "others may write" in desk.fails(1)


def test_signers_behind_a_link_into_a_folder_of_others_are_rejected(desk: Desk) -> None:
    desk.sign("alice")
    shared = desk.file.parent / "shared"
    shared.mkdir()
    desk.file.rename(shared / "signers")
    desk.file.symlink_to(shared / "signers")
    assert desk.verify(1) == ["alice"]
    shared.chmod(0o777)
    assert f"others may write {shared}" in desk.fails(1)


def test_every_folder_and_link_on_the_way_is_verified(desk: Desk) -> None:
    """Verify chains of links: `etc` leads through `shared/link` to `trusted`."""
    desk.sign("alice")
    above = desk.file.parent
    for name in ("trusted/deep", "shared", "other"):
        (above / name).mkdir(parents=True)
    desk.file.rename(above / "trusted/deep/signers")
    (above / "shared/link").symlink_to("../other/../trusted")
    (above / "etc").symlink_to(above / "shared/link")
    desk.file = above / "etc/deep/signers"
    assert desk.verify(1) == ["alice"]
    for name in ("shared", "trusted", "trusted/deep", "other", "."):
        (above / name).chmod(0o770)
        assert f"others may write {above / name}: chmod go-w" in desk.fails(1)
        (above / name).chmod(0o755)
    (above / "shared/link").unlink()
    (above / "shared/link").symlink_to("link")
    assert "Too many levels of symbolic links" in desk.fails(1)


def test_link_of_another_account_is_rejected(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify that others cannot lead to their own file from a folder such as /tmp."""
    desk.sign("alice")
    link = desk.file.parent / "link"
    link.symlink_to(desk.file)
    lstat = Path.lstat

    def others(path: Path) -> os.stat_result:
        found = lstat(path)
        return (
            os.stat_result([*found[:4], os.geteuid() + 1, *found[5:10]]) if path == link else found
        )

    monkeypatch.setattr(Path, "lstat", others)
    desk.file = link
    assert f"{link} belongs neither to root nor" in desk.fails(1)


def test_signers_of_another_account_are_rejected(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.sign("alice")
    real = os.stat_result([*os.stat(desk.file)[:4], os.geteuid() + 1, *os.stat(desk.file)[5:10]])
    monkeypatch.setattr(os, "fstat", lambda _descriptor: real)
    assert "belongs neither to root nor" in desk.fails(1)


def test_folder_of_a_read_only_mount_is_accepted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verify that the folder of a ConfigMap, whose mode is 0777, is accepted."""
    desk.sign("alice")
    desk.file.parent.chmod(0o777)
    mounted = SimpleNamespace(f_flag=os.ST_RDONLY)
    monkeypatch.setattr(os, "statvfs", lambda _path: mounted)
    assert desk.verify(1) == ["alice"]
    desk.file.chmod(0o666)
    assert "others may write" in desk.fails(1)


def test_key_has_a_line_for_each_period(desk: Desk) -> None:
    key = desk.public("alice")
    desk.signers(
        f'alice valid-before="20200101" {key}', f'alice valid-after="20200101" {key}', "carol"
    )
    desk.sign("alice")
    assert desk.verify(1) == ["alice"]


def test_hostile_file_names_are_printable(desk: Desk) -> None:
    desk.sign("alice", "plan.json.a\x1b[31m\n\u202eb.sig")
    (desk.plan.parent / os.fsdecode(b"plan.json.\x1b[31m\n\xff.sig")).write_bytes(b"x")
    rules = approvals.Rules(1, desk.file, "carol")
    (found,) = approvals.verify(rules, desk.plan, PLAN, desk.warnings.append)
    (warning,) = desk.warnings
    for shown in (found.file, warning):
        assert shown.isprintable()
        shown.encode()


def test_folder_that_cannot_be_listed_is_an_error(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_folder: Path) -> list[str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "listdir", denied)
    assert "cannot be listed: Permission denied" in desk.fails()


def test_unreadable_signers_and_a_missing_program_are_errors(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.file.write_bytes(b"\xff\xfe")
    assert "it is not UTF-8 text" in desk.fails()
    desk.file.unlink()
    assert "Set enforce_signers" in desk.fails()
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert "install the client of OpenSSH" in desk.fails()


def test_name_is_no_option_of_the_program(desk: Desk) -> None:
    desk.signers(f"-Ofoo {desk.public('alice')}", f"-n {desk.public('bob')}", "carol")
    desk.sign("alice")
    desk.sign("bob")
    assert desk.verify() == ["-Ofoo", "-n"]


def test_too_many_signatures_are_rejected(desk: Desk) -> None:
    for number in range(101):
        (desk.plan.parent / f"plan.json.{number}.sig").write_text("x", "utf-8")
    assert "remove others" in desk.fails()


# -- options --------------------------------------------------------------------------------------

GIVEN = {"enforce_signers": "signers", "enforce_requester": "carol", "enforce_plan": "plan.json"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"enforce_approvals": ""}, "enforce_approvals must be a number"),
        ({"enforce_approvals": None}, "enforce_approvals must be a number"),
        ({"enforce_approvals": 1.5}, "enforce_approvals must be a number"),
        ({"enforce_approvals": -1}, "enforce_approvals must be a number"),
        ({"enforce_approvals": True}, "enforce_approvals must be a number"),
        ({"enforce_approvals": [2]}, "enforce_approvals must be a number"),
        ({"enforce_approvals": 2, "enforce_signers": ""}, "needs enforce_signers"),
        ({"enforce_approvals": 2, "enforce_signers": ["x"]}, "needs enforce_signers"),
        ({"enforce_approvals": 2, "enforce_requester": " "}, "needs enforce_requester"),
        ({"enforce_approvals": 2, "enforce_requester": None}, "needs enforce_requester"),
        ({"enforce_approvals": 2, "enforce_requester": "carol\u200b"}, "needs enforce_requester"),
        ({"enforce_approvals": 2, "enforce_plan": ""}, "enforce_plan is not set"),
        ({}, "no effect without enforce_approvals"),
        ({"enforce_approvals": "0"}, "no effect without enforce_approvals"),
        (
            {"enforce_approvals": 0, "enforce_signers": None, "enforce_requester": None}
            | {"enforce_reason": ["x"]},
            "enforce_reason must be a sentence",
        ),
    ],
)
def test_invalid_options_end_the_run_at_once(given: dict[str, Any], words: str) -> None:
    with pytest.raises(bookkeeping.StepError, match=words):
        bookkeeping.perform("begin", run_of(**{**GIVEN, **given}), {})


def test_plan_as_a_mapping_cannot_be_approved(desk: Desk) -> None:
    given = {**GIVEN, "enforce_signers": str(desk.file), "enforce_plan": {"format": 1}}
    with pytest.raises(bookkeeping.StepError, match="is a mapping"):
        bookkeeping.perform("open_plan", run_of(**given, enforce_approvals="1"), {})


def test_verified_bytes_are_the_plan(desk: Desk) -> None:
    """Verify that approvals are reported, and that each plan of a list needs its own."""
    plan = sealed.make(Contents(check=True).since(), "salt", None, ["localhost"])
    content = json.dumps(plan, indent=1).encode()
    desk.plan.write_bytes(content)
    desk.sign("alice", of=content)
    given = {**GIVEN, "enforce_signers": str(desk.file), "enforce_plan": str(desk.plan)}
    run = run_of(**given, enforce_approvals=1, inventory_hostname="localhost")
    result = bookkeeping.perform("open_plan", run, {})
    assert result["report"] == {"approvals": [{"name": "alice", "file": "plan.json.alice.sig"}]}
    other = desk.plan.with_name("other.json")
    other.write_bytes(json.dumps({**plan, "hosts": ["other"]}).encode())
    given["enforce_plan"] = [str(desk.plan), str(other)]  # type: ignore[assignment]
    with pytest.raises(bookkeeping.StepError, match=r"other\.json has 0 of 1 approvals"):
        bookkeeping.perform("open_plan", run_of(**given, enforce_approvals=1), {})
    desk.plan.write_bytes(content + b" ")
    with pytest.raises(bookkeeping.StepError, match="has 0 of 1 approvals"):
        bookkeeping.perform("open_plan", run, {})
