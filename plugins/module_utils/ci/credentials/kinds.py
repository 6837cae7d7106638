# SPDX-License-Identifier: GPL-3.0-or-later
"""Supported kinds of credentials and the XML elements of their options [ci-40]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..xml_reader import XmlElement

_IMPL = "com.cloudbees.plugins.credentials.impl"
_PLAIN = "org.jenkinsci.plugins.plaincredentials.impl"
_SSH = "com.cloudbees.jenkins.plugins.sshcredentials.impl.BasicSSHUserPrivateKey"
_CERTIFICATE = f"{_IMPL}.CertificateCredentialsImpl"
_REDACTED = "secret-redacted"


@dataclass(frozen=True)
class CredentialClass:
    """A kind of credential.

    :param root: name of the root element, which is a class of the server
    :param plugin: plugin that contains the class
    :param fields: option name to element path
    :param secrets: option name to element path, for example `privateKeySource/privateKey`
    :param classes: element name to the value of its attribute `class`
    :param optional: names of secrets that may be omitted
    """

    root: str
    plugin: str
    fields: Mapping[str, str]
    secrets: Mapping[str, str]
    classes: Mapping[str, str] = field(default_factory=dict)
    optional: tuple[str, ...] = ()


KINDS = {
    "username_password": CredentialClass(
        f"{_IMPL}.UsernamePasswordCredentialsImpl",
        "credentials",
        {"login_username": "username"},
        {"login_password": "password"},
    ),
    "secret_text": CredentialClass(
        f"{_PLAIN}.StringCredentialsImpl", "plain-credentials", {}, {"secret": "secret"}
    ),
    "secret_file": CredentialClass(
        f"{_PLAIN}.FileCredentialsImpl",
        "plain-credentials",
        {"file_name": "fileName"},
        {"secret": "secretBytes"},
    ),
    "ssh_key": CredentialClass(
        _SSH,
        "ssh-credentials",
        {"login_username": "username"},
        {"private_key": "privateKeySource/privateKey", "passphrase": "passphrase"},
        {"privateKeySource": f"{_SSH}$DirectEntryPrivateKeySource"},
        ("passphrase",),
    ),
    "certificate": CredentialClass(
        _CERTIFICATE,
        "credentials",
        {},
        {"keystore": "keyStoreSource/uploadedKeystoreBytes", "login_password": "password"},
        {"keyStoreSource": f"{_CERTIFICATE}$UploadedKeyStoreSource"},
        ("login_password",),
    ),
}
XML = "xml"


def kind_of(root: XmlElement) -> str:
    """Return the kind of a credential, or `xml` for a class that is not in `KINDS`."""
    return next((name for name, kind in KINDS.items() if kind.root == root.name), XML)


def redacted(root: XmlElement) -> Iterator[XmlElement]:
    """Yield the elements that contain `<secret-redacted/>` instead of a secret."""
    return (element for element, _holder in root.iterate() if is_redacted(element))


def is_redacted(element: XmlElement) -> bool:
    return any(child.name == _REDACTED for child in element.children)
