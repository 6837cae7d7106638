# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `ci_credential` against the stores of the sandbox's CI server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.credentials.ci_credential import (
    CiCredentialOperation,
    CiCredentialOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.client import Sandbox
from tests.helpers.ci import Ci

SYSTEM = "credentials/store/system/domain/_"
APP = """<org.jenkinsci.plugins.github__branch__source.GitHubAppCredentials>
  <id>app</id><appID>12</appID><privateKey>{key}</privateKey><owner>{owner}</owner>
</org.jenkinsci.plugins.github__branch__source.GitHubAppCredentials>"""
KINDS: dict[str, list[dict[str, Any]]] = {
    "username_password": [
        {"login_username": "u", "login_password": "first-secret", "scope": "system"},
        {"login_username": "u2", "login_password": "first-secret"},
        {"login_password": "other-secret", "scope": "global"},
    ],
    "secret_text": [{"secret": "first-secret"}, {"secret": "other-secret"}],
    "secret_file": [
        {"secret": "first-secret", "file_name": "a.env"},
        {"secret": "first-secret", "file_name": "b.env"},
    ],
    "ssh_key": [
        {"login_username": "u", "private_key": "first-secret\n", "passphrase": "pass-phrase"},
        {"private_key": "first-secret\n", "passphrase": "new-phrase"},
        {"private_key": "first-secret\n"},
    ],
    "certificate": [
        {"keystore": "Zmlyc3Q=", "login_password": "first-secret"},
        {"keystore": "Zmlyc3Q=", "login_password": "other-secret"},
    ],
    "xml": [
        {"config": APP.format(key="first-secret", owner="me")},
        {"config": APP.format(key="other-secret", owner="me")},
        {"config": APP.format(key="other-secret", owner="you")},
    ],
}


@pytest.fixture
def ci(fresh: Callable[[str], Sandbox]) -> Ci:
    return Ci(fresh("real"), CiCredentialOperation, CiCredentialOptions)


def shown(ci: Ci, id_: str) -> str:
    return ci.text(f"{SYSTEM}/credential/{id_}/config.xml")


@pytest.mark.parametrize("kind", KINDS)
def test_credential_is_created_updated_and_deleted(ci: Ci, kind: str) -> None:
    for number, step in enumerate(KINDS[kind]):
        done = ci.lives(id="app", kind=kind, **step)
        assert done["changed"]
        assert done["credential"]["secret"] == (
            "same" if not number else done["credential"]["secret"]
        )
        assert not {"first-secret", "other-secret", "pass-phrase"} & set(done["diff"][1].values())
    texts = [write for write in ci.writes() if write.startswith("POST")]
    assert len(texts) == len(KINDS[kind])
    assert ci.lives(id="app", state="absent")["changed"]
    assert not any("DELETE" in write for write in ci.writes()[:-1])


def test_redacted_xml_is_never_sent(ci: Ci) -> None:
    ci.fails("invalid", "login_password", "empty it", id="git-login", description="x")
    redacted = shown(ci, "git-login")
    ci.fails("invalid", "redacted", id="git-login", kind="xml", config=redacted)


def test_unknown_secret_gives_a_warning_and_is_not_written(ci: Ci) -> None:
    given: dict[str, Any] = {"id": "git-login", "login_password": "another-secret"}
    for _repeated in range(2):
        found = ci.run(**given)
        assert not found["changed"]
        assert found["credential"]["secret"] == "unknown"
        assert found["unknown"] == ["secret"]
        assert "has no digest to compare" in ci.warnings[0]
    assert not ci.run(**given, update_secret="on_create")["changed"]
    assert ci.run(**given, update_secret="always")["changed"]
    assert ci.run(**given)["credential"]["secret"] == "unknown"
    assert len(ci.warnings) == 0
    assert ci.run(check=True, **{**given, "login_password": "third"})["credential"]["secret"] == (
        "different"
    )
    assert ci.run(**given, update_secret="always")["changed"]


