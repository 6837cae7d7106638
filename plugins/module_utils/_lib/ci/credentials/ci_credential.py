# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete credentials in the stores of the server: `ci_credential` [C3.20]."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.files import read_bytes
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.operations.objects import Item, ItemKind, Objects, entries_of
from ...core.plan import Change, Plan, plan, remaining
from ..client import (
    CREATE_CREDENTIALS,
    DELETE_CREDENTIALS,
    READ_SERVER,
    UPDATE_CREDENTIALS,
    VIEW_CREDENTIALS,
)
from ..service import SERVICE
from ..xml_reader import XmlElement, put, text_of
from . import secret_record
from .credential_store import CredentialLocation, CredentialStores
from .wanted import KINDS, XML, Wanted, WantedDocument, kind_of, require_same_kind, wanted_of

_BAD_ID = re.compile(r"[/\\?#%\x00-\x1f\x7f]|^\s|\s$|^\.{1,2}$")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)")
_FINGERPRINT = re.compile(r"[0-9a-f]{32}")
_SECRET = "(secret)"
#: Options that are valid only for some kinds of credentials.
_OF_KINDS = {
    "login_username": ("username_password", "ssh_key"),
    "login_password": ("username_password", "certificate"),
    "secret": ("secret_text", "secret_file"),
    "src": ("secret_file",),
    "file_name": ("secret_file",),
    "private_key": ("ssh_key",),
    "passphrase": ("ssh_key",),
    "keystore": ("certificate",),
    "config": (XML,),
    "scope": tuple(KINDS),
    "fingerprint": (*KINDS, XML),
}
_Kind = Literal["username_password", "secret_text", "secret_file", "ssh_key", "certificate", "xml"]
_Update = Annotated[Literal["on_change", "always", "on_create"], Option(secret=False)]


