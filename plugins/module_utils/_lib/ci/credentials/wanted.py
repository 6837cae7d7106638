# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired state of a credential, for comparison and as XML to send [ci-40].

The description of a credential contains a record of its secret, a salted digest. The next run
compares the secret with this record. Server fact [ci-40]: no response contains a secret, and every
account that sees the credential sees its description. A slow digest with a random salt makes it
hard to guess the secret. The record also contains the fingerprint that the task knew when it wrote
the credential, because every write gives the credential another fingerprint.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...core.errors import conflict, invalid
from ...core.plan import Plan, plan, unchanged, without_none
from .. import xml_reader
from ..jobs import configuration
from ..xml_reader import XmlElement, child_of, put, text_of

#: Stored instead of the question mark with which the server replaces a character that it cannot
#: encode, if no other response contains the character.
UNKNOWN = "\ufffd"
_IMPL = "com.cloudbees.plugins.credentials.impl"
_PLAIN = "org.jenkinsci.plugins.plaincredentials.impl"
_SSH = "com.cloudbees.jenkins.plugins.sshcredentials.impl.BasicSSHUserPrivateKey"
_CERTIFICATE = f"{_IMPL}.CertificateCredentialsImpl"
_REDACTED = "secret-redacted"


_ROUNDS = 100_000
_SALT, _DIGEST = 8, 16  # bytes
_RECORD = re.compile(
    rf"\s?\[toolchain pbkdf2:([0-9a-f]{{{2 * _SALT}}}):([0-9a-f]{{{2 * _DIGEST}}})"
    r"(?::([0-9a-f]{32}))?\]\s*\Z"
)


def record_of(secret: str, replaced: str | None = None) -> str:
    """Return a record of a secret: salt and digest in brackets.

    :param replaced: the fingerprint before the write, if the task knows it
    """
    salt = secrets.token_bytes(_SALT)
    suffix = f":{replaced}" if replaced else ""
    return f"[toolchain pbkdf2:{salt.hex()}:{_digest(secret, salt)}{suffix}]"


def replaced_in(record: str) -> str | None:
    """Return the fingerprint that the recorded write replaced, or `None`."""
    found = _RECORD.search(record)
    return None if found is None else found[3]


def split_description(description: str) -> tuple[str, str]:
    """Split a description into the text without the record, and the record or ""."""
    found = _RECORD.search(description)
    return (description, "") if found is None else (description[: found.start()], found[0].strip())


def is_record_of(record: str, secret: str) -> bool:
    """Return whether the record contains the digest of this secret."""
    found = _RECORD.search(record)
    return found is not None and hmac.compare_digest(
        _digest(secret, bytes.fromhex(found[1])), found[2]
    )


def compare_secret(
    is_recorded: bool | None, known: str | None, fingerprint: str | None, has_secret: bool
) -> str:
    """Compare the secret with the server: "same", "different" or "unknown".

    The digest in the description only tells which secret the last task wrote. A user may have
    changed it since; then the fingerprint differs from the one that the task knows.

    :param is_recorded: whether the record is that of the secret; `None` without record or secret
    :param known: the fingerprint that the task knows, if it is not older than the last write
    """
    if is_recorded is False:
        return "different"
    if fingerprint is None or known is None:
        return "unknown"
    if fingerprint != known:
        return "different"
    return "same" if is_recorded or not has_secret else "unknown"


def _digest(secret: str, salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, _ROUNDS, _DIGEST).hex()


def encoded(text: str) -> str:
    """Return a text as the XML of the server shows it [ci-40]."""
    return text.encode("iso-8859-1", "replace").decode("iso-8859-1")


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


_MARK = "(secret)"
_NO_SECRETS = {"id", "scope", "description", "username", "usernameSecret", "fileName", "apiUri"}
_SHORTEST_SECRET = 6