def test_description_is_shown_without_its_digest(ci: Ci) -> None:
    ci.run(id="a", kind="secret_text", secret="first-secret", description="Text")
    assert "Text [toolchain pbkdf2:" in shown(ci, "a")
    assert "first-secret" not in shown(ci, "a")
    found = ci.run(id="a", secret="first-secret", description="Text")
    assert (found["changed"], found["credential"]["description"]) == (False, "Text")
    assert ci.run(id="a", secret="first-secret")["credential"]["description"] == "Text"


def test_blanks_around_a_field_are_not_written(ci: Ci) -> None:
    given = {"login_username": " me ", "login_password": "first-secret", "description": "Text "}
    done = ci.lives(id="a", kind="username_password", **given)
    assert done["credential"]["description"] == "Text"
    assert "<username>me</username>" in shown(ci, "a")


@pytest.mark.parametrize("text", ["Zürich", "Zürich \N{RIGHTWARDS ARROW} Łódź?", "Who?"])
def test_description_beyond_ascii_is_compared(ci: Ci, text: str) -> None:
    """[ci-40]: the XML of a credential is ISO-8859-1 without a declaration."""
    done = ci.lives(id="a", kind="secret_text", secret="first-secret", description=text)
    assert done["credential"]["description"] == text


def test_description_copied_from_the_server_is_accepted(ci: Ci) -> None:
    ci.run(id="a", kind="secret_text", secret="first-secret", description="Text")
    told = shown(ci, "a").partition("<description>")[2].partition("<")[0]
    assert "pbkdf2" in told
    found = ci.run(id="a", secret="first-secret", description=told)
    assert (found["changed"], found["credential"]["secret"]) == (False, "unknown")
    given: dict[str, Any] = {"kind": "xml", "config": APP.format(key="first-secret", owner="me")}
    ci.run(id="app", **given)
    assert not ci.run(id="app", **given, description=told.replace("Text", "").strip())["changed"]


def change_by_hand(ci: Ci, id_: str) -> None:
    """Save another secret, and keep everything else, as a user does in the web interface."""
    config = shown(ci, id_).replace("<secret-redacted/>", "by-hand-secret")
    headers = {"Content-Type": "application/xml"}
    address = f"{SYSTEM}/credential/{id_}/config.xml"
    ci.text(address, "POST", data=config.encode(), headers=headers)


def test_secret_that_a_user_changed_is_not_the_same(ci: Ci) -> None:
    given: dict[str, Any] = {"id": "a", "kind": "secret_text", "secret": "first-secret"}
    ci.run(**given)
    assert ci.run(**given)["credential"]["secret"] == "unknown"
    ci.sandbox.settings("ci", used_credentials=["a"])
    first = ci.run(**given)["credential"]
    assert first["secret"] == "unknown"
    known = {**given, "fingerprint": first["fingerprint"]}
    assert ci.run(**known)["credential"]["secret"] == "same"
    without: dict[str, Any] = {"id": "a", "fingerprint": first["fingerprint"]}
    assert ci.run(**without)["credential"]["secret"] == "same"
    change_by_hand(ci, "a")
    assert ci.run(**given)["credential"]["secret"] == "unknown"
    ci.fails("invalid", "differs in secret", **without)
    ci.sandbox.settings("ci", used_credentials=[])
    assert ci.run(**known)["credential"]["secret"] == "unknown"
    ci.sandbox.settings("ci", used_credentials=["a"])
    done = ci.run(**known)
    assert (done["changed"], done["credential"]["secret"]) == (True, "different")
    again = ci.run(**known)
    assert (again["changed"], again["credential"]["secret"]) == (False, "unknown")
    assert f"set fingerprint to {again['credential']['fingerprint']}" in ci.warnings[-1]
    known["fingerprint"] = again["credential"]["fingerprint"]
    assert ci.run(**known)["credential"]["secret"] == "same"
    ci.fails("invalid", "not 32 hexadecimal digits", id="a", fingerprint="x")


def test_binary_file_is_compared(ci: Ci, tmp_path: Path) -> None:
    source = tmp_path / "key.bin"
    source.write_bytes(b"\x00\xff\x01")
    ci.lives(id="f", kind="secret_file", src=str(source), file_name="key.bin")
    source.write_bytes(b"\x00\xff\x02")
    assert ci.lives(id="f", src=str(source))["changed"]