@dataclass(frozen=True)
class CiCredentialEntry:
    """The options of a credential."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("secret", forbids="src"),
        Rule("kind=xml", requires=("config", "state=absent")),
        Rule("scope=system", forbids="folder"),
        Rule("state=absent", forbids=tuple(_OF_KINDS)),
    )

    id: str
    folder: str | None = None
    domain: str = "_"
    kind: _Kind | None = None
    scope: Literal["global", "system"] | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    login_username: Annotated[str | None, Option(empty=True)] = None
    login_password: Annotated[str | None, Option(secret=True)] = None
    secret: Annotated[str | None, Option(secret=True, whole=True)] = None
    src: PathText | None = None
    file_name: str | None = None
    private_key: Annotated[str | None, Option(secret=True, whole=True)] = None
    passphrase: Annotated[str | None, Option(secret=True)] = None
    keystore: Annotated[str | None, Option(secret=True)] = None
    config: Annotated[str | None, Option(secret=True, whole=True)] = None
    update_secret: _Update = "on_change"
    fingerprint: str | None = None
    state: Literal["present", "absent"] = "present"

    def check(self) -> None:
        """Raise `invalid` for an invalid id, fingerprint or keystore."""
        if _BAD_ID.search(self.id):
            raise invalid(
                f"id '{self.id}' is not a valid credential id: use letters, digits, - _ ."
            )
        self.require_kind(self.kind)
        if self.fingerprint is not None and not _FINGERPRINT.fullmatch(self.fingerprint):
            raise invalid("fingerprint is not 32 hexadecimal digits: copy it from the result")
        if self.keystore is not None and _BASE64.fullmatch(_joined(self.keystore)) is None:
            raise invalid("keystore is not a file in Base64: encode it with the filter b64encode")
        if self.kind == XML and self.config is not None:
            wanted_of(self.id, XML, vars(self))

    def require_kind(self, kind: str | None) -> None:
        """Raise `invalid` for options that credentials of a kind do not have."""
        for option, kinds in _OF_KINDS.items():
            if kind is not None and kind not in kinds and getattr(self, option) is not None:
                raise invalid(f"{option} cannot be combined with kind={kind}: omit {option}")


@dataclass(frozen=True)
class CiCredentialOptions(CiCredentialEntry):
    """The options of `ci_credential`."""

    entries: Annotated[list[CiCredentialEntry] | None, Option(empty=False)] = None


class Credentials(ItemKind[CiCredentialEntry, XmlElement]):
    """Compares and writes credentials. Their descriptions contain a digest of the secret."""

    noun = "credential"
    accepts_server = True

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._stores = CredentialStores(task)

    def name(self, entry: CiCredentialEntry) -> str:
        return self._location(entry).name

    def _location(self, entry: CiCredentialEntry) -> CredentialLocation:
        return self._stores.location(entry.folder, entry.domain, entry.id)

    def compare(self, item: Item[CiCredentialEntry, XmlElement]) -> Plan:
        entry, location = item.entry, self._location(item.entry)
        live = item.state = self._stores.read(location)
        if entry.state == "absent":
            return plan(_identity(location, live), None).with_result(credential=None)
        wanted = self._wanted(entry, live)
        kind = entry.kind or ("username_password" if live is None else kind_of(live))
        if live is not None:
            require_same_kind(live, wanted, kind, self.title(item))
        found = plan(None if live is None else wanted.current(live), wanted.fields(live))
        state, fingerprint = "same", None
        if live is not None:
            state, fingerprint = self._compared_secret(entry, live, wanted)
        found = self._with_secret(entry, found, state)
        if found.changed:
            failure = _missing_secrets_error(wanted, live, found, self.title(item))
            found = replace(found, failure=failure)
            fingerprint = None  # the write gives the credential another one
        elif live is not None:
            unknown = wanted.unknown(live)
            if state == "unknown" and _should_be_compared(entry, live, wanted):
                unknown.append("secret")
                self._warn_of_unknown(item, _record(live), fingerprint)
            found = found.with_unknown(*unknown)
        shown = {
            "id": entry.id,
            "kind": kind,
            "description": wanted.description(live),
            "folder": location.folder,
            "domain": location.domain,
            "secret": state,
            "fingerprint": fingerprint,
        }
        return found.with_result(credential=shown)

    def _compared_secret(
        self, entry: CiCredentialEntry, live: XmlElement, wanted: Wanted
    ) -> tuple[str, str | None]:
        """Return the state of the secret, and the fingerprint if it was needed."""
        is_recorded, known = _is_recorded(live, wanted), entry.fingerprint
        fingerprint = None
        if known or is_recorded:
            fingerprint = self._stores.fingerprint(self._location(entry))
        if known == secret_record.replaced_in(_record(live)):
            known = None
        has_secret = wanted.secret is not None
        return secret_record.compared(is_recorded, known, fingerprint, has_secret), fingerprint

    def _warn_of_unknown(
        self, item: Item[CiCredentialEntry, XmlElement], record: str, fingerprint: str | None
    ) -> None:
        if not record and not item.entry.fingerprint:
            self._task.warn(
                f"the secret of {self.title(item)} was not written, because its description has no"
                " digest to compare: set update_secret=always to write it"
            )
        elif fingerprint and item.entry.fingerprint:
            self._task.warn(
                f"the secret of {self.title(item)} cannot be compared, because its last write"
                f" changed the fingerprint: set fingerprint to {fingerprint}"
            )

    def _wanted(self, entry: CiCredentialEntry, live: XmlElement | None) -> Wanted:
        kind = entry.kind or ("username_password" if live is None else kind_of(live))
        entry.require_kind(kind)
        values = dict(vars(entry))
        if kind == "secret_file":
            content = None if entry.secret is None else entry.secret.encode()
            if entry.src is not None:
                content = read_bytes(entry.src, "the secret in src")
                self._task.hide(content.decode("utf-8", "replace"))
            values["secret"] = content
            if live is None and entry.file_name is None:
                values["file_name"] = os.path.basename(entry.src or entry.id)
        if entry.keystore is not None:
            values["keystore"] = _joined(entry.keystore)
            self._task.hide(values["keystore"])
        wanted = wanted_of(entry.id, kind, values)
        if isinstance(wanted, WantedDocument):
            for secret in wanted.possible_secrets():
                self._task.hide(secret)
        return wanted

    def _with_secret(self, entry: CiCredentialEntry, found: Plan, state: str) -> Plan:
        """Add the secret to the changes if it differs or `update_secret` is `always`."""
        differs = entry.update_secret == "on_change" and state == "different"
        always = entry.update_secret == "always"
        if found.action == "create":
            return replace(found, after={**found.after, "secret": _SECRET})
        if not differs and not always:
            return found
        return replace(
            found,
            before={**found.before, "secret": _SECRET},
            after={**found.after, "secret": f"{_SECRET}, written again"},
            changes=(*found.changes, Change("secret", _SECRET, _SECRET)),
            action="update",
        )

    def write(self, item: Item[CiCredentialEntry, XmlElement]) -> None:
        location, live = self._location(item.entry), item.state
        if item.plan.action == "delete":
            self._stores.delete(location)
            return
        wanted = self._wanted(item.entry, live)
        root = wanted.document(live)
        record = ""
        if wanted.secret is not None:
            record = secret_record.record_of(wanted.secret, item.entry.fingerprint)
        reported = secret_record.split(text_of(root, "description"))[0]
        put(root, "description", secret_record.with_record(reported, record))
        try:
            send = self._stores.create if item.plan.action == "create" else self._stores.update
            send(location, root, partial(self._is_written, item, wanted, record))
        except ToolchainError as error:
            raise _with_plugin(error, kind_of(root)) from None

    def _is_written(
        self, item: Item[CiCredentialEntry, XmlElement], wanted: Wanted, record: str
    ) -> bool:
        live = self._stores.read(self._location(item.entry))
        if live is None:
            return False
        if record and _record(live) == record:
            return True
        # another host may have created an equal credential
        same = not plan(wanted.current(live), wanted.fields(live)).changed
        creates = item.plan.action == "create"
        return same and (creates or not record) and _is_recorded(live, wanted) is not False

    def left(self, item: Item[CiCredentialEntry, XmlElement]) -> Plan:
        location, before = self._location(item.entry), item.state
        live = item.state = self._stores.read(location)
        if live is None or item.plan.action == "delete":
            return remaining(item.plan, _identity(location, live))
        wanted = self._wanted(item.entry, live)
        left = wanted.left(item.plan, live)
        if not left.changed or before is None or wanted.secret is None:
            return left
        if _is_recorded(before, wanted):
            return left
        # the server may have stored the secret: an equal description does not mean "unchanged"
        return replace(left, before={**left.before, "secret": _SECRET})


def _identity(location: CredentialLocation, live: XmlElement | None) -> dict[str, Any] | None:
    return None if live is None else {"id": location.id, "kind": kind_of(live)}


def _joined(keystore: str) -> str:
    """Return Base64 without the line breaks that the command `base64` writes."""
    return "".join(keystore.split())


def _missing_secrets_error(
    wanted: Wanted, live: XmlElement | None, found: Plan, title: str
) -> ToolchainError | None:
    """Return the error for a change that requires secrets which the task does not set, or `None`.

    Whether secrets are required depends on the state of the server, so the error affects only this
    credential.
    """
    try:
        wanted.document(live)
    except ToolchainError as error:
        fields = ", ".join(change.field for change in found.changes)
        differs = f" (differs in {fields})" if live else ""
        error.message = f"{title}: {error.message}{differs}"
        return error
    return None


def _record(live: XmlElement) -> str:
    return secret_record.split(text_of(live, "description"))[1]


def _should_be_compared(entry: CiCredentialEntry, live: XmlElement, wanted: Wanted) -> bool:
    """Return whether an unknown secret is reported: with a digest, only `fingerprint` asks more."""
    return entry.fingerprint is not None or (wanted.secret is not None and not _record(live))


def _is_recorded(live: XmlElement, wanted: Wanted) -> bool | None:
    """Return whether the digest in the description is that of the secret.

    Returns `None` if the task has no secret, or the description no digest.
    """
    record = _record(live)
    if wanted.secret is None or not record:
        return None
    return secret_record.matches(record, wanted.secret)


def _with_plugin(error: ToolchainError, kind: str) -> ToolchainError:
    """Add a hint about the required plugin to a server error."""
    if error.status is None or error.status < 500 or kind == XML:
        return error
    return error.with_hint(f"the plugin {KINDS[kind].plugin} may be missing")


class CiCredentialOperation(Objects[CiCredentialEntry, XmlElement]):
    """Manages a credential, or the credentials of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(READ_SERVER, VIEW_CREDENTIALS),
            "create": writes(READ_SERVER, VIEW_CREDENTIALS, unforeseen=(CREATE_CREDENTIALS,)),
            "update": writes(READ_SERVER, VIEW_CREDENTIALS, unforeseen=(UPDATE_CREDENTIALS,)),
            "delete": writes(READ_SERVER, VIEW_CREDENTIALS, unforeseen=(DELETE_CREDENTIALS,)),
        },
        kind="credential",
        key=("folder", "domain", "id"),
        listed="results",
    )

    def __init__(self, task: Task, options: CiCredentialOptions) -> None:
        super().__init__(Credentials(task), *entries_of(options, CiCredentialEntry))
