# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write credentials in the stores of the server [ci-40]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from ...core.address import path
from ...core.errors import ToolchainError, invalid, quoted
from ...core.http.writes import Verify
from ...core.json_text import as_text
from ...core.module.task import Task
from ...core.object_names import object_name
from ..client import ServerObjects, objects, part, server_of
from ..job_address import job_of
from ..xml_reader import XmlElement, put, text_of

#: The server's replacement for a character that it cannot encode. The client stores `UNKNOWN`
#: instead if no other response contains the character.
_LOST, UNKNOWN = "?", "\ufffd"
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
        try:
            return CredentialLocation(job_of(folder, self._url).name, domain, id_)
        except ToolchainError as error:
            raise invalid(f"folder '{folder}' cannot be used: {error.message}") from None

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
        elif any(_LOST in text_of(found, name) for name in ("description", *_IN_NAME)):
            tree = "description,displayName"
            shown = part(self._objects.shown(purpose, self._path(location), tree))
            description = as_text(shown.get("description")) or text_of(found, "description")
            put(found, "description", description)
            for name in _IN_NAME:
                if _LOST in (lossy := text_of(found, name)):
                    put(
                        found, name, _in_full(lossy, as_text(shown.get("displayName")), description)
                    )
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
            raise ToolchainError(
                "not_found", f"{purpose}: {_missing_message(location, None)}", status=404
            )
        found = []
        for domain in sorted(domains):
            location = CredentialLocation(folder, domain, "")
            shown = self._objects.shown(purpose, self._domain(location), "credentials[id]")
            listed = part(shown).get("credentials")
            if not isinstance(listed, list):
                raise ToolchainError(
                    "protocol", f"{purpose}: the response has no list of credentials"
                )
            found += [
                replace(location, id=str(obj["id"])) for obj in objects(listed) if obj.get("id")
            ]
        return found

    def _require_domain(self, location: CredentialLocation) -> None:
        """Raise `not_found` unless the domain exists, or an earlier task in check mode would create
        its folder.
        """
        purpose = f"reading the domains of the credential '{location.name}'"
        known = self._domains_of(location, purpose)
        if known is None and location.domain == "_" and self._is_predicted(location):
            return
        if known is None or location.domain not in known:
            raise ToolchainError(
                "not_found", f"{purpose}: {_missing_message(location, known)}", status=404
            )

    def _domains_of(self, location: CredentialLocation, purpose: str) -> set[str] | None:
        """Return the domain names of a store, or `None` if the store does not exist."""
        if location.folder not in self._domains:
            store = self._objects.shown(purpose, self._store(location), "domains[urlName]")
            found = None if store is None else store.get("domains")
            names = set(found) if isinstance(found, Mapping) else None
            if isinstance(found, list):
                names = {as_text(obj.get("urlName")) for obj in objects(found)}
            self._domains[location.folder] = names
        return self._domains[location.folder]

    def _is_predicted(self, location: CredentialLocation) -> bool:
        predicted = self._predictions.get("job", location.folder) if location.folder else None
        return predicted is not None and "jobs" in predicted

    def _store(self, location: CredentialLocation) -> str:
        if not location.folder:
            return "credentials/store/system"
        return f"{job_of(location.folder, self._url).path}/credentials/store/folder"

    def _domain(self, location: CredentialLocation) -> str:
        return f"{self._store(location)}/domain/{path(location.domain)}"

    def _path(self, location: CredentialLocation) -> str:
        return f"{self._domain(location)}/credential/{path(location.id)}"


def encoded(text: str) -> str:
    """Return a text as the XML of the server shows it [ci-40]."""
    return text.encode("iso-8859-1", "replace").decode("iso-8859-1")


def _in_full(lossy: str, display_name: str, description: str) -> str:
    """Return the user or file name that `displayName` contains, before the description [ci-40].

    :param lossy: the name with question marks
    """
    name = display_name.removesuffix(f" ({description.strip()})").removesuffix("/******")
    return name if encoded(name) == lossy else lossy.replace(_LOST, UNKNOWN)


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