def test_credentials_in_folders_and_domains_are_managed(ci: Ci) -> None:
    ci.lives(id="a", folder="delivery", domain="release", kind="secret_text", secret="first-secret")
    ci.fails(
        "not_found", "domain 'nope'", id="a", domain="nope", kind="secret_text", secret="first"
    )
    ci.fails(
        "not_found", "folder 'nope'", id="a", folder="nope", kind="secret_text", secret="first"
    )
    ci.fails("invalid", "scope", id="a", folder="delivery", scope="system", kind="secret_text")


def test_different_kind_is_a_conflict(ci: Ci) -> None:
    ci.fails("conflict", "username_password", id="git-login", kind="secret_text", secret="first")
    ci.fails(
        "conflict", "Username", id="git-login", kind="xml", config=APP.replace("app<", "git-login<")
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"id": "a/b"}, "id"),
        ({"id": "new"}, "login_password"),
        ({"id": "new", "kind": "xml"}, "config"),
        ({"id": "new", "kind": "xml", "config": "<a"}, "config"),
        ({"id": "new", "kind": "xml", "config": "<a><id>old</id></a>"}, "old"),
        ({"id": "new", "kind": "secret_text", "keystore": "x"}, "keystore"),
        ({"id": "new", "secret": "x"}, "secret"),
        ({"id": "new", "state": "absent", "secret": "x"}, "secret"),
        ({"id": "new", "kind": "secret_file", "secret": "x", "src": "/x"}, "src"),
        ({"id": "new", "kind": "secret_file", "src": "/nowhere"}, "nowhere"),
    ],
)
def test_invalid_options_are_rejected(ci: Ci, given: dict[str, Any], words: str) -> None:
    ci.fails("invalid", words, **given)


@pytest.mark.parametrize(
    "keystore", ["first-secret", "Zmlyc3Q", "Zm=lyc3Q=", "Zmlyc3Q=\u00e9", "===="]
)
@pytest.mark.parametrize("kind", [{"kind": "certificate"}, {}])
def test_keystore_that_is_not_base64_is_rejected(
    ci: Ci, kind: dict[str, str], keystore: str
) -> None:
    given = {"id": "new", "keystore": keystore, **kind}
    every: list[dict[str, Any]] = [
        given,
        {"entries": [{"id": "one", "kind": "certificate"}, given]},
    ]
    for options in every:
        before = ci.sandbox.mark()
        error = ci.fails("invalid", "keystore is not a file in Base64", **options)
        assert keystore not in str(error)
        assert not ci.sandbox.requests(since=before)


def test_line_breaks_of_a_keystore_are_removed(ci: Ci) -> None:
    certificate: dict[str, Any] = {"id": "app", "kind": "certificate", "login_password": "p-secret"}
    assert ci.run(keystore="Zmly\nc3Q=\n", **certificate)["changed"]
    assert not ci.run(keystore="Zmlyc3Q=", **certificate)["changed"]


def test_unknown_class_is_reported_with_its_reason(ci: Ci) -> None:
    with pytest.raises(ToolchainError) as caught:
        ci.run(id="x", kind="xml", config="<a.b.C><id>x</id></a.b.C>")
    assert caught.value.status == 500


def test_many_credentials_are_managed_in_one_task(ci: Ci) -> None:
    entries: list[dict[str, Any]] = [
        {"id": "one", "kind": "secret_text", "secret": "first-secret"},
        {"id": "two", "login_username": "u", "login_password": "other-secret"},
        {"id": "git-login", "state": "absent"},
        {"id": "key", "kind": "ssh_key", "private_key": "k-secret", "passphrase": "p-secret"},
        {
            "id": "cert",
            "kind": "certificate",
            "keystore": "eA==",
            "login_password": "cert-secret",
        },
        {"id": "app", "kind": "xml", "config": APP.format(key="first-secret", owner="me")},
        {"id": "file", "kind": "secret_file", "secret": "x-secret", "file_name": "x"},
    ]
    done = ci.lives(entries=entries)
    assert [result["action"] for result in done["results"]][:3] == ["created", "created", "deleted"]
    assert done["results"][1]["id"] == done["results"][1]["name"] == "two"
    always = [{"id": "one", "secret": "first-secret", "update_secret": "always"}]
    assert ci.run(entries=always)["results"][0]["action"] == "updated"