class WantedFields:
    """Desired state of a credential whose kind is in `KINDS`, given by options.

    :ivar secret: all secrets as a single string for the digest; `None` if they are not set
    """

    def __init__(self, kind: str, id_: str, values: Mapping[str, Any]) -> None:
        self._name, self._kind, self._id = kind, KINDS[kind], id_
        given = without_none(values, ("scope", "description", *self._kind.fields))
        # `text_of` also removes outer blanks
        self._values = {name: value.strip() for name, value in given.items()}
        if "description" in self._values:  # it may contain a copied record
            self._values["description"] = split_description(self._values["description"])[0]
        self._secrets = without_none(values, self._kind.secrets)
        if "secret" in self._secrets and kind == "secret_file":
            self._secrets["secret"] = base64.b64encode(self._secrets["secret"]).decode()
        needed = set(self._kind.secrets) - set(self._kind.optional)
        self._missing = sorted(needed - set(self._secrets))
        # only an SSH key can be used without a user name
        names = {"login_username"} if kind == "username_password" else set()
        self._missing_if_new = sorted({*self._missing, *names} - set(self._values))
        self.secret = None if self._missing else json.dumps(self._secrets, sort_keys=True)

    def current(self, live: XmlElement) -> dict[str, Any]:
        """Return the fields of the credential on the server."""
        return {
            "kind": self._name,
            "scope": text_of(live, "scope").lower() or "global",
            "description": split_description(text_of(live, "description"))[0],
            **{name: self._field(live, name) for name in self._kind.fields},
        }

    def _field(self, live: XmlElement, name: str) -> str:
        """Return a field of the credential; the desired value if no response shows the other."""
        found, wanted = text_of(live, self._kind.fields[name]), self._values.get(name)
        shown = found.replace(UNKNOWN, "?")
        return wanted if wanted is not None and encoded(wanted) == shown != found else found

    def unknown(self, live: XmlElement) -> list[str]:
        """Return the names of the fields whose values the server does not show."""
        return [
            name
            for name, element_path in self._kind.fields.items()
            if UNKNOWN in text_of(live, element_path)
            and self._values.get(name) != text_of(live, element_path).replace(UNKNOWN, "?")
        ]

    def fields(self, live: XmlElement | None) -> dict[str, Any]:
        """Return the desired fields to compare with `current`."""
        new = {"scope": "global", "kind": self._name} if live is None else {}
        return {**new, **self._values}

    def description(self, live: XmlElement | None) -> str:
        """Return the description as it will be after the task, without a digest."""
        shown = "" if live is None else self.current(live)["description"]
        return str(self._values.get("description", shown))

    def document(self, live: XmlElement | None) -> XmlElement:
        """Return the XML to send, without a digest in the description.

        Raises `invalid` for missing secrets.
        """
        root = XmlElement(self._kind.root) if live is None else deepcopy(live)
        put(root, "id", self._id)
        fields = self.fields(live)
        paths = {"description": "description", **self._kind.fields}
        for name, element_path in paths.items():
            if name in fields or live is None:
                put(root, element_path, str(fields.get(name, "")))
        if "scope" in fields:
            put(root, "scope", fields["scope"].upper())
        missing = self._missing if live and any(redacted(live)) else []
        missing = missing if live else self._missing_if_new
        lossy = [] if live is None else [n for n in self.unknown(live) if n not in self._values]
        if missing or lossy:
            options = ", ".join([*missing, *lossy])
            raise invalid(
                f"a new credential of the kind {self._name} requires {options}"
                if live is None
                else f"to change the credential, set {options}; otherwise the server would empty it"
            )
        if self._secrets:
            for name, element_path in self._kind.secrets.items():
                put(root, element_path, self._secrets.get(name, ""), self._kind.classes)
        left = [element.name for element in redacted(root)]
        if left:
            raise invalid(
                f"the server would clear {', '.join(left)}: set kind=xml, and config to the"
                " complete XML"
            )
        return root

    def left(self, done: Plan, live: XmlElement) -> Plan:
        """Return the plan for what a write has left undone."""
        return plan(self.current(live), self.fields(live))


