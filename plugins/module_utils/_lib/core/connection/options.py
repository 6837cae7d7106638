# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options, shared by modules and lookups [C1.2]."""

from __future__ import annotations

import codecs
import netrc
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ansible.module_utils.errors import AnsibleFallbackNotFound

from .. import json_text
from ..address import require_address
from ..errors import invalid, listed
from ..files import open_regular
from ..secret import Secret, clean_url
from . import connection, exchanges
from .connection import GATEWAY, TOKENS, Connection, OAuth, is_other_server, require_own_server
from .exchanges import secret_of

_SETTINGS: dict[str, dict[str, Any]] = {
    "url": {"type": "str", "empty": True, "whole": True},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path", "no_log": False},
    "timeout": {"type": "float", "default": 30},
    "retries": {"type": "int", "default": 3},
    "retry_max_wait": {"type": "float", "default": 60},
}
_CLOUD: dict[str, dict[str, Any]] = {
    "cloud_id": {"type": "str"},
    "cloud_gateway": {"type": "str", "default": GATEWAY},
    "oauth2_url": {"type": "str", "default": TOKENS},
}
_SERVICE_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "repo": {
        "dialect": {"type": "str", "choices": ["auto", "generic", "jfrog"], "default": "auto"},
        "vendor": {"type": "str", "default": "Vendor"},
        "platform_url": {"type": "str"},
    },
    "tracker": {
        "dialect": {"type": "str", "choices": ["auto", "server", "cloud"], "default": "auto"},
        "accept_language": {"type": "str"},
        **_CLOUD,
    },
    "wiki": {
        "dialect": {
            "type": "str",
            "choices": ["auto", "server", "cloud_v1", "cloud_v2"],
            "default": "auto",
        },
        **_CLOUD,
    },
}


#: By service, or option with a further address: the end of an address that people copy from the
#: documentation of the interface, which requests append to the base address.
_INTERFACE_PATHS = {
    "repo": re.compile(r"(?<=/artifactory)/api(/.*)?$"),
    "tracker": re.compile(r"/rest(/(api|auth)(/.*)?)?$"),
    "wiki": re.compile(r"/rest(/api(/.*)?)?$|(?<=/wiki)/api/v2(/.*)?$"),
    "ci": re.compile(r"/api/(json|xml|python)$"),
    "analysis": re.compile(r"/review/api$"),
    "platform_url": re.compile(r"/access(/api(/.*)?)?$"),
    "cloud_gateway": re.compile(r"/ex/(jira|confluence)(/.*)?$"),
    "oauth2_url": re.compile(r"/oauth/token$"),
}

#: Maximum of a duration in seconds: the timeout of a socket is at most 2^31 milliseconds.
_LONGEST = 2_000_000
#: Maximum number of hosts of a token file in a message.
_MAX_NAMED = 5


def settings_options(service: str) -> dict[str, dict[str, Any]]:
    """Return the options that are not credentials, as an argument spec without fallbacks."""
    return {**_SETTINGS, **_SERVICE_SETTINGS.get(service, {})}


def check_settings(service: str, settings: Mapping[str, Any]) -> None:
    """Raise `invalid` for an unreadable certificate or key file, or a number out of range."""
    _check_files(service, settings)
    _check_numbers(service, settings)


def _check_files(service: str, settings: Mapping[str, Any]) -> None:
    for name in ("ca_path", "client_cert", "client_key"):
        file = settings.get(name)
        if file is not None and not os.access(file, os.R_OK):
            absolute = os.path.abspath(file)
            why = "cannot be read" if os.path.exists(file) else "does not exist"
            raise invalid(f"{name} of the {service} service: {absolute} {why}")


def _check_numbers(service: str, settings: Mapping[str, Any]) -> None:
    timeout = settings.get("timeout")
    if timeout is not None and not 0 < timeout <= _LONGEST:
        raise invalid(
            f"timeout of the {service} service is {timeout:g}, but must be more than 0 and at most"
            f" {_LONGEST:,} seconds"
        )
    for name in ("retries", "retry_max_wait"):
        value = settings.get(name)
        if value is not None and not 0 <= value <= _LONGEST:
            raise invalid(f"{name} of the {service} service must be from 0 to {_LONGEST:,}")


