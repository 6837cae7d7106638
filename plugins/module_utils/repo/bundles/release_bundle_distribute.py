# SPDX-License-Identifier: GPL-3.0-or-later
"""Distribute a release bundle version to edge sites, or delete it from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid, shorten
from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ..client import object_of
from ..platform.interface import InterfaceMissing
from .lifecycle import COMPLETED, Bundle, BundleWaitOptions, Progress, check_wait
from .trackers import (
    DistributionRuleOptions,
    Tracker,
    reach_of,
    read_tracker,
    read_trackers,
)

_NONE: Mapping[str, Any] = {"id": None, "status": None, "sites": []}


@dataclass(frozen=True)
class RepositoryMappingOptions:
    """The suboptions of `mappings`."""

    input: str
    output: str


@dataclass(frozen=True, kw_only=True)
class ReleaseBundleDistributeOptions(BundleWaitOptions):
    """The options of `release_bundle_distribute`."""

    rules: Annotated[list[DistributionRuleOptions] | None, Option(empty=False)] = None
    create_repositories: bool = False
    mappings: list[RepositoryMappingOptions] | None = None
    state: Literal["present", "absent"] = "present"


class ReleaseBundleDistributeOperation:
    """Distribute a version to the sites that lack it, or delete it from sites.

    Server fact [repo-33]: every request adds a tracker, even if it changes nothing.
    """

    descriptor: ClassVar = Descriptor(
        "repo",
        {
            "distribute": writes("read", unforeseen=("deploy",)),
            "delete": writes("read", unforeseen=("deploy",)),
        },
        kind="release bundle",
        name="{name}/{version}",
    )

    def __init__(self, task: Task, options: ReleaseBundleDistributeOptions) -> None:
        check_wait(options)
        self._options, self._bundle = options, Bundle(task, options)
        self._rules = options.rules or [DistributionRuleOptions()]
        self._deletes = options.state == "absent"
        if self._deletes and (options.mappings or options.create_repositories):
            raise invalid("mappings and create_repositories require state: present; omit them")
        verb = "deleting on its sites" if self._deletes else "distributing"
        self._doing = f"{verb} {self._bundle.label}"

    def plan(self) -> Plan:
        if self._bundle.is_predicted:
            return self._planned([]) if not self._deletes else self._unchanged(None)
        trackers = self._read()
        newest = trackers[-1] if trackers else None
        reach = reach_of(trackers)
        if newest is not None and newest.deletes == self._deletes and newest.progress.running:
            wanted = reach.has_any(self._rules) if self._deletes else not reach.has_all(self._rules)
            if not wanted:
                result = {"distribution": newest.as_dict()}
                return Plan({}, {}, result=result, waits=True, data=trackers)
        if self._deletes:
            if not reach.has_any(self._rules):
                return self._unchanged(newest)
        elif reach.has_all(self._rules):
            return self._unchanged([tracker for tracker in trackers if not tracker.deletes][-1])
        else:
            self._bundle.require_completed()
        return self._planned(sorted(reach.reached)).with_data(trackers)

    def _read(self) -> list[Tracker]:
        """Read the trackers; return none if the task deletes a version that does not exist."""
        try:
            return read_trackers(self._bundle)
        except ToolchainError as error:
            if error.status != 404 or not self._deletes or isinstance(error, InterfaceMissing):
                raise
            return []

    def _unchanged(self, tracker: Tracker | None) -> Plan:
        return Plan(
            {}, {}, result={"distribution": _NONE if tracker is None else tracker.as_dict()}
        )

    def _planned(self, reached: list[str]) -> Plan:
        rules = [rule.body() for rule in self._rules]
        result = {"distribution": _NONE}
        if self._deletes:
            return Plan({"sites": reached}, {"deleted": rules}, "delete", result=result)
        before = {"sites": reached} if reached else {}
        return Plan(before, {**before, "rules": rules}, "create", result=result)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        bundle, options = self._bundle, self._options
        known: list[Tracker] = plan.data
        tracker = None if plan.changed else known[-1].id
        try:
            if tracker is None:
                if options.wait and not self._deletes:
                    bundle.follow(f"creating {bundle.label}", bundle.status, options.polling())
                tracker = self._send({earlier.id for earlier in known})
            return {"distribution": self._finished(tracker)}
        except ToolchainError as error:
            if tracker is not None:
                error.result.setdefault("changed", plan.changed)
            raise

    def _send(self, known: set[str]) -> str:
        """Send the request; return the id of its tracker, which is not among the `known` ids."""
        options = self._options
        body: dict[str, Any] = {
            "dry_run": False,
            "distribution_rules": [rule.body() for rule in self._rules],
        }
        if not self._deletes:
            body["auto_create_missing_repositories"] = options.create_repositories
        if options.mappings:
            mappings = [
                {"input": mapping.input, "output": mapping.output} for mapping in options.mappings
            ]
            body["modifications"] = {"mappings": mappings}
        new: list[str] = []

        def was_sent() -> bool:
            new[:] = [
                tracker.id
                for tracker in read_trackers(self._bundle)
                if tracker.id not in known and tracker.deletes == self._deletes
            ]
            return bool(new)

        kind = "remote_delete" if self._deletes else "distribute"
        response = self._bundle.write(
            self._doing,
            "POST",
            self._bundle.path(f"distribution/{kind}"),
            verify=was_sent,
            json=body,
        )
        tracker = _id_in(response)
        if tracker is not None:
            return tracker
        if not new and not was_sent():
            raise ToolchainError(
                "failed", f"{self._doing}: the server reported success, but lists no new tracker"
            )
        return new[-1]

    def _finished(self, tracker: str) -> dict[str, Any]:
        """Wait until a tracker has ended, unless `wait` is false; return the return value
        `distribution`.

        :param tracker: id of the tracker
        """
        last: list[Tracker] = []

        def status() -> Progress:
            last[:] = [read_tracker(self._bundle, tracker)]
            return last[0].progress

        if not self._options.wait:
            status()
            return last[0].as_dict()
        try:
            self._bundle.follow(self._doing, status, self._options.polling())
        except ToolchainError as error:
            if last:
                error.result.setdefault("distribution", last[0].as_dict())
                wrong = [f"{site.name}: {site.error}" for site in last[0].sites if site.error]
                if wrong:
                    error.with_hint(shorten("; ".join(wrong), 600))
            raise
        if last[0].progress.status != COMPLETED:
            raise ToolchainError(
                "failed",
                f"{self._doing}: the server reports the status {last[0].progress.reported}",
            )
        return last[0].as_dict()


def _id_in(response: Response) -> str | None:
    """Return the tracker id in the response to a distribution request; `None` without a body."""
    if not response.body.strip():
        return None
    identity = object_of(response, "a distribution").get("id")
    return None if identity is None else str(identity)