class WantedDocument:
    """Desired state of a credential of any class, given as XML."""

    def __init__(self, id_: str, config: str, description: str | None) -> None:
        try:
            self._root = xml_reader.parse(config)
        except xml_reader.UnreadableXml as error:
            raise invalid(f"config is not the XML of a credential: {error}") from None
        if any(redacted(self._root)):
            raise invalid(
                "config contains the element secret-redacted, which the server would save as an"
                " empty secret: replace it by the secret"
            )
        if text_of(self._root, "id") not in ("", id_):
            raise invalid(f"config has the id '{text_of(self._root, 'id')}', but id is '{id_}'")
        put(self._root, "id", id_)
        given = text_of(self._root, "description") if description is None else description
        if given or description is not None:
            put(self._root, "description", split_description(given)[0])
        copy = deepcopy(self._root)
        copy.children = [child for child in copy.children if child.name != "description"]
        self.secret: str | None = xml_reader.written(copy)

    @property
    def root_name(self) -> str:
        return self._root.name

    def unknown(self, live: XmlElement) -> list[str]:
        """Return "config" if a user or file name in it is not shown by the server."""
        return ["config"] if any(UNKNOWN in e.text for e, _holder in live.iterate()) else []

    def possible_secrets(self) -> list[str]:
        """Return the values that may be secrets. Only the server knows which of them are."""
        elements = (element for element, _holder in self._root.iterate())
        return [
            xml_element.text.strip()
            for xml_element in elements
            if xml_element.name not in _NO_SECRETS
            and len(xml_element.text.strip()) >= _SHORTEST_SECRET
        ]

    def current(self, live: XmlElement) -> dict[str, Any]:
        return {"kind": XML, "config": self._compared(live)[0]}

    def fields(self, live: XmlElement | None) -> dict[str, Any]:
        if live is None:
            # omit the XML: which elements are secrets is unknown before the server returns them
            return {"kind": XML, "config": "(new)"}
        return {"config": self._compared(live)[1]}

    def _compared(self, live: XmlElement) -> tuple[str | None, str]:
        return configuration.compared(*_comparable(live, self._root))

    def description(self, live: XmlElement | None) -> str:
        return text_of(self._root, "description")

    def document(self, live: XmlElement | None) -> XmlElement:
        return deepcopy(self._root)

    def left(self, done: Plan, live: XmlElement) -> Plan:
        found = configuration.drift(*_comparable(live, self._root))
        return configuration.left_of(done, unchanged(state={"kind": XML}), found, "missing")


#: The desired state of a credential.
Wanted: TypeAlias = "WantedFields | WantedDocument"


def wanted_of(id_: str, kind: str, values: Mapping[str, Any]) -> Wanted:
    """Return the desired state of a credential from the options of its entry."""
    if kind == XML:
        return WantedDocument(id_, values["config"], values.get("description"))
    return WantedFields(kind, id_, values)


def require_same_kind(live: XmlElement, wanted: Wanted, kind: str, title: str) -> None:
    """Raise `conflict` if the credential on the server is of another kind.

    :param title: the credential for the message
    """
    wanted_copy = wanted.root_name if isinstance(wanted, WantedDocument) else KINDS[kind].root
    if live.name != wanted_copy:
        live_copy = kind_of(live)
        shown = live.name if XML in (live_copy, kind) else live_copy
        raise conflict(
            f"{title} already exists with the kind {shown}: use that kind, or delete the"
            " credential first"
        )


def _comparable(live: XmlElement, wanted: XmlElement) -> tuple[XmlElement, XmlElement]:
    """Return both XML documents with masked secrets and without records."""
    live_copy, wanted_copy = deepcopy(live), deepcopy(wanted)
    put(live_copy, "description", split_description(text_of(live_copy, "description"))[0])
    _complete(live_copy, wanted_copy)
    _mask_redacted(live_copy, wanted_copy)
    return live_copy, wanted_copy


def _complete(live: XmlElement, wanted: XmlElement) -> None:
    """Take over the desired texts whose characters the XML of the server cannot show [ci-40]."""
    for child in live.children:
        same = child_of(wanted, child.name)
        if same is not None:
            _complete(child, same)
    if live.text != wanted.text and encoded(wanted.text) == live.text.replace(UNKNOWN, "?"):
        live.text = wanted.text


def _mask_redacted(live: XmlElement, wanted: XmlElement | None) -> None:
    """Replace elements that the server has redacted by a placeholder, in both trees."""
    if is_redacted(live):
        for element in (live, wanted):
            if element is not None:
                element.text, element.children = _MARK, []
        return
    for child in live.children:
        _mask_redacted(child, None if wanted is None else child_of(wanted, child.name))
