# SPDX-License-Identifier: GPL-3.0-or-later
"""The routes of Release Lifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.repo.lifecycle import bundles, distribution, promotions
from sandbox.repo.lifecycle.responses import PREFIX, guarded
from sandbox.service import route

if TYPE_CHECKING:
    from starlette.routing import Route

    from sandbox.service import Handler


def routes() -> list[Route]:
    one = "{name}/{version}"
    table: list[tuple[str, str, Handler]] = [
        ("POST", "release_bundle", bundles.create),
        ("GET", f"release_bundle/existence/{one}", bundles.existence),
        ("GET", f"release_bundle/statuses/{one}", bundles.status),
        ("GET", "release_bundle/groups", bundles.groups),
        ("GET", "release_bundle/records/{name}", bundles.versions),
        ("GET", f"release_bundle/records/{one}", bundles.record),
        ("DELETE", f"release_bundle/records/{one}", bundles.delete),
        ("POST", f"promotion/records/{one}", promotions.promote),
        ("GET", f"promotion/records/{one}", promotions.records),
        ("GET", f"promotion/records/{one}/{{millis}}", promotions.details),
        ("GET", f"promotion/statuses/{one}/{{millis}}", promotions.status),
        ("POST", f"distribution/distribute/{one}", distribution.handler("distribute")),
        ("POST", f"distribution/remote_delete/{one}", distribution.handler("delete")),
        ("GET", f"distribution/trackers/{one}", distribution.trackers),
        ("GET", f"distribution/trackers/{one}/{{id}}", distribution.tracker),
    ]
    return [route(f"{PREFIX}/{path}", guarded(handler), method) for method, path, handler in table]
