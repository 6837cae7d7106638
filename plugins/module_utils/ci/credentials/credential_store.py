# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write credentials in a store of the server [ci-40]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...core.address import path
from ...core.errors import ToolchainError, invalid
from ...core.http.writes import Verify
from ...core.module.task import Task
from ..client import objects, part, server_of
from ..job_address import job_of
from ..server_objects import ServerObjects
from ..xml_reader import XmlElement


@dataclass(frozen=True)
class CredentialPlace:
    """The place of a credential. `folder` is empty for the store of the system."""

    folder: str
    domain: str
    id: str

    @property
    def name(self) -> str:
        domain = "" if self.domain == "_" else self.domain
        return "/".join(part for part in (self.folder, domain, self.id) if part)


class CredentialStores:
    """The stores of a server."""

    def __init__(self, task: Task) -> None:
        self._objects = ServerObjects(server_of(task))
        self._predictions, self._url = task.predictions, task.connection.url
        self._domains: dict[str, set[str] | None] = {}

    def place(self, folder: str | None, domain: str, id_: str) -> CredentialPlace:
        """Return a place. Raises `invalid` for an invalid folder name."""
        if not folder:
            return CredentialPlace("", domain, id_)
        try:
            return CredentialPlace(job_of(folder, self._url).name, domain, id_)
        except ToolchainError as error:
            raise invalid(f"folder '{folder}' cannot be used: {error.message}") from None

    def read(self, place: CredentialPlace) -> XmlElement | None:
        """Return a credential. Raises `not_found` if its folder or domain does not exist."""
        found = self._objects.document(f"reading the credential '{place.name}'", self._path(place))
        if found is None:
            self._require_domain(place)
        return found

    def create(self, place: CredentialPlace, root: XmlElement, verify: Verify) -> None:
        purpose = f"creating the credential '{place.name}'"
        self._objects.send(purpose, f"{self._domain(place)}/createCredentials", root, verify)

    def update(self, place: CredentialPlace, root: XmlElement, verify: Verify) -> None:
        purpose = f"changing the credential '{place.name}'"
        self._objects.send(
            purpose, f"{self._path(place)}/config.xml", root, verify, repeatable=True
        )

    def delete(self, place: CredentialPlace) -> None:
        self._objects.write(
            f"deleting the credential '{place.name}'",
            f"{self._path(place)}/config.xml",
            lambda: self._objects.document("verifying the deletion", self._path(place)) is None,
            "DELETE",
            repeatable=True,
        )

    def places(self, folder: str) -> list[CredentialPlace]:
        """Return the places of all credentials in a store. Raises `not_found` without the store."""
        purpose = f"listing the credentials of {folder or 'the system'}"
        place = CredentialPlace(folder, "_", "")
        domains = self._domains_of(place, purpose)
        if domains is None:
            raise ToolchainError("not_found", f"{purpose}: {_missing(place, None)}", status=404)
        found = []
        for domain in sorted(domains):
            place = CredentialPlace(folder, domain, "")
            shown = self._objects.shown(purpose, self._domain(place), "credentials[id]")
            listed = part(shown).get("credentials")
            if not isinstance(listed, list):
                raise ToolchainError(
                    "not_found", f"{purpose}: the response has no list of credentials"
                )
            found += [replace(place, id=str(obj["id"])) for obj in objects(listed) if obj.get("id")]
        return found

    def _require_domain(self, place: CredentialPlace) -> None:
        """Raise `not_found` unless the domain exists, now or after an earlier task of the run."""
        purpose = f"reading the domains of the credential '{place.name}'"
        known = self._domains_of(place, purpose)
        if known is None and place.domain == "_" and self._is_predicted(place):
            return
        if known is None or place.domain not in known:
            raise ToolchainError("not_found", f"{purpose}: {_missing(place, known)}", status=404)

    def _domains_of(self, place: CredentialPlace, purpose: str) -> set[str] | None:
        """Return the domains of a store; `None` if there is no such store."""
        if place.folder not in self._domains:
            store = self._objects.shown(purpose, self._store(place), "domains[urlName]")
            found = None if store is None else store.get("domains")
            named = set(found) if isinstance(found, Mapping) else None
            if isinstance(found, list):
                named = {str(obj.get("urlName")) for obj in objects(found)}
            self._domains[place.folder] = named
        return self._domains[place.folder]

    def _is_predicted(self, place: CredentialPlace) -> bool:
        predicted = self._predictions.get("job", place.folder) if place.folder else None
        return predicted is not None and "jobs" in predicted

    def _store(self, place: CredentialPlace) -> str:
        if not place.folder:
            return "credentials/store/system"
        return f"{job_of(place.folder, self._url).path}/credentials/store/folder"

    def _domain(self, place: CredentialPlace) -> str:
        return f"{self._store(place)}/domain/{path(place.domain)}"

    def _path(self, place: CredentialPlace) -> str:
        return f"{self._domain(place)}/credential/{path(place.id)}"


def _missing(place: CredentialPlace, known: set[str] | None) -> str:
    if known is None:
        where = f"there is no folder '{place.folder}'" if place.folder else "there is no store"
        return f"{where} with credentials, or the account cannot see it"
    return (
        f"there is no domain '{place.domain}': create it, or use one of {', '.join(sorted(known))}"
    )
