# SPDX-License-Identifier: GPL-3.0-or-later
"""Distribute a release bundle version to edge sites, or delete it from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, listed, quoted, rejected, shorten
from ...core.globs import has_wildcards, matcher
from ...core.http.messages import Response, unexpected_body
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, without_none
from ...core.times import moment_of
from ...core.verification import without_effect
from ..builds.records import OLDEST
from ..client import InterfaceMissing, object_of
from ..service import SERVICE
from .lifecycle import COMPLETED, Bundle, BundleWaitOptions, Progress, progress_of

_NONE: Mapping[str, Any] = {"id": None, "status": None, "sites": []}


_IDS = ("id", "distribution_id", "distribution_tracker_friendly_id", "distribution_friendly_id")


@dataclass(frozen=True)
class DistributionRuleOptions:
    """The suboptions of `rules`; one that is not set matches every site."""

    site: str | None = None
    city: str | None = None
    countries: list[str] | None = None

    @property
    def single(self) -> str | None:
        """Return the name of the site if the rule has nothing else."""
        is_name = (
            self.city is None and self.countries is None and not has_wildcards(self.site or "")
        )
        return self.site if is_name else None

    def body(self) -> dict[str, Any]:
        return {
            "site_name": self.site or "*",
            "city_name": self.city or "*",
            "country_codes": self.countries or ["*"],
        }


@dataclass(frozen=True)
class EdgeSite:
    """An edge site in a tracker, with the status and the error of the operation there."""

    name: str
    progress: Progress
    error: str

    def as_dict(self) -> dict[str, Any]:
        return without_none(
            {"name": self.name, "status": self.progress.status, "error": self.error or None}
        )


@dataclass(frozen=True)
class Tracker:
    """A distribution to sites, or a deletion from sites.

    :param deletes: whether it is a deletion
    :param rules: distribution rules in the format of the server; `None` if it returns none
    """

    id: str
    deletes: bool
    progress: Progress
    sites: Sequence[EdgeSite] = ()
    rules: Sequence[Mapping[str, Any]] | None = None

    @property
    def is_active(self) -> bool:
        """Return whether the operation is completed or running."""
        return self.progress.running or self.progress.status == COMPLETED

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.progress.status,
            "sites": [site.as_dict() for site in self.sites],
        }


def read_trackers(bundle: Bundle) -> list[Tracker]:
    """Read all trackers of a version with their sites, oldest first.

    Raises `not_found` if the version does not exist.
    """
    response = bundle.read("reading the distributions", bundle.path("distribution/trackers"))
    found = response.json()
    if isinstance(found, Mapping):
        found = next((rows for rows in found.values() if isinstance(rows, list)), None)
    if not isinstance(found, list):
        raise unexpected_body(response, "a list of distributions")
    rows = json_objects(found)
    # the order of the server's list is not documented; without usable times and ids, it is kept
    times = ("created_millis", "created", "start_time")
    by = next((name for name in times if all(moment_of(row.get(name)) for row in rows)), None)
    if by is not None:
        rows = sorted(rows, key=lambda row: moment_of(row.get(by)) or OLDEST)
    elif all(str(_id_of(row)).isdigit() for row in rows):
        rows = sorted(rows, key=lambda row: int(str(_id_of(row))))
    trackers = [tracker_of(response, row) for row in rows]
    return [
        tracker if "sites" in row else read_tracker(bundle, tracker.id)
        for tracker, row in zip(trackers, rows, strict=True)
    ]


def read_tracker(bundle: Bundle, identity: str) -> Tracker:
    path = bundle.path("distribution/trackers", identity)
    response = bundle.read("reading a distribution", path)
    found = response.json()
    if isinstance(found, list):
        found = found[0] if found else None
    if not isinstance(found, Mapping):
        raise unexpected_body(response, "a distribution")
    return tracker_of(response, {"id": identity, **found})


def tracker_of(response: Response, row: Mapping[str, Any]) -> Tracker:
    identity = _id_of(row)
    if identity is None:
        raise unexpected_body(response, "distributions with an id")
    sites = [_site(response, obj) for obj in json_objects(row.get("sites"))]
    rules = row.get("distribution_rules")
    return Tracker(
        str(identity),
        "delete" in str(row.get("type") or "").lower(),
        progress_of(response, row),
        sites,
        json_objects(rules) if isinstance(rules, list) else None,
    )


def _id_of(row: Mapping[str, Any]) -> Any:
    return next((row[name] for name in _IDS if row.get(name) is not None), None)


def _site(response: Response, row: Mapping[str, Any]) -> EdgeSite:
    target = row.get("target_artifactory")
    named = target.get("name") if isinstance(target, Mapping) else target
    error = str(row.get("general_error") or "")
    return EdgeSite(str(named or row.get("name") or "?"), progress_of(response, row), error)


@dataclass
class Reach:
    """The sites that have a version, as computed from all of its trackers.

    :param reached: names of the sites that have the version
    :param known: names of all sites in the trackers
    :param rules: rules of the distributions; `None` if a tracker lacks its rules
    """

    reached: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    rules: list[Mapping[str, Any]] | None = field(default_factory=list)

    def has_all(self, wanted: Iterable[DistributionRuleOptions]) -> bool:
        """Return whether all sites that match the rules have the version."""
        for rule in wanted:
            if rule.single is not None:
                is_met = rule.single in self.reached
            else:
                sites = self._sites_of(rule)
                # further sites may exist, so an earlier rule must have matched at least these
                is_met = (
                    bool(sites)
                    and sites <= self.reached
                    and (
                        self.rules is None or any(_covers(each, rule.body()) for each in self.rules)
                    )
                )
            if not is_met:
                return False
        return True

    def has_any(self, wanted: Iterable[DistributionRuleOptions]) -> bool:
        """Return whether any site that matches the rules has the version."""
        return any(self._sites_of(rule) & self.reached for rule in wanted)

    def _sites_of(self, rule: DistributionRuleOptions) -> set[str]:
        """Return the known sites that match a rule by name.

        Cities and countries are ignored, because trackers do not contain them.
        """
        return set(filter(matcher(rule.site or "*"), self.known))


def reach_of(trackers: Iterable[Tracker]) -> Reach:
    """Return the sites that have the version, from its trackers (oldest first).

    A failed tracker still counts for the sites at which it completed.
    """
    found = Reach()
    for tracker in trackers:
        names = {site.name for site in tracker.sites}
        done = {
            site.name
            for site in tracker.sites
            if site.progress.running or site.progress.status == COMPLETED
        }
        found.known |= names
        if tracker.deletes:
            found.reached -= done
        else:
            found.reached |= done
            if tracker.rules is None:
                found.rules = None
            elif found.rules is not None and tracker.is_active:
                found.rules += tracker.rules
    return found


def _covers(rule: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a rule matches at least the sites of the wanted rule."""
    for name in ("site_name", "city_name"):
        if (rule.get(name) or "*") not in ("*", wanted[name]):
            return False
    countries = set(rule.get("country_codes") or ["*"])
    return "*" in countries or set(wanted["country_codes"]) <= countries


