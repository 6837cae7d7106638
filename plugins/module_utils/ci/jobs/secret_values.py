# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize the secrets in XML of the CI server.

Server fact [ci-15]: the class of an element decides whether the server encrypts a value. Its name
does not: `injectGlobalPasswords` is a boolean, and the `token` of some triggers is stored as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...core.secret import MASK, is_secret_name
from ..xml_reader import XmlElement

#: Stands for the text of an element where a name of an attribute is expected.
TEXT = ""
#: Placeholder for a secret in an exported configuration.
KEPT = "(kept by the server)"
#: Minimum length of a secret that is masked everywhere. A shorter one may occur in other words.
SHORTEST = 6
#: Value that the server has encrypted. It begins with a version and the length of a vector.
_ENCRYPTED = re.compile(r"\{AQAA[A-Za-z0-9+/]{8,}={0,2}\}")
#: What the server shows instead of an encrypted value to accounts without permission [ci-14].
_HIDDEN = "*" * 8
_STARS = re.compile(r"\*{4,}")
#: Booleans, numbers, enumerations and references to variables, which are no secrets.
_NO_SECRET = re.compile(r"true|false|[+-]?\d+(\.\d+)?|[A-Z]+(_[A-Z]+)*|\$\w+|[$#]\{[^{}]*\}|%\w+%")
# Server fact [ci-15]: members that these classes encrypt. The packages are left out, because an
# alias may replace them.
_ENCRYPTED_MEMBERS = {
    "PasswordParameterDefinition": ("defaultValue",),
    "EnvInjectPasswordEntry": ("value",),
    "GitLabPushTrigger": ("secretToken",),
    "GogsProjectProperty": ("gogsSecret",),
    "BapSshCredentials": ("secretPassphrase",),
    "varPasswordPair": ("password",),
    "VarPasswordPair": ("password",),
    "StringCredentialsImpl": ("secret",),
    "UsernamePasswordCredentialsImpl": ("password",),
    "BasicSSHUserPrivateKey": ("passphrase",),
    "DirectEntryPrivateKeySource": ("privateKey",),
    "CertificateCredentialsImpl": ("password",),
    "UploadedKeyStoreSource": ("uploadedKeystoreBytes",),
    "FileCredentialsImpl": ("secretBytes",),
}
_OF_CLASS = frozenset(
    (cls, member) for cls, members in _ENCRYPTED_MEMBERS.items() for member in members
)


class XmlValue(NamedTuple):
    """Text of an element or value of an attribute.

    :param name: name of the element or attribute
    :param holder: class of the object that has this member
    """

    text: str
    name: str
    holder: str

    @property
    def is_encrypted(self) -> bool:
        """Return whether the whole value is encrypted, or hidden because it is."""
        text = self.text.strip()
        return _ENCRYPTED.fullmatch(text) is not None or text == _HIDDEN

    @property
    def is_of_encrypted_kind(self) -> bool:
        """Return whether the server encrypts the whole value."""
        known = (self.holder, self.name) in _OF_CLASS or self.name == "hudson.util.Secret"
        return self.text.strip() not in ("", KEPT) and (known or self.is_encrypted)

    @property
    def may_be_secret(self) -> bool:
        """Return whether the whole value is a secret by its kind or its name."""
        text = self.text.strip()
        by_name = is_secret_name(self.name.rpartition(".")[2])
        is_other = text in ("", KEPT) or _NO_SECRET.fullmatch(text) is not None
        return self.is_of_encrypted_kind or (by_name and not is_other)

    @property
    def hides_secret(self) -> bool:
        """Return whether asterisks replace the value."""
        text = self.text.strip()
        return text == _HIDDEN or (_STARS.fullmatch(text) is not None and self.may_be_secret)

    @property
    def shown(self) -> str:
        """Return the value for a diff, without secrets."""
        return MASK if self.may_be_secret else without_encrypted(self.text)

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the value that output must not contain."""
        text = self.text.strip()
        if not self.may_be_secret:
            yield from _ENCRYPTED.findall(text)
        elif len(text) >= SHORTEST and not _STARS.fullmatch(text):
            yield text


def text_of(element: XmlElement, parent: XmlElement | None) -> XmlValue:
    """Return the text of an element; "" if the element has children."""
    holder = "" if parent is None else parent.attributes.get("class") or parent.name
    return XmlValue("" if element.children else element.text, element.name, _simple(holder))


def attribute_of(element: XmlElement, name: str) -> XmlValue:
    return XmlValue(element.attributes[name], name, _simple(element.name))


def value_of(element: XmlElement, name: str, parent: XmlElement | None = None) -> XmlValue:
    """Return the attribute with this name, or for `TEXT` the text."""
    return text_of(element, parent) if name == TEXT else attribute_of(element, name)


def set_value(element: XmlElement, name: str, text: str) -> None:
    """Set the attribute with this name, or for `TEXT` the text."""
    if name == TEXT:
        element.text = text
    else:
        element.attributes[name] = text


def mask_value(element: XmlElement, name: str) -> None:
    """Mask the attribute with this name, or for `TEXT` the text, unless it is empty."""
    if value_of(element, name).text.strip():
        set_value(element, name, MASK)


def values_of(root: XmlElement) -> Iterator[XmlValue]:
    """Yield all texts and attributes."""
    for element, parent in root.iterate():
        yield text_of(element, parent)
        yield from (attribute_of(element, name) for name in element.attributes)


def mask(root: XmlElement) -> None:
    """Mask the secrets, for a diff."""
    for element, parent in root.iterate():
        if not element.children:
            element.text = text_of(element, parent).shown
        for name in element.attributes:
            element.attributes[name] = attribute_of(element, name).shown


def without_encrypted(text: str) -> str:
    """Return a string with masked encrypted values."""
    return _ENCRYPTED.sub(MASK, text)


def _simple(name: str) -> str:
    """Return the name of a class without package and outer class."""
    return re.split(r"[.$]|_-", name)[-1]
