# SPDX-License-Identifier: GPL-3.0-or-later
"""Export credentials as entries for `ci_credential`, without their secrets [ci-40]."""

from __future__ import annotations

from functools import partial
from typing import Any

from ...core.module import typed_options
from ..export_run import ExportRun
from ..xml_reader import XmlElement
from .ci_credential import CiCredentialEntry
from .credential_store import CredentialLocation, CredentialStores
from .kinds import XML, kind_of
from .wanted import WantedFields

_SCOPES = ("global", "system")


def exported_credentials(run: ExportRun) -> list[dict[str, Any]] | None:
    """Return entries for the credentials in the system store and in the exported folders.

    Returns `None` if no store can be read.
    """
    stores = CredentialStores(run.task)
    found: list[list[CredentialLocation] | None] = []
    for folder in ("", *(job.name for job in run.folders)):
        name, read = f"{folder}/*".lstrip("/"), partial(stores.locations, folder)
        found.append(run.listed("credential", name, read, required=run.requested and not folder))
    if found.count(None) == len(found):
        return None
    locations = [location for store in found for location in store or ()]
    roots = run.read_each("credential", locations, stores.read, lambda location: location.name)
    entries = [_entry(run, location, root) for location, root in roots]
    return [entry for entry in entries if entry is not None]


def _entry(run: ExportRun, location: CredentialLocation, root: XmlElement) -> dict[str, Any] | None:
    """Return the entry of a credential, or `None` if its class or values cannot be exported."""
    kind = kind_of(root)
    if kind == XML:
        reason = (
            f"{root.name} can only be exported as XML, but the server omits the secrets from it"
        )
        run.state.leave_out("credential", location.name, reason)
        return None
    fields = WantedFields(kind, location.id, {}).current(root)
    if location.folder or fields["scope"] not in _SCOPES:
        del fields["scope"]
    if not fields.get("file_name", "-"):
        del fields["file_name"]
    entry = {
        "id": location.id,
        **({"folder": location.folder} if location.folder else {}),
        **({} if location.domain == "_" else {"domain": location.domain}),
        **fields,
    }
    checked = CiCredentialEntry(**entry)
    if not (
        run.is_valid("credential", location.name, partial(typed_options.check, checked))
        and run.is_valid("credential", location.name, partial(checked.require_kind, kind))
    ):
        return None
    reason = "the server never returns it, but creating or changing the credential requires it"
    run.state.leave_out("secret", location.name, reason)
    return entry
