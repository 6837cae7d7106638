# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.errors import AnsibleFallbackNotFound

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    settings_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES

URL = "https://host.example:8443/context"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\n"
OAUTH: dict[str, Any] = {
    "oauth_consumer_key": "consumer",
    "oauth_private_key": PEM,
    "oauth_access_token": "token",
    "oauth_access_token_secret": "token-secret",
}
#: A complete credential of each kind, and the kinds that a connection then has.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "password": ("repo", {"username": "u", "password": "p-secret"}),
    "token": ("repo", {"token": "t-secret"}),
    "api_key": ("repo", {"api_key": "k-secret"}),
    "oauth": ("tracker", OAUTH),
}


def resolve(
    service: str = "repo", environ: dict[str, str] | None = None, **given: Any
) -> Connection:
    values: dict[str, Any] = {"url": URL, **given}
    return options.resolve(SERVICES[service], values.get, environ or {})


def refused(service: str = "repo", environ: dict[str, str] | None = None, **given: Any) -> str:
    with pytest.raises(ToolchainError) as caught:
        resolve(service, environ, **given)
    assert caught.value.kind == "invalid"
    message = str(caught.value)
    assert not [text for text in ("secret", "pw") if f"{text}-x" in message]
    return message


def environ(service: str, values: dict[str, str]) -> dict[str, str]:
    return {options.environment_name(service, name): value for name, value in values.items()}


def held(connection: Connection) -> set[str]:
    """Return the kinds of credentials that a connection has."""
    return {name for name in KINDS if getattr(connection, name) is not None}


# The address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host", "http://host"),
        ("http://host/", "http://host"),
        ("https://host:8443/a/b/", "https://host:8443/a/b"),
        ("https://[::1]:8443/x", "https://[::1]:8443/x"),
        ("https://u:p@host/x", "https://host/x"),
    ],
)
def test_base_url_is_normalized(url: str, expected: str) -> None:
    assert resolve(url=url).url == expected


PASTED = {
    "https://h/review/api": ("analysis", "https://h"),
    "https://h:8080/kw/review/api/": ("analysis", "https://h:8080/kw"),
    "https://h/artifactory/api": ("repo", "https://h/artifactory"),
    "https://h/artifactory/api/storage/": ("repo", "https://h/artifactory"),
    "https://h/repo/api": ("repo", "https://h/repo/api"),
    "https://h/jira/rest/api/2": ("tracker", "https://h/jira"),
    "https://h/rest/api/latest/issue/A-1": ("tracker", "https://h"),
    "https://h/rest": ("tracker", "https://h"),
    "https://h/restful": ("tracker", "https://h/restful"),
    "https://h/wiki/rest/api": ("wiki", "https://h/wiki"),
    "https://h/wiki/rest/api/content": ("wiki", "https://h/wiki"),
    "https://x.atlassian.net/wiki/api/v2/pages": ("wiki", "https://x.atlassian.net/wiki"),
    "https://u:p@h/jenkins/api/json": ("ci", "https://h/jenkins"),
    "https://h/api": ("ci", "https://h/api"),
}


@pytest.mark.parametrize(("url", "service", "base"), [(key, *PASTED[key]) for key in PASTED])
def test_path_of_the_interface_is_dropped(url: str, service: str, base: str) -> None:
    login: dict[str, Any] = {"username": "u", "ltoken": "p"} if service == "analysis" else {}
    assert resolve(service, url=url, **login).url == base


@pytest.mark.parametrize(
    ("service", "option", "given", "base"),
    [
        ("repo", "platform_url", "https://h/access/api/v1", "https://h"),
        ("repo", "platform_url", "https://h/", "https://h"),
        (
            "tracker",
            "oauth2_url",
            "https://auth.example.org/oauth/token",
            "https://auth.example.org",
        ),
        (
            "wiki",
            "cloud_gateway",
            "https://g.example.org/ex/confluence/1-2",
            "https://g.example.org",
        ),
    ],
)
def test_further_address_is_normalized(service: str, option: str, given: str, base: str) -> None:
    options: dict[str, Any] = {option: given}
    found = resolve(service, url="https://h/wiki", **options)
    assert found.settings[option] == base


@pytest.mark.parametrize("url", [None, ""])
@pytest.mark.parametrize("service", SERVICES)
def test_missing_url_names_option_and_variable(service: str, url: str | None) -> None:
    message = refused(service, url=url)
    assert "option url" in message
    assert f"TOOLCHAIN_{service.upper()}_URL" in message


