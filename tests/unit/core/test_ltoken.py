# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.service import (
    login_of_auth_info,
    login_of_token_file,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)

URL = "https://Host.example:8443/context"
LINES = """
other.example;8443;me;t0
host.example;8443;me;t1
HOST.example;8443;you;t2
host.example;8080;me;t3
host.example;443;tls;t4
host.example;80;plain;t5
host.example;8443;broken
host.example;8443;;empty
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "ltoken"
    path.write_text(LINES)
    return str(path)


def refused(url: str, user: str | None, path: str | None) -> str:
    with pytest.raises(ToolchainError) as caught:
        login_of_token_file(url, user, path)
    assert caught.value.kind == "invalid"
    return str(caught.value)


@pytest.mark.parametrize(
    ("url", "user", "expected"),
    [
        (URL, "me", ("me", "t1")),
        (URL, "you", ("you", "t2")),
        ("http://host.example:8080", None, ("me", "t3")),
        ("https://host.example", None, ("tls", "t4")),
        ("http://HOST.EXAMPLE/x", None, ("plain", "t5")),
        ("https://other.example:8443", None, ("me", "t0")),
    ],
)
def test_line_is_selected_by_host_port_and_user(
    url: str, user: str | None, expected: tuple[str, str], file: str
) -> None:
    assert login_of_token_file(url, user, file) == expected


def test_several_users_require_a_username(file: str) -> None:
    message = refused(URL, None, file)
    assert "2 lines" in message
    assert "set username" in message
    assert "t1" not in message


@pytest.mark.parametrize(
    ("url", "user"), [("https://nowhere.example", None), (URL, "nobody"), (URL, "Me")]
)
def test_named_file_without_line_is_an_error(url: str, user: str | None, file: str) -> None:
    message = refused(url, user, file)
    assert "has no line for" in message
    # the port is often that of another interface of the server
    assert "(it has host.example:443, " in message
    assert "kwauth" in message


def test_duplicate_login_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "ltoken"
    path.write_text("host.example;8443;me;t1\r\nhost.example;8443;me;t1\r\n")
    assert login_of_token_file(URL, None, str(path)) == ("me", "t1")


def test_file_of_environment_precedes_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    home = tmp_path / ".klocwork"
    home.mkdir()
    (home / "ltoken").write_text("host.example;8443;me;from-home\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert login_of_token_file(URL, "me", None) == ("me", "from-home")
    monkeypatch.setenv("KLOCWORK_LTOKEN", file)
    assert login_of_token_file(URL, "me", None) == ("me", "t1")


def test_server_without_access_control_needs_no_file() -> None:
    assert login_of_token_file(URL, "me", None) == ("me", None)
    assert "cannot be read" in refused(URL, None, None)


def test_unreadable_default_file_does_not_reject_the_user(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KLOCWORK_LTOKEN", file)
    assert login_of_token_file("http://free.example", "me", None) == ("me", None)


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    assert "No such file" in refused(URL, "me", str(tmp_path / "missing"))
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    assert "has no line for" in refused(URL, "me", str(binary))
    assert "cannot be read" in refused(URL, "me", str(tmp_path))
    assert "cannot be read (it is a device, a pipe" in refused(URL, "me", "/dev/zero")


def test_relative_name_is_reported_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"the token file {tmp_path}/missing cannot" in refused(URL, "me", "missing")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_encoding_of_file_does_not_matter(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "ltoken"
    path.write_bytes("host.example;8443;jürgen;t1\nother;1;me;t2\n".encode(encoding))
    assert login_of_token_file(URL, "jürgen", str(path)) == ("jürgen", "t1")
    assert login_of_token_file("http://other:1", None, str(path)) == ("me", "t2")


@pytest.mark.parametrize("user", [None, "me"])
@pytest.mark.parametrize("names", [("user", "token"), ("username", "ltoken")])
def test_output_of_command_has_user_and_token(names: tuple[str, str], user: str | None) -> None:
    printed = json.dumps({names[0]: "me", names[1]: "t1", "host": "host.example"})
    assert login_of_auth_info(printed, user) == ("me", "t1")


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("host.example;8443;me;t1", "is not a JSON object"),
        ('["me", "t1"]', "is not a JSON object"),
        ('{"user": "me", "token": ""}', "has no user and token"),
        ('{"user": "me", "applicationToken": "t1"}', "an application token cannot log in"),
        ('{"user": "me", "token": "t1"}', "username is you, but"),
    ],
)
def test_invalid_output_is_rejected_without_showing_the_token(printed: str, words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        login_of_auth_info(printed, "you")
    assert caught.value.kind == "invalid"
    assert "t1" not in caught.value.message


def test_error_without_token_file_names_command_and_option() -> None:
    message = refused(URL, None, None)
    assert "set token_json to the output of 'kwauth --print-auth-info'" in message
