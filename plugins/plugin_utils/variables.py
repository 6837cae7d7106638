# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections by variables C(toolchain_<service>_<option>): group_vars of production and staging,
the same for modules and lookups [C1.1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.delivery.toolchain.plugins.module_utils.core.connection.options import (
    credential_options,
    is_credential,
    settings_options,
    variable_name,
)
from ansible_collections.delivery.toolchain.plugins.module_utils.core.secret import (
    without_user_info,
)

_ALIASES = {"user": "username"}


def from_variables(
    service: str,
    given: Mapping[str, Any],
    variables: Mapping[str, Any],
    template: Callable[[Any], Any],
) -> dict[str, Any]:
    """The connection options that C(given) leaves open and a variable names.

    Credentials count as a whole: where C(given) names one, by its address, too, no variable is
    asked for another, and one in the address of a variable is dropped. An empty variable is not
    set.
    """
    named = {_ALIASES.get(name, name) for name, value in given.items() if value is not None}

    def values(options: tuple[str, ...]) -> dict[str, Any]:
        found = {
            option: template(variables[variable_name(service, option)])
            for option in options
            if option not in named and variables.get(variable_name(service, option)) is not None
        }
        unset = (None, "", variables.get("omit"))
        return {option: value for option, value in found.items() if value not in unset}

    options = values(tuple(settings_options(service)))
    credentials = named.intersection(credential_options(service))
    if is_credential(service, credentials) or _has_user_info(given.get("url")):
        if "url" in options:
            options["url"] = without_user_info(str(options["url"]))
        return options
    return {**options, **values(credential_options(service))}


def _has_user_info(url: Any) -> bool:
    try:
        return url is not None and urlsplit(str(url)).username is not None
    except ValueError:
        return False  # whoever reads the address says what is wrong with it