@pytest.mark.parametrize(
    "url",
    [
        "host/path",
        "ftp://host",
        "http://",
        "http:///x",
        "http://host:port",
        "http://[host",
        "http://host?x=1",
        "http://host#x",
        "http://u:pw-x@host?x=1",
        "http://u:pw-x@host:port",
        "http://u:pw-x@ho st/x",
        "http://u:pw-x@host/x\ny",
    ],
)
def test_invalid_url_is_rejected(url: str) -> None:
    assert "address" in refused(url=url)


@pytest.mark.parametrize("blank", [" ", "\n", "\r\n", "\t", "\u00a0"])
def test_blank_around_url_is_rejected(blank: str) -> None:
    words = "begins or ends with a space or line break: remove it"
    message = f"the address http://host/x of the repo service {words}"
    assert refused(url=f"http://u:pw-x@host/x{blank}") == message
    assert refused(url=f"{blank}http://host/x") == message
    assert f"of platform_url {words}" in refused(platform_url=f"http://host{blank}")


@pytest.mark.parametrize(
    "given", ["host/path", "http://", "http://host/?q=1", "http://u:secret-1@host/x", "http://a b"]
)
def test_invalid_platform_url_is_rejected(given: str) -> None:
    message = refused("repo", url="http://host/artifactory", platform_url=given)
    assert "platform_url" in message
    assert "secret-1" not in message


@pytest.mark.parametrize("service", ["repo", "tracker", "wiki", "ci"])
def test_user_info_of_url_becomes_the_login(service: str) -> None:
    connection = resolve(service, url="https://us%40er:p%2Fw%C3%BC@host/x")
    assert connection.url == "https://host/x"
    assert connection.username == "us@er"
    assert connection.password is not None
    assert connection.password.reveal() == "p/wü"


def test_user_info_of_analysis_url_is_user_and_token() -> None:
    connection = resolve("analysis", url="https://me:tok@host")
    assert (connection.username, connection.password) == ("me", Secret("tok"))


def test_user_info_may_only_repeat_an_option() -> None:
    assert resolve(url="https://u:p@host", username="u", password="p").username == "u"
    assert resolve(url="https://u@host", password="p").username == "u"
    assert "differs from the option username" in refused(
        url="https://u:p@host", username="v", password="p"
    )
    assert "differs from the option password" in refused(url="https://u:pw-x@host", password="q")


def test_user_info_conflicts_with_other_credentials() -> None:
    assert "username cannot be combined with" in refused(url="https://u@host", token="t")
    assert "several login methods" in refused(url="https://u:pw-x@host", token="t")


def test_task_precedes_user_info_of_environment() -> None:
    url = "https://u:p@host"
    variables = environ("repo", {"url": url})
    connection = resolve(environ=variables, url=url, token="t")
    assert held(connection) == {"token"}
    assert resolve(environ=variables, url=url).username == "u"


# Precedence of credentials


@pytest.mark.parametrize("kind", KINDS)
def test_single_credential_is_used(kind: str) -> None:
    service, given = KINDS[kind]
    connection = resolve(service, **given)
    assert held(connection) == {kind}
    assert connection.has_credentials
    assert [
        secret.reveal() for secret in connection.secrets if secret.reveal() not in given.values()
    ] == []


@pytest.mark.parametrize("kind", KINDS)
def test_environment_is_used_if_task_has_no_credential(kind: str) -> None:
    service, given = KINDS[kind]
    assert held(resolve(service, environ(service, given))) == {kind}


@pytest.mark.parametrize("in_environment", ["password", "token", "api_key"])
@pytest.mark.parametrize("in_task", ["password", "token", "api_key"])
def test_task_precedes_environment(in_task: str, in_environment: str) -> None:
    given = {name: f"task-{value}" for name, value in KINDS[in_task][1].items()}
    connection = resolve(environ=environ("repo", KINDS[in_environment][1]), **given)
    assert held(connection) == {in_task}
    assert all(secret.reveal().startswith("task-") for secret in connection.secrets)


