# SPDX-License-Identifier: GPL-3.0-or-later
"""Remove secrets from the values of a build record, which many people can read [C8.3]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ...core.secret import (
    MASK,
    hidden,
    is_secret_name,
    mask_free_text,
    secrets_of_url,
    without_user_info,
)
from .publication import ENVIRONMENT

#: Names of variables that are usually left out [repo-29], such as `GIT_AUTH`, but not `AUTHOR`.
_SECRET_VARIABLE = re.compile(
    r"passw|pwd|psw|pass$|secret|token|credential|key|auth(?!or(?!i))", re.IGNORECASE
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
#: A user name without a password. A later `@` belongs to a mail address after the URL.
_USER_NAME = re.compile(r"(?<=://)[\w.%+~-]*@")
# At the start of a value, and not a word of a sentence. Not a reference to a variable, and not yet
# masked.
_BEARER = re.compile(
    r"""((?:^|[:='"])\s*bearer\s+)(?![$%{*]|[a-z]{1,15}[:,]?\s+[a-z]+)[^\s"',;]+""", re.IGNORECASE
)
#: A pair of a connection string, whose value may contain blanks.
_PAIR = re.compile(r"(?:^|(?<=;))([^=;]+)=(?!\s*[$%{*])[^;]+")
#: Minimum length of secrets that are searched for: shorter ones may occur in any value by chance.
_SHORTEST_SECRET = 6


class PublicValues:
    """Returns values without secrets.

    A value is left out if its name is secret or if it contains a secret of the task. Other secrets
    in a value are masked.
    """

    def __init__(self) -> None:
        self._secrets = [form for form in hidden.forms if len(form) >= _SHORTEST_SECRET]
        #: Places of the values that were left out or masked, such as `environment.DB_PASSWORD`.
        self.withheld: list[str] = []

    def variables(self, place: str, values: Mapping[str, str]) -> dict[str, str]:
        """Return environment variables without secrets."""
        return self._members(place, values, _is_secret_variable)

    def properties(self, place: str, value: Any) -> Any:
        """Return properties, a JSON value of any type, without secrets."""
        if isinstance(value, Mapping):
            name = value.get("key", value.get("name"))
            if "value" in value and isinstance(name, str) and is_secret_name(name):
                self.withheld.append(f"{place}.{name}")
                return {member: item for member, item in value.items() if member != "value"}
            return self._members(place, value, _is_secret_property)
        if isinstance(value, list):
            items = enumerate(value)
            return [self.properties(f"{place}[{number}]", item) for number, item in items]
        return self.text(place, value) if isinstance(value, str) else value

    def _members(
        self, place: str, values: Mapping[str, Any], is_secret: Callable[[str], bool]
    ) -> dict[str, Any]:
        found = {}
        for name, value in values.items():
            inside = f"{place}.{name}"
            if is_secret(str(name)) or (isinstance(value, str) and self._has_secret(value)):
                self.withheld.append(inside)
            else:
                found[name] = self.properties(inside, value)
        return found

    def _has_secret(self, text: str) -> bool:
        """Return whether a string contains a secret of the task."""
        return any(secret in text for secret in self._secrets)

    def text(self, place: str, text: str) -> str:
        """Return a string without user info in addresses, and with other secrets masked."""
        addresses = _ADDRESS.findall(text)
        public = _ADDRESS.sub(lambda found: _without_login(found[0]), text)
        masked = mask_free_text(_PAIR.sub(_masked_pair, _BEARER.sub(rf"\g<1>{MASK}", public)))
        for secret in self._secrets:
            masked = masked.replace(secret, MASK)
        if masked != public or any(map(_has_login, addresses)):
            self.withheld.append(place)
        return masked


def _without_login(address: str) -> str:
    return without_user_info(address) if _has_login(address) else _USER_NAME.sub("", address)


def _has_login(address: str) -> bool:
    """Return whether the user info of an address is secret, unlike `git@`."""
    return secrets_of_url(address) != secrets_of_url(without_user_info(address))


def _is_secret_property(name: str) -> bool:
    """Return whether a property is secret; a record stores variables among its properties."""
    is_variable = name.startswith(ENVIRONMENT)
    return is_secret_name(name) or (is_variable and _is_secret_variable(name[len(ENVIRONMENT) :]))


def _is_secret_variable(name: str) -> bool:
    return is_secret_name(name) or _SECRET_VARIABLE.search(name) is not None


def _masked_pair(found: re.Match[str]) -> str:
    is_secret = ";" in found.string and is_secret_name(found[1].rstrip())
    return f"{found[1]}={MASK}" if is_secret else found[0]
