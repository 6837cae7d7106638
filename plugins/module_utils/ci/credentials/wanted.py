# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted state of a credential, as fields and as the XML to send [ci-40]."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Protocol

from ...core.errors import ToolchainError, invalid
from ...core.plan import without_none
from .. import xml_reader
from ..jobs import configuration
from ..xml_elements import put, text_of
from ..xml_reader import XmlElement
from . import secret_record
from .kinds import KINDS, XML, is_redacted, kind_of, redacted

_MARK = "(secret)"
_NO_SECRETS = {"id", "scope", "description", "username", "usernameSecret", "fileName", "apiUri"}
_SHORTEST_SECRET = 6


class Wanted(Protocol):
    """The wanted state of a credential.

    :ivar secret: all secrets as one string for the digest; `None` if they are not given
    """

    secret: str | None

    def current(self, live: XmlElement) -> dict[str, Any]:
        """Return the fields of the credential on the server."""

    def fields(self, live: XmlElement | None) -> dict[str, Any]:
        """Return the wanted fields."""

    def document(self, live: XmlElement | None) -> XmlElement:
        """Return the XML to send, without a record. Raises `invalid` for missing secrets."""


class WantedFields:
    """A credential of a known kind, by its fields."""

    def __init__(self, kind: str, id_: str, values: Mapping[str, Any]) -> None:
        self._name, self._kind, self._id = kind, KINDS[kind], id_
        self._values = without_none(values, ("scope", "description", *self._kind.fields))
        if "description" in self._values:  # may be copied from the server, with its record
            self._values["description"] = secret_record.split(self._values["description"])[0]
        self._secrets = without_none(values, self._kind.secrets)
        if "secret" in self._secrets and kind == "secret_file":
            self._secrets["secret"] = base64.b64encode(self._secrets["secret"]).decode()
        needed = set(self._kind.secrets) - set(self._kind.optional)
        self._missing = sorted(needed - set(self._secrets))
        self.secret = None if self._missing else json.dumps(self._secrets, sort_keys=True)

    def current(self, live: XmlElement) -> dict[str, Any]:
        return {
            "kind": self._name,
            "scope": text_of(live, "scope").lower() or "global",
            "description": secret_record.split(text_of(live, "description"))[0],
            **{name: text_of(live, place) for name, place in self._kind.fields.items()},
        }

    def fields(self, live: XmlElement | None) -> dict[str, Any]:
        new = {"scope": "global", "kind": self._name} if live is None else {}
        return {**new, **self._values}

    def document(self, live: XmlElement | None) -> XmlElement:
        root = XmlElement(self._kind.root) if live is None else deepcopy(live)
        put(root, "id", self._id)
        fields = self.fields(live)
        places = {"description": "description", **self._kind.fields}
        for name, place in places.items():
            if name in fields or live is None:
                put(root, place, str(fields.get(name, "")))
        if "scope" in fields:
            put(root, "scope", fields["scope"].upper())
        if self._missing and (live is None or any(redacted(live))):
            raise invalid(self._lack(live))
        if self._secrets:
            for name, place in self._kind.secrets.items():
                put(root, place, self._secrets.get(name, ""), self._kind.classes)
        _require_no_redacted(root)
        return root

    def _lack(self, live: XmlElement | None) -> str:
        options = ", ".join(
            "login_password (password in entries)" if name == "password" else name
            for name in self._missing
        )
        if live is None:
            return f"a new credential of the kind {self._name} requires {options}"
        return f"to change the credential, set {options}: otherwise the server would empty it"


class WantedDocument:
    """A credential of any class, by its XML."""

    def __init__(self, id_: str, config: str, description: str | None) -> None:
        try:
            self._root = xml_reader.parse(config)
        except xml_reader.UnreadableXml as error:
            raise invalid(f"config is not the XML of a credential: {error}") from None
        if any(redacted(self._root)):
            raise invalid(
                "config has <secret-redacted/>, which the server would read as an empty secret:"
                " write the secrets"
            )
        if text_of(self._root, "id") not in ("", id_):
            raise invalid(f"config has the id '{text_of(self._root, 'id')}', but id is '{id_}'")
        put(self._root, "id", id_)
        told = text_of(self._root, "description") if description is None else description
        if told or description is not None:
            put(self._root, "description", secret_record.split(told)[0])
        self.secret: str | None = xml_reader.written(_bare(self._root))

    @property
    def root_name(self) -> str:
        return self._root.name

    def possible_secrets(self) -> list[str]:
        """Return the values that may be secrets: only the server knows which are."""
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
            # which elements are secrets is known only after the server has shown them
            return {"kind": XML, "config": "(new)"}
        return {"config": self._compared(live)[1]}

    def document(self, live: XmlElement | None) -> XmlElement:
        return deepcopy(self._root)

    def dropped(self, live: XmlElement) -> list[str]:
        """Return the elements that the server did not keep."""
        found = configuration.drift(*_comparable(live, self._root))
        return [difference.path for difference in found.differences if difference.kind == "missing"]

    def _compared(self, live: XmlElement) -> tuple[str, str]:
        """Return both sides as text; equal if they mean the same."""
        found = configuration.drift(*_comparable(live, self._root))
        return (found.before, found.after if found.found else found.before)


def wanted_of(id_: str, kind: str, values: Mapping[str, Any]) -> Wanted:
    """Return the wanted state of a credential from the options of its entry."""
    if kind == XML:
        return WantedDocument(id_, values["config"], values.get("description"))
    return WantedFields(kind, id_, values)


def require_same_kind(live: XmlElement, wanted: Wanted, kind: str) -> None:
    """Raise `conflict` if the credential on the server is of another kind."""
    ours = wanted.root_name if isinstance(wanted, WantedDocument) else KINDS[kind].root
    if live.name != ours:
        theirs = kind_of(live)
        shown = live.name if XML in (theirs, kind) else theirs
        raise ToolchainError(
            "conflict",
            f"the credential already exists with the kind {shown}: delete it first, or use that"
            " kind",
        )


def _require_no_redacted(root: XmlElement) -> None:
    left = [element.name for element in redacted(root)]
    if left:
        raise invalid(
            f"the server would empty {', '.join(left)}: use kind xml, and set config to the"
            " complete XML"
        )


def _bare(root: XmlElement) -> XmlElement:
    """Return a copy without the description."""
    copy = deepcopy(root)
    copy.children = [child for child in copy.children if child.name != "description"]
    return copy


def _comparable(live: XmlElement, wanted: XmlElement) -> tuple[str, str]:
    """Return both documents with marks instead of secrets, and without the record."""
    theirs, ours = deepcopy(live), deepcopy(wanted)
    put(theirs, "description", secret_record.split(text_of(theirs, "description"))[0])
    _mark(theirs, ours)
    return xml_reader.written(theirs), xml_reader.written(ours)


def _mark(live: XmlElement, wanted: XmlElement | None) -> None:
    """Replace redacted elements, and their wanted counterparts, with a placeholder."""
    if is_redacted(live):
        for element in (live, wanted):
            if element is not None:
                element.text, element.children = _MARK, []
        return
    for child in live.children:
        same = () if wanted is None else wanted.children
        _mark(child, next((each for each in same if each.name == child.name), None))