@pytest.mark.parametrize("kind", [*KINDS, "credentials_file", "ltoken_file"])
def test_credential_of_environment_belongs_to_its_address(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "login"
    file.write_text("machine host.example login u password p")
    files = {"credentials_file": "repo", "ltoken_file": "analysis"}
    service, given = (files[kind], {kind: str(file)}) if kind in files else KINDS[kind]
    variables = environ(service, {**given, "url": "https://own.example/a"})
    message = refused(service, variables, url="https://host.example/a")
    name = options.environment_name(service, "url")
    assert f"in the environment belong to https://own.example/a ({name})" in message
    assert "are not sent to https://host.example/a" in message


@pytest.mark.parametrize(
    ("own", "url", "used"),
    [
        ("https://own.example", "https://OWN.example:443/other/", True),
        ("", "https://host.example", True),
        ("https://own.example", "http://own.example", False),
        ("https://own.example", "https://own.example:8443", False),
        ("https://u:pw-x@own.example", "https://own.example.net", False),
        ("no address", "https://own.example", False),
    ],
)
def test_environment_is_used_at_its_own_origin(own: str, url: str, used: bool) -> None:
    variables = environ("repo", {"token": "t-secret", "url": own})
    if used:
        assert held(resolve(environ=variables, url=url)) == {"token"}
    else:
        refused(environ=variables, url=url)
    for given in ({"token": "t"}, {"username": "u", "password": "p"}):
        assert resolve(environ=variables, url=url, **given).has_credentials
    with_user_info = url.replace("://", "://u:p@")
    assert resolve(environ=variables, url=with_user_info).username == "u"
    assert not resolve(environ=environ("repo", {"url": own}), url=url).has_credentials


@pytest.mark.parametrize(
    ("service", "option"), [("repo", "platform_url"), ("tracker", "cloud_gateway")]
)
def test_further_address_does_not_receive_the_credentials_of_the_environment(
    service: str, option: str
) -> None:
    own = {"username": "u", "password": "p", "url": URL}
    other = {option: "https://other.example"}
    message = refused(service, environ(service, own), **other)
    assert "are not sent to https://other.example" in message
    assert f"next to its {option}" in message
    for variables in ({**own, **other}, {"username": "u", "password": "p"}):
        assert resolve(service, environ(service, variables), **other).has_credentials
    same = resolve(service, environ(service, own), **{option: "https://host.example:8443/x"})
    assert same.has_credentials
    assert resolve(service, environ(service, own), username="u", password="p", **other)


def test_incomplete_credential_of_task_is_not_completed_by_environment() -> None:
    variables = environ("repo", {"username": "u", "password": "p"})
    assert "username without password" in refused(environ=variables, username="v")
    assert "password without username" in refused(environ=variables, password="q")


def test_empty_variable_counts_as_unset() -> None:
    assert not resolve(environ=environ("repo", {"token": "", "username": ""})).has_credentials


def test_variables_of_other_services_are_ignored() -> None:
    assert not resolve("wiki", environ("tracker", {"token": "t"})).has_credentials


@pytest.mark.parametrize(
    ("service", "given"),
    [
        ("repo", {"token": "t", "username": "u", "password": "p"}),
        ("repo", {"api_key": "k", "token": "t"}),
        ("repo", {"api_key": "k", "password": "p", "username": "u"}),
        ("tracker", {**OAUTH, "token": "t"}),
        ("wiki", {**OAUTH, "username": "u", "password": "p"}),
        ("analysis", {"username": "u", "ltoken": "t", "ltoken_file": "/nowhere"}),
        ("analysis", {"username": "u", "ltoken": "t", "token_json": "{}"}),
    ],
)
@pytest.mark.parametrize("from_environment", [True, False])
def test_two_credentials_are_rejected(
    service: str, given: dict[str, Any], from_environment: bool
) -> None:
    if from_environment:
        message = refused(service, environ(service, given))
    else:
        message = refused(service, **given)
    assert "several login methods" in message


@pytest.mark.parametrize(
    ("service", "given", "words"),
    [
        ("repo", {"token": "t", "username": "u"}, "username cannot be combined with"),
        ("ci", {"username": "u"}, "username without password"),
        ("ci", {"password": "p"}, "password without username"),
        ("analysis", {"ltoken": "t"}, "ltoken is set without username"),
        (
            "tracker",
            {"oauth_consumer_key": "c"},
            "also requires oauth_private_key, oauth_access_token",
        ),
        ("tracker", {**OAUTH, "oauth_access_token": ""}, "also requires oauth_access_token"),
    ],
)
def test_incomplete_credential_is_rejected(service: str, given: dict[str, Any], words: str) -> None:
    assert words in refused(service, **given)


@pytest.mark.parametrize("kind", ["token", "api_key"])
@pytest.mark.parametrize("text", ["", "secret-x\n", "secret-x\r\nX: y", "a secret-x", "sécret-x"])
def test_credential_invalid_in_a_header_is_rejected_and_not_shown(kind: str, text: str) -> None:
    assert kind in refused("repo", None, **{kind: text})


def test_password_may_contain_any_character() -> None:
    connection = resolve(username="ü", password="ö\n")
    assert connection.password == Secret("ö\n")


# OAuth


def test_oauth_key_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text(PEM)
    connection = resolve("wiki", None, **{**OAUTH, "oauth_private_key": str(file)})
    assert connection.oauth is not None
    assert connection.oauth.private_key.reveal() == PEM
    assert connection.oauth.signature_method == "RSA-SHA1"


def test_oauth_key_that_is_neither_key_nor_file_is_rejected(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    assert "neither" in refused("wiki", None, **{**OAUTH, "oauth_private_key": missing})


def test_signature_method_is_not_a_credential() -> None:
    connection = resolve("wiki", environ("wiki", OAUTH), oauth_signature_method="RSA-SHA256")
    assert connection.oauth is not None
    assert connection.oauth.signature_method == "RSA-SHA256"


# A netrc file


@pytest.fixture
def netrc(tmp_path: Path) -> Path:
    file = tmp_path / "credentials"
    file.write_text(
        "machine other login o password x\nmachine host.example login me password p&ss\n"
    )
    return file


@pytest.mark.parametrize("service", ["repo", "tracker", "wiki", "ci"])
def test_named_netrc_file_is_read(service: str, netrc: Path) -> None:
    for connection in (
        resolve(service, credentials_file=str(netrc)),
        resolve(service, environ(service, {"credentials_file": str(netrc)})),
    ):
        assert (connection.username, connection.password) == ("me", Secret("p&ss"))


def test_netrc_file_is_read_only_without_other_credential(tmp_path: Path) -> None:
    connection = resolve(token="t", credentials_file=str(tmp_path / "missing"))
    assert held(connection) == {"token"}


def test_default_netrc_file_is_never_read(
    tmp_path: Path, netrc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc.rename(tmp_path / ".netrc")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert not resolve().has_credentials


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot read"),
        ("machine other login o password x\n", "no login and password for the machine host.exam"),
        ("machine host.example password only\n", "no login and password"),
        ("what is this\n", "not in netrc format (line 1)"),
        ("machine host.example login me password \udcff\n", "is not UTF-8 text"),
    ],
)
def test_netrc_file_without_usable_login_is_rejected(
    tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "credentials"
    if content is not None:
        file.write_text(content, encoding="utf-8", errors="surrogateescape")
    message = refused(credentials_file=str(file))
    assert words in message
    assert str(file) in message


def test_device_is_no_netrc_file() -> None:
    assert "cannot read the credentials file /dev/zero: it is a device" in refused(
        credentials_file="/dev/zero"
    )


# The other settings


def test_settings_reach_the_connection() -> None:
    connection = resolve(timeout=5, retries=0, dialect="jfrog", validate_certs=False)
    assert connection.settings["timeout"] == 5
    assert connection.settings["dialect"] == "jfrog"
    assert "url" not in connection.settings


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", float("inf")),
        ("timeout", 1e308),
        ("retries", 10**400),
        ("retry_max_wait", 1e308),
        ("timeout", float("nan")),
        ("retries", -1),
        ("retry_max_wait", -0.5),
        ("retry_max_wait", float("nan")),
    ],
)
def test_invalid_number_is_rejected(option: str, value: float) -> None:
    assert option in refused("repo", None, **{option: value})