def test_entry_without_its_secret_does_not_stop_the_others(ci: Ci) -> None:
    entries: list[dict[str, Any]] = [
        {"id": "git-login", "description": "Reads the sources", "login_username": "git"},
        {"id": "new", "kind": "secret_text"},
        {"id": "one", "kind": "secret_text", "secret": "first-secret"},
    ]
    assert not ci.run(entries=entries[:1])["changed"]
    with pytest.raises(
        ToolchainError, match=r"1 of 2 entries failed, .*secret_text requires"
    ) as caught:
        ci.run(entries=entries[1:])
    assert caught.value.kind == "invalid"
    assert [result["action"] for result in caught.value.result["results"]] == ["created", "created"]
    assert "first-secret" not in shown(ci, "one")
    entries[0]["description"] = "Other"
    error = ci.fails("invalid", "empty it", "differs in description", entries=entries[:1])
    assert error.result["results"][0]["changes"] == [
        {"field": "description", "before": "Reads the sources", "after": "Other"}
    ]


LOST = "Łukasz?"


@pytest.mark.parametrize("description", [None, "Für \N{RIGHTWARDS ARROW} (all)"])
@pytest.mark.parametrize(
    ("kind", "field", "secret"),
    [
        ("username_password", "login_username", {"login_password": "first-secret"}),
        ("ssh_key", "login_username", {"private_key": "first-secret"}),
        ("secret_file", "file_name", {"secret": "first-secret"}),
    ],
)
def test_name_beyond_latin_1_is_compared(
    ci: Ci, kind: str, field: str, secret: dict[str, str], description: str | None
) -> None:
    """[ci-40]: the XML has question marks for such characters, the JSON has not."""
    given: dict[str, Any] = {"id": "a", field: LOST}
    ci.lives(**given, kind=kind, **secret, description=description)
    assert "unknown" not in ci.run(**given)
    with pytest.raises(ToolchainError, match=f"differs in {field}"):
        ci.run(**{**given, field: "?ukasz?"})


def test_name_that_no_response_shows_is_unknown(ci: Ci) -> None:
    """[ci-40]: `displayName` does not contain a user name that counts as a secret."""
    root = "com.cloudbees.plugins.credentials.impl.UsernamePasswordCredentialsImpl"
    fields = f"<id>a</id><username>{LOST}</username><usernameSecret>true</usernameSecret>"
    config = f"<{root}>{fields}<password>first-secret</password></{root}>"
    headers = {"Content-Type": "application/xml"}
    ci.text(f"{SYSTEM}/createCredentials", "POST", data=config.encode(), headers=headers)
    found = ci.run(id="a", login_username=LOST)
    assert (found["changed"], found["unknown"]) == (False, ["login_username"])
    changed: dict[str, Any] = {
        "id": "a",
        "login_password": "other-secret",
        "update_secret": "always",
    }
    ci.fails("invalid", "set login_username", **changed)
    assert ci.run(**changed, login_username="Ł")["changed"]
    assert not ci.run(id="a", login_username="Ł")["changed"]
    config = config.replace(LOST, "Ł")
    again = ci.run(id="a", kind="xml", config=config, update_secret="on_create")
    assert not again["changed"]


def test_new_credential_requires_a_user_name(ci: Ci) -> None:
    ci.fails("invalid", "requires login_username", id="new", login_password="x-secret")
    assert ci.lives(id="new", login_username="", login_password="x-secret")["changed"]


def test_new_file_is_named_after_its_source(ci: Ci, tmp_path: Path) -> None:
    source = tmp_path / "a.env"
    source.write_text("first-secret")
    ci.lives(id="f", kind="secret_file", src=str(source))
    assert not ci.run(id="f", file_name="a.env")["changed"]
