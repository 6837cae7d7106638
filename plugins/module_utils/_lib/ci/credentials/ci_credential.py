# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update and delete credentials in the stores of the server: `ci_credential` [C3.20]."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

from ...core.address import path
from ...core.errors import ToolchainError, invalid, not_found, protocol, quoted
from ...core.files import read_bytes
from ...core.http.writes import Verify
from ...core.json_text import as_text, json_objects
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText, Segment
from ...core.object_names import object_name
from ...core.operations.objects import Item, ItemKind, Objects, entries_of
from ...core.plan import Change, Plan, plan, remaining
from .. import client
from ..client import READ_SERVER, VIEW_CREDENTIALS, ServerObjects, part, server_of
from ..job_address import job_of
from ..service import SERVICE
from ..xml_reader import XmlElement, put, text_of
from .wanted import (
    KINDS,
    UNKNOWN,
    XML,
    Wanted,
    WantedDocument,
    compare_secret,
    encoded,
    is_record_of,
    kind_of,
    record_of,
    replaced_in,
    require_same_kind,
    split_description,
    wanted_of,
)

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
    domain: Segment = "_"
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


#: Elements that `displayName` contains.
_IN_NAME = ("username", "fileName")


@dataclass(frozen=True)
class CredentialLocation:
    """Folder, domain and id of a credential. `folder` is "" for the system store."""

    folder: str
    domain: str
    id: str

    @property
    def name(self) -> str:
        return object_name(("folder", "domain", "id"), asdict(self))


class CredentialStores:
    """Reads and writes credentials in all stores of a server."""

    def __init__(self, task: Task) -> None:
        self._objects = ServerObjects(server_of(task))
        self._predictions, self._url = task.predictions, task.connection.url
        self._domains: dict[str, set[str] | None] = {}

    def location(self, folder: str | None, domain: str, id_: str) -> CredentialLocation:
        """Return the location of a credential. Raises `invalid` for an invalid folder name."""
        if not folder:
            return CredentialLocation("", domain, id_)
        return CredentialLocation(job_of(folder, self._url, "folder").name, domain, id_)

    def read(self, location: CredentialLocation) -> XmlElement | None:
        """Return the XML of a credential, or `None` if the credential does not exist.

        Server fact [ci-40]: the XML has question marks for characters beyond ISO-8859-1. The JSON
        has the description unchanged, and a name that usually contains the user or the file.
        Characters that neither shows are `UNKNOWN`.

        Raises `not_found` if its folder or domain does not exist.
        """
        purpose = f"reading the credential '{location.name}'"
        found = self._objects.document(purpose, self._path(location))
        if found is None:
            self._require_domain(location)
        elif any("?" in text_of(found, name) for name in ("description", *_IN_NAME)):
            tree = "description,displayName"
            shown = part(self._objects.shown(purpose, self._path(location), tree))
            description = as_text(shown.get("description")) or text_of(found, "description")
            put(found, "description", description)
            # `displayName` is the user or file name, followed by the description
            title = as_text(shown.get("displayName")).removesuffix(f" ({description.strip()})")
            title = title.removesuffix("/******")
            for name in _IN_NAME:
                if "?" in (lossy := text_of(found, name)):
                    full = title if encoded(title) == lossy else lossy.replace("?", UNKNOWN)
                    put(found, name, full)
        return found

    def fingerprint(self, location: CredentialLocation) -> str | None:
        """Return the fingerprint of a credential, or `None` if no build has used it.

        Server fact [ci-40]: each write of a secret changes it, another description does not.
        """
        purpose = f"reading the fingerprint of the credential '{location.name}'"
        found = self._objects.shown(purpose, self._path(location), "fingerprint[hash]")
        fingerprint = part(part(found).get("fingerprint")).get("hash")
        return str(fingerprint) if fingerprint else None

    def create(self, location: CredentialLocation, root: XmlElement, verify: Verify) -> None:
        purpose = f"creating the credential '{location.name}'"
        self._objects.send(purpose, f"{self._domain(location)}/createCredentials", root, verify)

    def update(self, location: CredentialLocation, root: XmlElement, verify: Verify) -> None:
        purpose = f"changing the credential '{location.name}'"
        self._objects.send(
            purpose, f"{self._path(location)}/config.xml", root, verify, repeatable=True
        )

    def delete(self, location: CredentialLocation) -> None:
        self._objects.write(
            f"deleting the credential '{location.name}'",
            f"{self._path(location)}/config.xml",
            lambda: self._objects.document("verifying the deletion", self._path(location)) is None,
            "DELETE",
            repeatable=True,
        )

    def locations(self, folder: str) -> list[CredentialLocation]:
        """Return the locations of all credentials in a store. Raises `not_found` if the store does
        not exist.
        """
        purpose = f"listing the credentials of {folder or 'the system'}"
        location = CredentialLocation(folder, "_", "")
        domains = self._domains_of(location, purpose)
        if domains is None:
            raise not_found(f"{purpose}: {_missing_message(location, None)}", status=404)
        found = []
        for domain in sorted(domains):
            location = CredentialLocation(folder, domain, "")
            shown = self._objects.shown(purpose, self._domain(location), "credentials[id]")
            listed = part(shown).get("credentials")
            if not isinstance(listed, list):
                raise protocol(f"{purpose}: the response has no list of credentials")
            found += [
                replace(location, id=str(obj["id"]))
                for obj in json_objects(listed)
                if obj.get("id")
            ]
        return found

    def _require_domain(self, location: CredentialLocation) -> None:
        """Raise `not_found` unless the domain exists, or an earlier task in check mode would create
        its folder.
        """
        purpose = f"reading the domains of the credential '{location.name}'"
        known = self._domains_of(location, purpose)
        predicted = self._predictions.get("job", location.folder) if location.folder else None
        if known is None and location.domain == "_" and "jobs" in (predicted or ()):
            return
        if known is None or location.domain not in known:
            raise not_found(f"{purpose}: {_missing_message(location, known)}", status=404)

    def _domains_of(self, location: CredentialLocation, purpose: str) -> set[str] | None:
        """Return the domain names of a store, or `None` if the store does not exist."""
        if location.folder not in self._domains:
            store = self._objects.shown(purpose, self._store(location), "domains[urlName]")
            found = None if store is None else store.get("domains")
            names = set(found) if isinstance(found, Mapping) else None
            if isinstance(found, list):
                names = {as_text(obj.get("urlName")) for obj in json_objects(found)}
            self._domains[location.folder] = names
        return self._domains[location.folder]

    def _store(self, location: CredentialLocation) -> str:
        if not location.folder:
            return "credentials/store/system"
        return f"{job_of(location.folder, self._url).path}/credentials/store/folder"

    def _domain(self, location: CredentialLocation) -> str:
        return f"{self._store(location)}/domain/{path(location.domain)}"

    def _path(self, location: CredentialLocation) -> str:
        return f"{self._domain(location)}/credential/{path(location.id)}"