def test_lowest_valid_numbers_are_accepted() -> None:
    settings = resolve(timeout=0.1, retries=0, retry_max_wait=0).settings
    assert (settings["timeout"], settings["retries"], settings["retry_max_wait"]) == (0.1, 0, 0)


@pytest.mark.parametrize("option", ["ca_path", "client_cert", "client_key"])
def test_unreadable_file_is_named(option: str, tmp_path: Path) -> None:
    message = refused("repo", None, **{option: str(tmp_path / "missing.pem")})
    assert option in message
    assert "missing.pem" in message


@pytest.mark.parametrize("service", SERVICES)
def test_argument_spec_marks_every_secret_no_log(service: str) -> None:
    spec = options.argument_spec(SERVICES[service])
    for name, option in spec.items():
        secret = name in {
            "password",
            "token",
            "api_key",
            "ltoken",
            "token_json",
            "oauth_private_key",
            "oauth_access_token",
            "oauth_access_token_secret",
            "oidc_token",
            "oauth2_client_secret",
        }
        assert option.get("no_log", False) is secret, name
        assert option.get("required") is None, name
    assert set(SERVICES[service].credentials) | set(settings_options(SERVICES[service])) == set(
        spec
    )


@pytest.mark.parametrize("service", SERVICES)
def test_only_settings_have_an_environment_fallback(service: str) -> None:
    spec = options.argument_spec(SERVICES[service])
    assert {name for name in spec if "fallback" in spec[name]} == set(
        settings_options(SERVICES[service])
    )
    assert spec["url"]["fallback"][1] == [f"TOOLCHAIN_{service.upper()}_URL"]


