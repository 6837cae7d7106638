# SPDX-License-Identifier: GPL-3.0-or-later
"""Read release bundles and their promotions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core import address
from ...core.errors import not_found
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, ReadOnly, unchanged, without_none
from ..client import LIFECYCLE, PlatformClient
from ..service import SERVICE
from .lifecycle import Bundle, BundleOptions, check_names, pages
from .release_bundle_promote import read_promotions


@dataclass(frozen=True)
class ReleaseBundleInfoOptions:
    """The options of `release_bundle_info`."""

    constraints: ClassVar[dict[str, Any]] = {"required_by": {"version": ("name",)}}

    name: str | None = None
    version: str | None = None
    project: str | None = None
    repository_key: Annotated[str | None, Option(secret=False)] = None


class ReleaseBundleInfoOperation(ReadOnly):
    """Read a version, all versions of a name, or the newest versions of all names."""

    descriptor: ClassVar = Descriptor(
        SERVICE, dict.fromkeys(("version", "versions", "names"), reads("read"))
    )

    def __init__(self, task: Task, options: ReleaseBundleInfoOptions) -> None:
        check_names(options)
        self._task, self._options = task, options
        self._client = PlatformClient(task, LIFECYCLE)
        self._query = without_none(
            {"project": options.project, "repository_key": options.repository_key}
        )

    def plan(self) -> Plan:
        name, version = self._options.name, self._options.version
        if name is None:
            return unchanged({"bundles": self._names()})
        if version is None:
            return unchanged({"bundles": self._versions(name)})
        options = BundleOptions(
            name=name,
            version=version,
            project=self._options.project,
            repository_key=self._options.repository_key,
        )
        bundle = Bundle(self._task, options, self._client)
        found = bundle.state()
        if found is None:
            raise not_found(f"there is no {bundle.label.removeprefix('the ')}")
        shown = {**bundle.shown(found.status), "messages": list(found.messages), "promotions": []}
        if not (found.running or found.status == "DELETING"):
            promotions = [promotion.as_dict() for promotion in read_promotions(bundle)]
            promotions.sort(key=lambda promotion: -promotion["created_millis"])
            whole = bundle.shown(found.status, bundle.record())
            shown |= {**whole, "promotions": promotions}
        return unchanged({"bundles": [shown]})

    def _versions(self, name: str) -> list[dict[str, Any]]:
        path = f"api/v2/release_bundle/records/{address.path(name)}"
        purpose = f"reading the versions of the release bundle '{name}'"
        rows = pages(self._client, purpose, path, "release_bundles", self._query)
        return [self._row(row, "release_bundle_version") for _response, row in rows]

    def _names(self) -> list[dict[str, Any]]:
        path, purpose = "api/v2/release_bundle/groups", "reading the release bundles"
        rows = pages(self._client, purpose, path, "release_bundles", self._query)
        return [
            {
                **self._row(row, "release_bundle_version_latest"),
                "versions": row.get("release_bundle_versions_count"),
            }
            for _response, row in rows
        ]

    def _row(self, row: Mapping[str, Any], version: str) -> dict[str, Any]:
        return {
            "name": row.get("release_bundle_name"),
            "version": row.get(version),
            "project": self._options.project,
            "repository_key": row.get("repository_key"),
            "status": row.get("status"),
            "created": row.get("created"),
            "created_by": row.get("created_by"),
        }