_DEFAULT_PORTS = {"http": 80, "https": 443}
_PRINT = "kwauth --print-auth-info"
# Releases from 2024.3 on write the file only on request.
_HELP = (
    "log in with kwauth; releases from 2024.3 on do not write this file: set token_json to the"
    f" output of '{_PRINT}', or set username and ltoken"
)


def login_of_token_file(url: str, user: str | None, path: str | None) -> tuple[str, str | None]:
    """Return user and token for the server at `url`.

    The token is `None` if the default file has no line for the server and `user` is given, because
    a server without access control accepts any user without a token.

    :param path: token file, which must have a line for the server; `None` means the default file:
        `KLOCWORK_LTOKEN`, else `~/.klocwork/ltoken`
    """
    named = path or os.environ.get("KLOCWORK_LTOKEN") or "~/.klocwork/ltoken"
    file = Path(os.path.abspath(os.path.expanduser(named)))
    found, problem = _logins(file, url, user)
    if len(found) == 1:
        return found.pop()
    if not found and path is None and user is not None:
        return user, None
    raise invalid(f"the token file {file} {problem}")


def login_of_auth_info(output: str, user: str | None) -> tuple[str, str]:
    """Return user and ltoken from the output of `kwauth --print-auth-info`.

    The names of the JSON members are not documented, so both names that are known for each value
    are accepted [analysis-3].
    """
    try:
        found = json_text.loads(output)
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise invalid(f"token_json is not a JSON object: set it to the output of '{_PRINT}'")
    name = found.get("user") or found.get("username")
    token = found.get("ltoken") or found.get("token")
    if not all(isinstance(value, str) and value.strip() for value in (name, token)):
        raise invalid(
            f"token_json has no user and token: set it to the complete output of '{_PRINT}' (an"
            " application token cannot log in to the Web API)"
        )
    if user is not None and user != name:
        raise invalid(f"username is {user}, but token_json has the token of {name}: omit username")
    return str(name), str(token)


def _logins(file: Path, url: str, user: str | None) -> tuple[set[tuple[str, str]], str]:
    """Return the pairs of user and token for a server in a token file, and an error message.

    The message applies unless there is exactly one pair.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", str(parts.port or _DEFAULT_PORTS.get(parts.scheme, 80))
    try:
        with open(file, "rb", opener=open_regular) as stream:
            lines = list(_lines(_decoded(stream.read())))
    except OSError as error:
        return set(), f"cannot be read ({error.strerror}): {_HELP}"
    found = {
        (line[2], line[3])
        for line in lines
        if (line[0].lower(), line[1]) == (host, port) and user in (None, line[2])
    }
    if found:
        return found, f"has {len(found)} lines for {host}, port {port}: set username to select one"
    whose = f" and user {user}" if user is not None else ""
    known = sorted({f"{line[0].lower()}:{line[1]}" for line in lines})
    others = f" (it has {listed(known, _MAX_NAMED)})" if known else ""
    return found, f"has no line for {host}, port {port}{whose}{others}: {_HELP}"


def _decoded(data: bytes) -> str:
    """Decode a token file, which `kwauth` writes in the character set of its machine.

    Latin-1 is the fallback: only user names may contain characters outside ASCII.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _lines(text: str) -> Iterator[tuple[str, str, str, str]]:
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(";")]
        if len(parts) == 4 and all(parts):
            yield parts[0], parts[1], parts[2], parts[3]


SERVICES = ("repo", "tracker", "wiki", "ci", "analysis")

_OAUTH = (
    "oauth_consumer_key",
    "oauth_private_key",
    "oauth_access_token",
    "oauth_access_token_secret",
    "oauth_signature_method",
)
_OIDC = (
    "oidc_provider",
    "oidc_token",
    "oidc_token_file",
    "oidc_project_key",
    "oidc_identity_mapping_name",
)
_OAUTH2 = ("oauth2_client_id", "oauth2_client_secret")
_CREDENTIALS: dict[str, tuple[str, ...]] = {
    "repo": ("username", "password", "token", "api_key", "credentials_file", *_OIDC),
    "tracker": ("username", "password", "token", "credentials_file", *_OAUTH, *_OAUTH2),
    "wiki": ("username", "password", "token", "credentials_file", *_OAUTH, *_OAUTH2),
    "ci": ("username", "password", "credentials_file"),
    "analysis": ("username", "ltoken", "ltoken_file", "token_json"),
}
_SECRET_OPTIONS = (
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
)
#: Options that Ansible would take for secrets because of their names.
_OPEN_OPTIONS = (
    "ltoken_file",
    "oauth_consumer_key",
    "oauth_signature_method",
    "oidc_token_file",
    "oidc_project_key",
)
#: Further addresses to which the login is sent.
_BASES = {"platform_url", "cloud_gateway", "oauth2_url"}
_PATH_OPTIONS = (
    "credentials_file",
    "ltoken_file",
    "oidc_token_file",
    "ca_path",
    "client_cert",
    "client_key",
)


