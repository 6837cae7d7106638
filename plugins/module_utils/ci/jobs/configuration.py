# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the configuration of a job with an expected one, as XML.

Neither the order of attributes nor white space around texts nor the version of the plugin that an
element comes from makes a difference. Server facts [ci-14, ci-15]: secrets are encrypted anew each
time that a configuration is saved, and masked for accounts that may not configure the job, so that
they cannot be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...core.secret import MASK
from ..xml_reader import XmlElement, parse, shown

#: C({AQAAABAAAAAg...=}): a value that the server has encrypted.
_ENCRYPTED = re.compile(r"\{[A-Za-z0-9+/]{8,}={0,2}\}")
_SECRET_NAME = re.compile(
    r"(secret|password|passwd|token|passphrase|private_?key|secret_?key|api_?key)s?$",
    re.IGNORECASE,
)
_PLUGIN = "plugin"


@dataclass(frozen=True)
class ConfigurationDrift:
    """C(before) is the configuration of the server, C(after) the one that is expected; secrets are
    masked.
    """

    before: str
    after: str

    @property
    def found(self) -> bool:
        return self.before != self.after


def drift(live: str, expected: str) -> ConfigurationDrift:
    """Compare two configurations; C(UnreadableXml) if one of them is not readable."""
    return ConfigurationDrift(_comparable(live), _comparable(expected))


def secrets(text: str) -> list[str]:
    """The secret values in a configuration."""
    elements = parse(text).iterate()
    return [value for element, holder in elements for value in _secrets_of(element, holder)]


def _comparable(text: str) -> str:
    """The configuration in the one form in which it is compared and shown."""
    root = parse(text)
    for element, holder in list(root.iterate()):
        for secret in _secrets_of(element, holder):
            element.text = element.text.replace(secret, MASK)
    for element, _holder in root.iterate():
        element.attributes.pop(_PLUGIN, None)
        element.text = element.text.replace("\r\n", "\n").strip()
    return shown(root)


def _secrets_of(element: XmlElement, holder: XmlElement | None) -> Iterator[str]:
    """The secret parts of an element's own text: what is encrypted, or all of it by its name."""
    text = element.text.strip()
    of_password = holder is not None and "Password" in holder.name.rpartition(".")[2]
    by_name = _SECRET_NAME.search(element.name.rpartition(".")[2]) is not None
    if text and not element.children and (by_name or (of_password and "Value" in element.name)):
        yield text
    else:
        yield from _ENCRYPTED.findall(text)