def test_empty_variable_of_a_setting_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    fallback, names = options.argument_spec(SERVICES["repo"])["timeout"]["fallback"]
    with pytest.raises(AnsibleFallbackNotFound):
        fallback(*names)
    monkeypatch.setenv("TOOLCHAIN_REPO_TIMEOUT", "")
    with pytest.raises(AnsibleFallbackNotFound):
        fallback(*names)
    monkeypatch.setenv("TOOLCHAIN_REPO_TIMEOUT", "5")
    assert fallback(*names) == "5"


def test_analysis_user_selects_line_of_token_file_in_environment(tmp_path: Path) -> None:
    file = tmp_path / "ltoken"
    file.write_text("host.example;8443;me;t1\nhost.example;8443;you;t2\n")
    variables = environ("analysis", {"ltoken_file": str(file)})
    connection = resolve("analysis", variables, username="you")
    assert (connection.username, connection.password) == ("you", Secret("t2"))


def test_connections_compare_by_credentials_and_settings() -> None:
    one, two = resolve(token="a"), resolve(token="b")
    assert len({one, two, resolve(token="a")}) == 2
    assert resolve(token="a", timeout=1) != one


# Descriptions of a login in messages


@pytest.mark.parametrize(
    ("service", "environment", "given", "login"),
    [
        ("repo", {}, {"token": "t-secret"}, "the token, from the task"),
        ("repo", {"token": "t-secret"}, {}, "the token, from the environment"),
        ("repo", {"token": "x"}, {"api_key": "k"}, "the API key, from the task"),
        ("repo", {"token": "t-secret"}, {"token": "t-secret"}, "the token, from the environment"),
        ("ci", {}, {"username": "u", "password": "p"}, "the password of the user u, from the task"),
        ("wiki", {}, {"url": "http://u:p@host"}, "the password of the user u, from the address"),
        ("tracker", {}, OAUTH, "an OAuth access token, from the task"),
        ("analysis", {}, {"username": "u", "ltoken": "t"}, "the ltoken of the user u, from the t"),
        ("analysis", {}, {"username": "u"}, "the name of the user u"),
        ("repo", {}, {}, ""),
    ],
)
def test_login_is_described(
    service: str, environment: dict[str, str], given: dict[str, Any], login: str
) -> None:
    found = resolve(service, environ(service, environment), **given).login
    assert found.startswith(login)
    assert bool(found) == bool(login)
    assert "secret" not in found


def test_login_of_file_is_described(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine host.example login u password p-secret\n")
    login = resolve(credentials_file=str(netrc)).login
    assert login == f"the password of the user u, from the credentials file {netrc}"
    tokens = tmp_path / "ltoken"
    tokens.write_text("host.example;8443;u;t-secret\n")
    login = resolve("analysis", ltoken_file=str(tokens)).login
    assert login == "the ltoken of the user u, from the token file"


@pytest.mark.parametrize(
    "given",
    [{"username": "u", "password": ""}, {"url": "https://u:@host"}, {"url": "http://u: @h"}],
)
def test_empty_password_is_rejected(given: dict[str, Any]) -> None:
    assert refused("ci", **given)


@pytest.mark.parametrize("method", ["RSA-SHA1", "RSA-SHA256", "RSA-SHA512"])
def test_rsa_signatures_need_no_token_secret(method: str) -> None:
    given = {**OAUTH, "oauth_signature_method": method}
    del given["oauth_access_token_secret"]
    found = resolve("wiki", **given).oauth
    assert found is not None
    assert found.access_token_secret.reveal() == ""


@pytest.mark.parametrize("option", ["ca_path", "client_cert", "credentials_file"])
def test_relative_file_is_reported_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {option: "missing"}
    assert f"{tmp_path}/missing" in refused(**given)


def test_relative_key_is_reported_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(tmp_path) in refused("wiki", **{**OAUTH, "oauth_private_key": "missing.pem"})