def environment_name(service: str, option: str) -> str:
    """Return the environment variable of a connection option, for example `TOOLCHAIN_REPO_URL`."""
    return f"TOOLCHAIN_{service.upper()}_{option.upper()}"


def variable_name(service: str, option: str) -> str:
    """Return the Ansible variable of a connection option, for example `toolchain_repo_url`."""
    return f"toolchain_{service}_{option}"


def credential_options(service: str) -> tuple[str, ...]:
    """Return the names of the credential options.

    Their environment variables are ignored if the task sets any of these options.
    """
    return _CREDENTIALS[service]


def _environment_fallback(name: str) -> str:
    """Return the value of an environment variable, as a `fallback` function of Ansible.

    An empty variable counts as unset, because AWX credentials set unused fields to "".
    """
    value = os.environ.get(name)
    if not value:
        raise AnsibleFallbackNotFound
    return value


def argument_spec(service: str) -> dict[str, dict[str, Any]]:
    """Return the connection options of a service as an argument spec."""
    spec: dict[str, dict[str, Any]] = {}
    for name, option in settings_options(service).items():
        spec[name] = {
            **option,
            "fallback": (_environment_fallback, [environment_name(service, name)]),
        }
    for name in credential_options(service):
        spec[name] = {"type": "path" if name in _PATH_OPTIONS else "str"}
        if name in _SECRET_OPTIONS:
            spec[name]["no_log"] = True
        elif name in _OPEN_OPTIONS:
            spec[name]["no_log"] = False
    spec["username"]["aliases"] = ["user"]
    if "token_json" in spec:
        spec["token_json"]["values"] = "json"
    if "oauth_signature_method" in spec:
        spec["oauth_signature_method"]["choices"] = ["RSA-SHA1", "RSA-SHA256", "RSA-SHA512"]
    return spec


def resolve(
    service: str, get: Callable[[str], Any], environ: Mapping[str, str] | None = None
) -> Connection:
    """Build the connection from options and environment.

    Raises `invalid` if the address is missing or invalid, if credentials are incomplete or of
    several kinds, if the credentials file has no entry for the host, or if the credentials in the
    environment belong to another server.

    :param get: returns the value of an option, or `None`
    :param environ: environment variables, by default those of the process
    """
    env = os.environ if environ is None else environ
    address, user, secret = _address(service, get("url"))
    url_is_named = bool(get("url")) and get("url") != env.get(environment_name(service, "url"))
    named = {name: get(name) for name in _CREDENTIALS[service] if get(name) is not None}
    source = "the task, its group defaults or variables"
    if user is not None and (url_is_named or not named):
        source = "the address" if not named else source
        _add_user_info(service, named, user, secret)
    own, from_env = environment_name(service, "url"), _credentials_in(env, service)
    if not is_credential(service, named):
        if is_credential(service, from_env):
            require_own_server("the environment", own, env.get(own), address)
            _require_own_bases(service, get, env)
        named = {**from_env, **named}
    if named and named.items() <= from_env.items():
        source = "the environment"
    settings = _settings(service, get, address)
    login = _login(service, address, named, settings)
    described = _describe_login(login, named, source)
    return Connection(
        service=service,
        url=address,
        settings=settings,
        login=described,
        other_server=is_other_server(env.get(own), address),
        **login,
    )


def _credentials_in(env: Mapping[str, str], service: str) -> dict[str, str]:
    names = {option: environment_name(service, option) for option in _CREDENTIALS[service]}
    return {option: env[name] for option, name in names.items() if env.get(name)}


