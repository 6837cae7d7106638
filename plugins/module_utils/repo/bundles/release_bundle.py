# SPDX-License-Identifier: GPL-3.0-or-later
"""Create and delete versions of release bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...core.errors import ToolchainError, shorten
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.plan import Plan, without_none
from ..client import objects
from .lifecycle import COMPLETED, Bundle, BundleWaitOptions, Progress, SigningKey, check_wait
from .sources import BundleContent, BundleSourcesOptions, Sources

_DELETING = "DELETING"


@dataclass(frozen=True, kw_only=True)
class ReleaseBundleOptions(BundleWaitOptions):
    """The options of `release_bundle`."""

    constraints: ClassVar[dict[str, Any]] = {"required_if": [("state", "present", ["sources"])]}

    signing_key: SigningKey = None
    sources: BundleSourcesOptions | None = None
    skip_docker_manifest_resolution: bool = False
    state: Literal["present", "absent"] = "present"
    replace: bool = False


class ReleaseBundleOperation:
    """Create or delete a version, or compare an existing version with its sources.

    Server fact [repo-33]: a version is immutable, so it can only be deleted and created again.
    """

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "read": reads("read"),
            "create": writes("read", unforeseen=("deploy",)),
            "delete": writes("read", unforeseen=("delete",)),
        },
        kind="release bundle",
        name="{name}/{version}",
    )

    def __init__(self, task: Task, options: ReleaseBundleOptions) -> None:
        check_wait(options)
        self._task, self._options = task, options
        self._bundle = Bundle(task, options)
        self._sources: Sources | None = None
        if options.state == "present":
            self._sources = Sources(
                task,
                self._bundle,
                options.sources or BundleSourcesOptions(),
                skips_manifests=options.skip_docker_manifest_resolution,
            )

    def plan(self) -> Plan:
        found = self._bundle.state()
        if self._sources is None:
            return self._removal(found)
        if found is None:
            return self._creation({}, self._sources.content())
        if found.running:
            return Plan({}, {}, result={"bundle": self._bundle.shown(found.status)}, waits=True)
        if found.status == COMPLETED:
            return self._comparison(self._sources)
        return self._repair(found, self._sources)

    def _comparison(self, sources: Sources) -> Plan:
        """Return the plan for a completed version: unchanged if its artifacts match the sources."""
        record = self._bundle.record()
        recorded = objects(record.get("artifacts"))
        differences = sources.content(recorded).differences(recorded)
        if not differences:
            return Plan({}, {}, result={"bundle": self._bundle.shown(COMPLETED, record)})
        if not self._options.replace:
            raise self._conflict(differences)
        paths = [str(artifact.get("path")) for artifact in recorded]
        return self._creation({"artifacts": paths}, sources.content())

    def _conflict(self, differences: Sequence[str]) -> ToolchainError:
        return ToolchainError(
            "conflict",
            f"{self._bundle.label} already exists with different content:"
            f" {shorten('; '.join(differences), 600)}. Use another version, or set replace: true to"
            " delete and recreate this one",
        )

    def _repair(self, found: Progress, sources: Sources) -> Plan:
        """Return the plan to recreate an incomplete version. Raises an error without `replace`."""
        if found.status == _DELETING:
            raise ToolchainError(
                "conflict", f"{self._bundle.label} is being deleted: try again later"
            )
        if not self._options.replace:
            kind: Literal["failed", "conflict"] = "failed" if found.failed else "conflict"
            raise ToolchainError(
                kind,
                f"{self._bundle.label} is incomplete: the server reports {found.reported}. Set"
                " replace: true to delete and recreate it",
            )
        return self._creation({"status": found.status}, sources.content())

    def _creation(self, before: Mapping[str, Any], content: BundleContent) -> Plan:
        desired = without_none(
            {
                "name": self._bundle.name,
                "version": self._bundle.version,
                "project": self._bundle.project,
                "artifacts": content.labels() or None,
                "query": None if self._options.sources is None else self._options.sources.aql,
            }
        )
        known = {name: desired[name] for name in ("name", "version", "project") if name in desired}
        result = {"bundle": self._bundle.shown(None)}
        if before:
            return Plan({**known, **before}, desired, "update", result=result, data=content)
        return Plan({}, desired, "create", result=result, data=content)

    def _removal(self, found: Progress | None) -> Plan:
        result = {"bundle": self._bundle.shown(None)}
        if found is None:
            return Plan({}, {}, result=result)
        if found.status == _DELETING:
            return Plan({}, {}, result=result, waits=True)
        before = {
            "name": self._bundle.name,
            "version": self._bundle.version,
            "status": found.status,
        }
        return Plan(before, {}, "delete", result=result)

    def predict(self, plan: Plan) -> None:
        """Record for later tasks in check mode that this task would create the version."""
        if self._sources is not None:
            self._bundle.predict()

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        if self._sources is None:
            self._delete(plan, wait=self._options.wait)
            return {}
        if plan.changed:
            if plan.action == "update":
                self._delete(plan, wait=True)
            self._create(self._sources)
        return {"bundle": self._finished(self._sources, plan.data)}

    def _delete(self, plan: Plan, *, wait: bool) -> None:
        bundle, doing = self._bundle, f"deleting {self._bundle.label}"
        if plan.changed:
            path = bundle.path("release_bundle/records")
            bundle.write(doing, "DELETE", path, verify=self._is_going, repeatable=True)
        if not wait:
            return

        def left() -> Progress | None:
            found = bundle.state()
            return None if found is None else Progress("PENDING")

        bundle.follow(doing, left, self._options.polling())

    def _is_going(self) -> bool:
        found = self._bundle.state()
        return found is None or found.status == _DELETING

    def _create(self, sources: Sources) -> None:
        options, bundle = self._options, self._bundle
        body = {
            "release_bundle_name": bundle.name,
            "release_bundle_version": bundle.version,
            "skip_docker_manifest_resolution": options.skip_docker_manifest_resolution,
            **sources.body(),
        }
        bundle.write(
            f"creating {bundle.label}",
            "POST",
            "api/v2/release_bundle",
            signing_key=options.signing_key,
            verify=lambda: bundle.state() is not None,
            json=body,
        )

    def _status(self) -> Progress:
        """Return the status of the version; a missing version counts as pending, because a new one
        may appear with a delay.
        """
        return self._bundle.status() or Progress("PENDING")

    def _finished(self, sources: Sources, created: BundleContent | None) -> dict[str, Any]:
        """Wait until the version is complete and verify its artifacts; return the return value
        `bundle`.

        :param created: expected artifacts if this task requested the creation; `None` if another
            client did
        """
        bundle = self._bundle
        if not self._options.wait:
            found = bundle.status()
            return bundle.shown(None if found is None else found.status)
        try:
            found = bundle.follow(f"creating {bundle.label}", self._status, self._options.polling())
        except ToolchainError as error:
            error.result.setdefault("changed", created is not None)
            raise
        if found is None or found.status != COMPLETED:
            status = "" if found is None else found.status
            raise ToolchainError(
                "failed", f"creating {bundle.label}: the version has the status '{status}'"
            )
        record = bundle.record()
        recorded = objects(record.get("artifacts"))
        content = sources.content(recorded) if created is None else created
        differences = content.differences(recorded)
        if differences:
            conflict = self._conflict(differences)
            conflict.result["changed"] = created is not None
            raise conflict
        return bundle.shown(COMPLETED, record)
