# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection options, shared by modules and lookups [C1.2]."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from ansible.module_utils.errors import AnsibleFallbackNotFound

from ..address import require_address
from ..errors import invalid
from ..secret import clean_url
from .connection import Connection, is_other_server, require_own_server
from .service import Service, Spec

_SETTINGS: dict[str, Spec] = {
    "url": {"type": "str", "empty": True, "whole": True},
    "validate_certs": {"type": "bool", "default": True},
    "ca_path": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path", "no_log": False},
    "timeout": {"type": "float", "default": 30},
    "retries": {"type": "int", "default": 3},
    "retry_max_wait": {"type": "float", "default": 60},
}
#: Maximum of a duration in seconds: the timeout of a socket is at most 2^31 milliseconds.
_LONGEST = 2_000_000


def settings_options(service: Service) -> dict[str, Spec]:
    """Return the options that are not credentials, as an argument spec without fallbacks."""
    return {**_SETTINGS, **service.settings}


def environment_name(service: str, option: str) -> str:
    """Return the environment variable of a connection option, for example `TOOLCHAIN_REPO_URL`."""
    return f"TOOLCHAIN_{service.upper()}_{option.upper()}"


def variable_name(service: str, option: str) -> str:
    """Return the Ansible variable of a connection option, for example `toolchain_repo_url`."""
    return f"toolchain_{service}_{option}"


def _environment_fallback(name: str) -> str:
    """Return the value of an environment variable, as a `fallback` function of Ansible.

    An empty variable counts as unset, because AWX credentials set unused fields to "".
    """
    value = os.environ.get(name)
    if not value:
        raise AnsibleFallbackNotFound
    return value


def argument_spec(service: Service) -> dict[str, Spec]:
    """Return the connection options of a service as an argument spec."""
    spec: dict[str, Spec] = {}
    for name, option in settings_options(service).items():
        variable = environment_name(service.name, name)
        spec[name] = {**option, "fallback": (_environment_fallback, [variable])}
    return {**spec, **{name: dict(option) for name, option in service.credentials.items()}}


def resolve(
    service: Service, get: Callable[[str], Any], environ: Mapping[str, str] | None = None
) -> Connection:
    """Build the connection from options and environment.

    Raises `invalid` if the address is missing or invalid, if credentials are incomplete or of
    several kinds, if the credentials file has no entry for the host, or if the credentials in the
    environment belong to another server.

    :param get: returns the value of an option, or `None`
    :param environ: environment variables, by default those of the process
    """
    env = os.environ if environ is None else environ
    own, url = environment_name(service.name, "url"), get("url")
    if not url:
        raise invalid(
            f"the address of the {service.name} service is missing: set the option url, the"
            f" variable {variable_name(service.name, 'url')} or {own}"
        )
    address, user, secret = _base_address(service, str(url))
    named = {name: get(name) for name in service.credentials if get(name) is not None}
    source = "the task, its group defaults or variables"
    if user is not None and (url != env.get(own) or not named):
        source = "the address" if not named else source
        _add_user_info(service, named, user, secret)
    variables = {option: environment_name(service.name, option) for option in service.credentials}
    from_env = {option: env[name] for option, name in variables.items() if env.get(name)}
    if not service.is_credential(named):
        if service.is_credential(from_env):
            require_own_server("the environment", own, env.get(own), address)
            for option in service.bases:
                default = service.settings[option].get("default")
                base, variable = get(option), environment_name(service.name, option)
                if base not in (None, default, env.get(variable)):
                    require_own_server("the environment", own, env.get(own), str(base), option)
        named = {**from_env, **named}
    if named and named.items() <= from_env.items():
        source = "the environment"
    settings = _settings(service, get, address)
    kinds = [kind for kind, names in service.kinds.items() if not named.keys().isdisjoint(names)]
    if len(kinds) > 1:
        raise invalid(
            f"the {service.name} service has several login methods ({', '.join(sorted(kinds))}):"
            " set only one"
        )
    credential = service.credential(next(iter(kinds), ""), address, named, settings)
    who = credential.fields.get("username")
    name = f" of the user {who}" if who else ""
    described = f"{credential.words}{name}, from {credential.source or source}"
    if not credential.words:
        described = f"the name{name}" if name else ""
    return Connection(
        service=service,
        url=address,
        settings=settings,
        login=described,
        other_server=is_other_server(env.get(own), address),
        **credential.fields,
    )


def _settings(service: Service, get: Callable[[str], Any], address: str) -> dict[str, Any]:
    """Return the options that are not credentials. Raises `invalid` for invalid values."""
    settings = {name: get(name) for name in settings_options(service) if name != "url"}
    for name in ("ca_path", "client_cert", "client_key"):
        file = settings.get(name)
        if file is not None and not os.access(file, os.R_OK):
            absolute = os.path.abspath(file)
            why = "cannot be read" if os.path.exists(file) else "does not exist"
            raise invalid(f"{name} of the {service.name} service: {absolute} {why}")
    timeout = settings.get("timeout")
    if timeout is not None and not 0 < timeout <= _LONGEST:
        raise invalid(
            f"timeout of the {service.name} service is {timeout:g}, but must be more than 0 and at"
            f" most {_LONGEST:,} seconds"
        )
    for name in ("retries", "retry_max_wait"):
        value = settings.get(name)
        if value is not None and not 0 <= value <= _LONGEST:
            raise invalid(f"{name} of the {service.name} service must be from 0 to {_LONGEST:,}")
    for name in sorted(name for name in service.bases if settings.get(name) is not None):
        settings[name], user, _secret = _base_address(service, str(settings[name]), name)
        if user is not None:
            message = "must not have user info: the login of url is used"
            raise invalid(f"the address {settings[name]} of {name} {message}")
    service.check(address, settings)
    return settings


def _base_address(
    service: Service, url: str, option: str = ""
) -> tuple[str, str | None, str | None]:
    """Return a base address without user info and trailing slash, and its decoded user and
    password. Raises `invalid` if it is none.

    :param option: option with the further address; empty for `url`
    """
    where = f"of {option}" if option else f"of the {service.name} service"
    require_address(url, where)
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port
    if parts.query or parts.fragment:
        raise invalid(f"the address {clean_url(url)} {where} must not have a query or a fragment")
    netloc = f"[{host}]" if ":" in host else host
    netloc = netloc if port is None else f"{netloc}:{port}"
    end = service.bases[option] if option else service.interface_path
    path = end.sub("", parts.path.rstrip("/")).rstrip("/")
    clean = urlunsplit((parts.scheme, netloc, path, "", ""))
    username = unquote(parts.username) if parts.username else None
    return clean, username, unquote(parts.password) if parts.password is not None else None


def _add_user_info(service: Service, named: dict[str, Any], user: str, secret: str | None) -> None:
    for name, value in (("username", user), (service.address_secret, secret)):
        if value is not None and named.setdefault(name, value) != value:
            raise invalid(
                f"the {name} in the address of the {service.name} service differs from the option"
                f" {name}: set only one of them"
            )
