# SPDX-License-Identifier: GPL-3.0-or-later
"""The distributions and remote deletions of a release bundle, which the server calls trackers
[repo-33].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.http.messages import Response, unexpected_body
from ...core.paths.globs import has_wildcards, matcher
from ...core.plan import without_none
from ...core.times import moment_of
from ..client import objects
from .lifecycle import COMPLETED, Bundle, Progress, progress_of

_IDS = ("id", "distribution_id", "distribution_tracker_friendly_id", "distribution_friendly_id")


@dataclass(frozen=True)
class DistributionRuleOptions:
    """The suboptions of `rules`; an empty part matches every site."""

    site: str | None = None
    city: str | None = None
    countries: list[str] | None = None

    def body(self) -> dict[str, Any]:
        return {
            "site_name": self.site or "*",
            "city_name": self.city or "*",
            "country_codes": self.countries or ["*"],
        }


@dataclass(frozen=True)
class EdgeSite:
    """A site in a tracker."""

    name: str
    progress: Progress
    error: str

    def as_dict(self) -> dict[str, Any]:
        return without_none(
            {"name": self.name, "status": self.progress.status, "error": self.error or None}
        )


@dataclass(frozen=True)
class Tracker:
    """A distribution, or a deletion on sites; `rules` is `None` if the server shows none."""

    id: str
    deletes: bool
    progress: Progress
    sites: Sequence[EdgeSite] = ()
    rules: Sequence[Mapping[str, Any]] | None = None

    @property
    def counts(self) -> bool:
        """Return whether the sites have, or will have, what the tracker does."""
        return self.progress.running or self.progress.status == COMPLETED

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "status": self.progress.status,
            "sites": [site.as_dict() for site in self.sites],
        }


def read_trackers(bundle: Bundle) -> list[Tracker]:
    """Return all trackers of a bundle, oldest first. Raises `not_found` if the bundle does not
    exist.
    """
    response = bundle.read("reading the distributions", bundle.path("distribution/trackers"))
    found = response.json()
    if isinstance(found, Mapping):
        found = next((rows for rows in found.values() if isinstance(rows, list)), None)
    if not isinstance(found, list):
        raise unexpected_body(response, "a list of distributions")
    rows = sorted(objects(found), key=_age_of(objects(found)))
    trackers = [tracker_of(response, row) for row in rows]
    return [
        one if "sites" in row else read_tracker(bundle, one.id)
        for one, row in zip(trackers, rows, strict=True)
    ]


def _age_of(rows: Sequence[Mapping[str, Any]]) -> Callable[[Mapping[str, Any]], Any]:
    """Return the key that sorts trackers by age; their order in the list is not documented."""
    for name in ("created_millis", "created", "start_time"):
        if rows and all(moment_of(row.get(name)) for row in rows):
            return lambda row: moment_of(row.get(name))
    if all(str(_id_of(row)).isdigit() for row in rows):
        return lambda row: int(str(_id_of(row)))
    return lambda row: 0


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
    sites = [_site(response, obj) for obj in objects(row.get("sites"))]
    rules = row.get("distribution_rules")
    return Tracker(
        str(identity),
        "delete" in str(row.get("type") or "").lower(),
        progress_of(response, row),
        sites,
        objects(rules) if isinstance(rules, list) else None,
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
    """The sites that have a bundle, by all trackers.

    :param known: sites that any tracker names
    :param rules: rules of distributions that no deletion followed; `None` if a tracker does not
        show its rules
    """

    reached: set[str] = field(default_factory=set)
    known: set[str] = field(default_factory=set)
    rules: list[Mapping[str, Any]] | None = field(default_factory=list)

    def has_all(self, wanted: Iterable[DistributionRuleOptions]) -> bool:
        """Return whether all sites of the rules have the bundle."""
        return all(self._meets(rule) for rule in wanted)

    def has_any(self, wanted: Iterable[DistributionRuleOptions]) -> bool:
        """Return whether any site of the rules has the bundle."""
        return any(self._sites_of(rule) & self.reached for rule in wanted)

    def _sites_of(self, rule: DistributionRuleOptions) -> set[str]:
        """Return the known sites of a rule. Trackers name no cities and countries."""
        return set(filter(matcher(rule.site or "*"), self.known))

    def _meets(self, rule: DistributionRuleOptions) -> bool:
        single = rule.site is not None and not has_wildcards(rule.site)
        if single and rule.city is None and rule.countries is None:
            return rule.site in self.reached
        sites = self._sites_of(rule)
        if not sites or not sites <= self.reached:
            return False
        # which sites there are is not known: an earlier rule must have been as wide
        return self.rules is None or any(_covers(one, rule.body()) for one in self.rules)


def reach_of(trackers: Iterable[Tracker]) -> Reach:
    """Return the sites that have the bundle; a tracker that failed reached its completed sites."""
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
            _add_rules(found, tracker)
    return found


def _add_rules(found: Reach, tracker: Tracker) -> None:
    if tracker.rules is None:
        found.rules = None
    elif found.rules is not None and tracker.counts:
        found.rules += tracker.rules


def _covers(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a rule matches at least the sites of another rule."""
    for name in ("site_name", "city_name"):
        if (there.get(name) or "*") not in ("*", wanted[name]):
            return False
    countries = set(there.get("country_codes") or ["*"])
    return "*" in countries or set(wanted["country_codes"]) <= countries