def _missing_message(location: CredentialLocation, known: set[str] | None) -> str:
    if known is None:
        if not location.folder:
            return "the server has no credential store, or the account cannot see it"
        return (
            f"the folder '{location.folder}' does not exist or has no credential store, or the"
            " account cannot see it"
        )
    domains = quoted(sorted(known))
    return f"the domain '{location.domain}' does not exist: create it, or use one of {domains}"


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
            is_recorded, known = _is_recorded(live, wanted), entry.fingerprint
            if known or is_recorded:
                fingerprint = self._stores.fingerprint(self._location(entry))
            if known == replaced_in(_record(live)):
                known = None
            has_secret = wanted.secret is not None
            state = compare_secret(is_recorded, known, fingerprint, has_secret)
        found = self._with_secret(entry, found, state)
        if found.changed:
            try:
                wanted.document(live)
            except ToolchainError as error:
                # the server decides which secrets are needed, so only this credential fails
                fields = ", ".join(change.field for change in found.changes)
                differs = f" (differs in {fields})" if live else ""
                error.message = f"{self.title(item)}: {error.message}{differs}"
                found = replace(found, failure=error)
            fingerprint = None  # the write gives the credential another one
        elif live is not None:
            unknown = wanted.unknown(live)
            # with a digest, only `fingerprint` asks for more
            asked = wanted.secret is not None and not _record(live)
            if state == "unknown" and (asked or entry.fingerprint is not None):
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
            record = record_of(wanted.secret, item.entry.fingerprint)
        reported = split_description(text_of(root, "description"))[0]
        put(root, "description", f"{reported} {record}".strip() if record else reported)
        try:
            send = self._stores.create if item.plan.action == "create" else self._stores.update
            send(location, root, partial(self._is_written, item, wanted, record))
        except ToolchainError as error:
            kind = kind_of(root)
            if error.status is not None and error.status >= 500 and kind != XML:
                error.with_hint(f"the plugin {KINDS[kind].plugin} may be missing")
            raise

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


def _record(live: XmlElement) -> str:
    return split_description(text_of(live, "description"))[1]


def _is_recorded(live: XmlElement, wanted: Wanted) -> bool | None:
    """Return whether the digest in the description is that of the secret.

    Returns `None` if the task has no secret, or the description no digest.
    """
    record = _record(live)
    if wanted.secret is None or not record:
        return None
    return is_record_of(record, wanted.secret)


class CiCredentialOperation(Objects[CiCredentialEntry, XmlElement]):
    """Manages a credential, or the credentials of `entries`."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "read": reads(READ_SERVER, VIEW_CREDENTIALS),
            "create": writes(
                READ_SERVER, VIEW_CREDENTIALS, unforeseen=(client.CREATE_CREDENTIALS,)
            ),
            "update": writes(
                READ_SERVER, VIEW_CREDENTIALS, unforeseen=(client.UPDATE_CREDENTIALS,)
            ),
            "delete": writes(
                READ_SERVER, VIEW_CREDENTIALS, unforeseen=(client.DELETE_CREDENTIALS,)
            ),
        },
        kind="credential",
        key=("folder", "domain", "id"),
        listed="results",
    )

    def __init__(self, task: Task, options: CiCredentialOptions) -> None:
        super().__init__(Credentials(task), *entries_of(options, CiCredentialEntry))