def _settings(service: str, get: Callable[[str], Any], address: str) -> dict[str, Any]:
    """Return the options that are not credentials. Raises `invalid` for invalid values."""
    settings = {name: get(name) for name in settings_options(service) if name != "url"}
    check_settings(service, settings)
    _normalize_bases(settings)
    connection.check(service, address, settings)
    return settings


def _describe_login(login: Mapping[str, Any], named: Mapping[str, Any], source: str) -> str:
    """Describe the credentials and their source, such as "the token, from the environment".

    Returns "" without credentials.
    """
    kinds = {"token": "the token", "api_key": "the API key", "oauth": "an OAuth access token"}
    kinds |= {"password": "the password", "ltoken": "the ltoken"}
    kinds |= {"exchange": "an access token of a short-lived login"}
    credential = next((words for kind, words in kinds.items() if login.get(kind) is not None), "")
    who = f" of the user {login['username']}" if login.get("username") else ""
    if not credential:
        return f"the name{who}" if who else ""
    if login.get("ltoken") is not None and not {"ltoken", "token_json"} & set(named):
        source = "the token file"
    elif login.get("password") is not None and named.get("password") is None:
        source = f"the credentials file {named['credentials_file']}"
    return f"{credential}{who}, from {source}"


def _require_own_bases(service: str, get: Callable[[str], Any], env: Mapping[str, str]) -> None:
    """Raise `invalid` if one of `_BASES` is another server than that of the environment."""
    own, known = environment_name(service, "url"), settings_options(service)
    for option in known.keys() & _BASES:
        mine = (None, known[option].get("default"), env.get(environment_name(service, option)))
        if (base := get(option)) not in mine:
            require_own_server("the environment", own, env.get(own), str(base), option)


def _normalize_bases(settings: dict[str, Any]) -> None:
    """Normalize the further addresses. Raises `invalid` if one of them is not a base address."""
    for name in sorted(name for name in _BASES if settings.get(name) is not None):
        clean, user, _secret = _base_address(str(settings[name]), name, f"of {name}")
        if user is not None:
            message = "must not have user info: the login of url is used"
            raise invalid(f"the address {clean} of {name} {message}")
        settings[name] = clean


def is_credential(service: str, named: Collection[str]) -> bool:
    """Return whether the named options contain a credential.

    A user name alone is no credential for the analysis server: it selects a line of the token file.
    """
    return bool(
        set(named) - ({"username"} if service == "analysis" else set()) - {"oauth_signature_method"}
    )


def _address(service: str, url: Any) -> tuple[str, str | None, str | None]:
    """Return the base address without user info and trailing slash, and its decoded user and
    password.
    """
    if not url:
        raise invalid(
            f"the address of the {service} service is missing: set the option url, the variable"
            f" {variable_name(service, 'url')} or {environment_name(service, 'url')}"
        )
    return _base_address(str(url), service, f"of the {service} service")


def _base_address(url: str, kind: str, where: str) -> tuple[str, str | None, str | None]:
    require_address(url, where)
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.query or parts.fragment:
        raise invalid(f"the address {clean_url(url)} {where} must not have a query or a fragment")
    netloc = f"[{host}]" if ":" in host else host
    netloc = netloc if port is None else f"{netloc}:{port}"
    path = _INTERFACE_PATHS[kind].sub("", parts.path.rstrip("/")).rstrip("/")
    clean = urlunsplit((parts.scheme, netloc, path, "", ""))
    username = unquote(parts.username) if parts.username else None
    return clean, username, unquote(parts.password) if parts.password is not None else None


def _add_user_info(service: str, named: dict[str, Any], user: str, secret: str | None) -> None:
    secret_option = "ltoken" if service == "analysis" else "password"
    for name, value in (("username", user), (secret_option, secret)):
        if value is not None and named.setdefault(name, value) != value:
            raise invalid(
                f"the {name} in the address of the {service} service differs from the option"
                f" {name}: set only one of them"
            )


