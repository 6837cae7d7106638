# SPDX-License-Identifier: GPL-3.0-or-later
"""Routes of Release Lifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sandbox.repo.lifecycle import bundles, distribution, promotions
from sandbox.repo.lifecycle.responses import PREFIX, guarded
from sandbox.service import route

if TYPE_CHECKING:
    from starlette.routing import Route

    from sandbox.service import Handler


def routes() -> list[Route]:
    bundle = "{name}/{version}"
    table: list[tuple[str, str, Handler]] = [
        ("POST", "release_bundle", bundles.create),
        ("GET", f"release_bundle/existence/{bundle}", bundles.existence),
        ("GET", f"release_bundle/statuses/{bundle}", bundles.status),
        ("GET", "release_bundle/groups", bundles.groups),
        ("GET", "release_bundle/records/{name}", bundles.versions),
        ("GET", f"release_bundle/records/{bundle}", bundles.record),
        ("DELETE", f"release_bundle/records/{bundle}", bundles.delete),
        ("POST", f"promotion/records/{bundle}", promotions.promote),
        ("GET", f"promotion/records/{bundle}", promotions.records),
        ("GET", f"promotion/records/{bundle}/{{millis}}", promotions.details),
        ("GET", f"promotion/statuses/{bundle}/{{millis}}", promotions.status),
        ("POST", f"distribution/distribute/{bundle}", distribution.handler("distribute")),
        ("POST", f"distribution/remote_delete/{bundle}", distribution.handler("delete")),
        ("GET", f"distribution/trackers/{bundle}", distribution.trackers),
        ("GET", f"distribution/trackers/{bundle}/{{id}}", distribution.tracker),
    ]
    return [route(f"{PREFIX}/{path}", guarded(handler), method) for method, path, handler in table]
