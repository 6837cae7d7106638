# SPDX-License-Identifier: GPL-3.0-or-later
"""Read connection options from variables such as `toolchain_repo_url` [C1.1]."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.options import (
    credential_options,
    is_credential,
    variable_name,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.own_server import (
    require_own_server,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.settings import (
    settings_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import (
    without_user_info,
)

_ALIASES = {"user": "username"}


def from_variables(
    service: str,
    explicit: Mapping[str, Any],
    variables: Mapping[str, Any],
    template: Callable[[Any], Any],
) -> dict[str, Any]:
    """Return the connection options from variables that `explicit` does not contain.

    If `explicit` contains a credential, also in its address, all credentials in variables are
    ignored. Empty variables count as unset. Raises `invalid` if `explicit` has the address of
    another server than the variables with the credentials.

    :param explicit: options of the task or lookup
    :param template: evaluates templates
    """
    named = {_ALIASES.get(name, name) for name, value in explicit.items() if value is not None}

    def values(options: tuple[str, ...]) -> dict[str, Any]:
        found = {
            option: template(variables[variable_name(service, option)])
            for option in options
            if option not in named and variables.get(variable_name(service, option)) is not None
        }
        # ansible-core before 2.19 has parsed the result of a template that looks like JSON
        for option, value in found.items():
            found[option] = json.dumps(value) if isinstance(value, Mapping) else value
        unset = (None, "", variables.get("omit"))
        return {option: value for option, value in found.items() if value not in unset}

    options = values(tuple(settings_options(service)))
    credentials = named.intersection(credential_options(service))
    if is_credential(service, credentials) or _has_user_info(explicit.get("url")):
        if "url" in options:
            options["url"] = without_user_info(str(options["url"]))
        return options
    found = values(credential_options(service))
    if is_credential(service, found) and explicit.get("url"):
        name = variable_name(service, "url")
        require_own_server("variables", name, template(variables.get(name)), str(explicit["url"]))
    return {**options, **found}


def _has_user_info(url: Any) -> bool:
    try:
        return url is not None and urlsplit(str(url)).username is not None
    except ValueError:
        return False  # the parser of the connection rejects the address