def _login(
    service: str, url: str, named: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the login fields of a connection.

    Raises `invalid` unless the options are a complete credential of a single kind.
    """
    kinds = _kinds(named)
    if len(kinds) > 1:
        raise invalid(
            f"the {service} service has several login methods ({', '.join(sorted(kinds))}): set"
            " only one"
        )
    if service == "analysis":
        return _analysis_login(url, named)
    kind = next(iter(kinds), "")
    if kind in ("token", "api_key", *exchanges.KINDS) and "username" in named:
        raise invalid(f"username cannot be combined with {kind}: omit one of them")
    if kind in exchanges.KINDS:
        return {"exchange": exchanges.KINDS[kind](service, url, named, settings)}
    if kind == "oauth":
        return {"oauth": _oauth(service, named)}
    if kind in ("token", "api_key"):
        return {kind: secret_of(service, kind, str(named[kind]))}
    if "username" in named or "password" in named:
        return _basic(service, named)
    if "credentials_file" in named:
        return _netrc(service, url, str(named["credentials_file"]))
    return {}


def _kinds(named: Mapping[str, Any]) -> set[str]:
    single = ("password", "token", "api_key", "ltoken", "ltoken_file", "token_json")
    kinds = {name for name in single if name in named}
    groups = {"oauth": _OAUTH[:4], "oidc_provider": _OIDC, "oauth2_client_id": _OAUTH2}
    return kinds | {kind for kind, names in groups.items() if not set(names).isdisjoint(named)}


def _basic(service: str, named: Mapping[str, Any]) -> dict[str, Any]:
    for missing, known in (("username", "password"), ("password", "username")):
        if named.get(missing) is None:
            raise invalid(
                f"{known} without {missing} for the {service} service: set both in the same place"
                " (the environment is only read if the task has no credential)"
            )
    if not str(named["password"]).strip():
        raise invalid(
            f"the password for the {service} service is empty: set it, or omit the option"
        )
    return {"username": str(named["username"]), "password": Secret(str(named["password"]))}


def _oauth(service: str, named: Mapping[str, Any]) -> OAuth:
    missing = [name for name in _OAUTH[:3] if not named.get(name)]
    if missing:
        raise invalid(f"OAuth for the {service} service also requires {', '.join(missing)}")
    key = str(named["oauth_private_key"])
    if "-----BEGIN" not in key:
        try:
            with open(os.path.expanduser(key), encoding="ascii", opener=open_regular) as file:
                key = file.read()
        except (OSError, ValueError):
            where = "" if os.path.isabs(key) else f" (searched in {os.getcwd()})"
            raise invalid(
                f"oauth_private_key is neither a PEM string nor a readable PEM file{where}"
            ) from None
    return OAuth(
        str(named["oauth_consumer_key"]),
        Secret(key),
        Secret(str(named["oauth_access_token"])),
        # optional, because RSA signatures do not use the token secret
        Secret(str(named.get("oauth_access_token_secret") or "")),
        str(named.get("oauth_signature_method") or "RSA-SHA1"),
    )


def _netrc(service: str, url: str, path: str) -> dict[str, Any]:
    host = urlsplit(url).hostname or ""
    path = os.path.abspath(os.path.expanduser(path))
    try:
        with open(path, opener=open_regular):
            entry = netrc.netrc(path).authenticators(host)
    except OSError as error:
        raise invalid(f"cannot read the credentials file {path}: {error.strerror}") from None
    except netrc.NetrcParseError as error:
        raise invalid(
            f"the credentials file {path} is not in netrc format (line {error.lineno})"
        ) from None
    except UnicodeDecodeError:
        raise invalid(f"the credentials file {path} is not UTF-8 text") from None
    if entry is None or not entry[0] or not entry[2]:
        raise invalid(
            f"the credentials file {path} has no login and password for the machine {host}"
            f" of the {service} service"
        )
    return {"username": entry[0], "password": Secret(entry[2])}


def _analysis_login(url: str, named: Mapping[str, Any]) -> dict[str, Any]:
    user = named.get("username")
    if named.get("ltoken") is not None:
        if not user:
            raise invalid("ltoken is set without username: the analysis server requires both")
        return {"username": str(user), "ltoken": Secret(str(named["ltoken"]))}
    if named.get("token_json") is not None:
        found = login_of_auth_info(str(named["token_json"]), user)
        return {"username": found[0], "ltoken": Secret(found[1])}
    login = login_of_token_file(url, user, named.get("ltoken_file"))
    return {"username": login[0], "ltoken": Secret(login[1]) if login[1] is not None else None}
