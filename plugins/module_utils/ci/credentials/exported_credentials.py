# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials of the server as entries for `ci_credential`, without their secrets [ci-40]."""

from __future__ import annotations

from typing import Any

from ...core.errors import ToolchainError
from ..export_run import ExportRun
from ..xml_reader import XmlElement
from .ci_credential import CiCredentialEntry
from .credential_store import CredentialPlace, CredentialStores
from .kinds import XML, kind_of
from .wanted import WantedFields

_SCOPES = ("global", "system")


def exported_credentials(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return the credentials in the stores of the system and of the exported folders; `None` if no
    store can be read.
    """
    stores = CredentialStores(run.task)
    places: list[CredentialPlace] = []
    readable = False
    for folder in ("", *(job.name for job in run.folders)):
        try:
            places += stores.places(folder)
            readable = True
        except ToolchainError as error:
            if error.kind not in ("permission", "not_found") or (run.requested and not folder):
                raise
            run.leave_out("credential", f"{folder}/*".lstrip("/"), error)
    found = run.read_each("credential", places, stores.read, lambda place: place.name)
    entries = [_entry(run, place, root) for place, root in found]
    return [entry for entry in entries if entry is not None] if readable else None


def _entry(run: ExportRun, place: CredentialPlace, root: XmlElement) -> dict[str, Any] | None:
    """Return the entry of a credential; `None` for a class that needs its whole XML."""
    kind = kind_of(root)
    if kind == XML:
        reason = (
            f"{root.name} can only be exported as XML, which the server returns without the secrets"
        )
        run.state.leave_out("credential", place.name, reason)
        return None
    fields = WantedFields(kind, place.id, {}).current(root)
    if place.folder or fields["scope"] not in _SCOPES:
        del fields["scope"]
    if not fields.get("file_name", "-"):
        del fields["file_name"]
    entry = {
        "id": place.id,
        **({"folder": place.folder} if place.folder else {}),
        **({} if place.domain == "_" else {"domain": place.domain}),
        **fields,
    }
    try:
        CiCredentialEntry(**entry).require_sense(kind)
    except ToolchainError as error:
        run.leave_out("credential", place.name, error)
        return None
    reason = "the server never returns it, but creating or changing the credential requires it"
    run.state.leave_out("secret", place.name, reason)
    return entry