@dataclass(frozen=True)
class RepositoryMappingOptions:
    """The suboptions of `mappings`."""

    input: str
    output: str


@dataclass(frozen=True, kw_only=True)
class ReleaseBundleDistributeOptions(BundleWaitOptions):
    """The options of `release_bundle_distribute`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=("mappings", "create_repositories")),
    )

    rules: Annotated[list[DistributionRuleOptions] | None, Option(empty=False)] = None
    create_repositories: bool = False
    mappings: list[RepositoryMappingOptions] | None = None
    state: Literal["present", "absent"] = "present"


class ReleaseBundleDistributeOperation:
    """Distribute a version to the sites that lack it, or delete it from sites.

    Server fact [repo-33]: every request adds a tracker, even if it changes nothing.
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "distribute": writes("read", unforeseen=("deploy",)),
            "delete": writes("read", unforeseen=("deploy",)),
        },
        kind="release bundle",
        name="{project}:{name}/{version}@{repository}",
    )

    def __init__(self, task: Task, options: ReleaseBundleDistributeOptions) -> None:
        self._options, self._bundle = options, Bundle(task, options)
        self._rules = options.rules or [DistributionRuleOptions()]
        self._deletes = options.state == "absent"
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
            distribution = self._finished(tracker)
            if plan.changed and not self._deletes:
                self._require_sites(plan.before.get("sites", []), distribution)
            return {"distribution": distribution}
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
            body["modifications"] = {"mappings": [asdict(mapping) for mapping in options.mappings]}
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
        found = object_of(response, "a distribution") if response.body.strip() else {}
        if found.get("id") is not None:
            return str(found["id"])
        if not new and not was_sent():
            raise without_effect(self._doing, "it lists no new tracker")
        return new[-1]

    def _require_sites(self, reached: Sequence[str], distribution: Mapping[str, Any]) -> None:
        """Raise `rejected` if the server ignored a rule, because it has no site with its name.

        :param reached: names of the sites that had the version before
        """
        names = [site["name"] for site in distribution["sites"]]
        singles = (rule.single for rule in self._rules)
        unknown = [site for site in singles if site is not None and site not in {*names, *reached}]
        if names and unknown:
            error = rejected(
                f"{self._doing}: the server distributed it to {listed(names)}, but not to"
                f" {quoted(unknown)}: correct rules"
            )
            error.result["distribution"] = distribution
            raise error

    def _finished(self, tracker: str) -> dict[str, Any]:
        """Wait until a tracker has ended, unless `wait` is false; return the return value
        `distribution`.

        :param tracker: id of the tracker
        """
        self._bundle.task.unlock()
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
