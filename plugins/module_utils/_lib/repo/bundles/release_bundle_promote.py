# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote a release bundle version to an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError
from ...core.http.messages import Response, unexpected_body
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, unchanged, without_none
from ...core.times import iso, moment_of, waiting
from ...core.verification import without_effect
from .. import repositories
from ..builds.soak import EnvironmentSoak, time_in
from ..client import RepoClient, object_of, repository_key
from ..service import SERVICE
from .lifecycle import (
    COMPLETED,
    Bundle,
    BundleWaitOptions,
    Progress,
    SigningKey,
    pages,
    progress_of,
)

Keys = Annotated["list[str] | None", Option(empty=False)]


@dataclass(frozen=True)
class BundlePromotion:
    """A promotion of a release bundle version to an environment.

    :param millis: creation time in epoch milliseconds, by which the server identifies a promotion
    :param included: repository keys; `None` if the server does not return them
    :param excluded: repository keys; `None` if the server does not return them
    """

    environment: str
    progress: Progress
    millis: int
    created: str | None
    included: Sequence[str] | None = None
    excluded: Sequence[str] | None = None

    @property
    def is_active(self) -> bool:
        """Return whether the promotion is completed or running."""
        return self.progress.running or self.progress.status == COMPLETED

    def as_dict(self) -> dict[str, Any]:
        return {
            "environment": self.environment,
            "status": self.progress.status,
            "created": self.created,
            "created_millis": self.millis,
            "included_repositories": list(self.included or []),
        }


def read_promotions(bundle: Bundle) -> list[BundlePromotion]:
    """Return all promotions of a version to any environment.

    Raises `not_found` if the version does not exist.
    """
    return [_promotion(*row) for row in _promotion_rows(bundle)]


def _promotion_rows(bundle: Bundle) -> list[tuple[Response, Mapping[str, Any]]]:
    """Return all promotions of a version, each with the response that contains it."""
    purpose, query = f"reading the promotions of {bundle.label}", {**bundle.query, "include": "MSG"}
    path = bundle.path("promotion/records")
    return pages(bundle.client, purpose, path, "promotions", query)


def _promotion(response: Response, row: Mapping[str, Any]) -> BundlePromotion:
    created, millis = row.get("created"), row.get("created_millis")
    moment = moment_of(created)
    if millis is None and moment is not None:
        millis = int(moment.timestamp() * 1000)
    if not str(millis).isdigit():
        raise unexpected_body(response, "promotions with created_millis")
    return BundlePromotion(
        str(row.get("environment") or ""),
        progress_of(response, row),
        int(str(millis)),
        None if created is None else str(created),
        _keys(row.get("included_repository_keys")),
        _keys(row.get("excluded_repository_keys")),
    )


def _keys(value: Any) -> list[str] | None:
    return [str(key) for key in value] if isinstance(value, list) else None


@dataclass(frozen=True, kw_only=True)
class ReleaseBundlePromoteOptions(BundleWaitOptions):
    """The options of `release_bundle_promote`."""

    environment: str
    included_repositories: Keys = None
    excluded_repositories: Keys = None
    operation: Literal["copy", "move"] = "copy"
    signing_key: SigningKey = None
    soak: EnvironmentSoak | None = None


class ReleaseBundlePromoteOperation:
    """Promote a version, unless its newest promotion to the environment already matches.

    Server fact [repo-33]: every request adds a promotion, even an identical one.
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"promote": writes("read", unforeseen=("deploy",))},
        kind="release bundle",
        name="{project}:{name}/{version}@{repository}",
    )

    def __init__(self, task: Task, options: ReleaseBundlePromoteOptions) -> None:
        for name in ("included_repositories", "excluded_repositories"):
            for key in getattr(options, name) or ():
                repository_key(name, key)
        self._named = [
            *(options.included_repositories or ()),
            *(options.excluded_repositories or ()),
        ]
        self._task, self._options, self._bundle = task, options, Bundle(task, options)
        self._doing = f"promoting {self._bundle.label} to {options.environment}"

    def plan(self) -> Plan:
        plan, soak = self._plan(), self._options.soak
        if soak is not None and plan.changed:
            self._require_soak(soak)
        return plan if soak is None or not soak.check_only else unchanged(plan.result)

    def _require_soak(self, soak: EnvironmentSoak) -> None:
        """Raise `waiting` if the version has not been in the environment for long enough."""
        bundle, stage = self._bundle, soak.environment
        if self._task.predictions.get("promotion", *bundle.prediction_key, stage):
            soak.require_prediction(bundle.label, stage)
        rows = [] if bundle.is_predicted else _promotion_rows(bundle)
        found = [(response, row, _promotion(response, row)) for response, row in rows]
        times = [
            (time_in(response, row.get("created"), bundle.label), response, promotion)
            for response, row, promotion in found
            if promotion.environment == stage and promotion.is_active
        ]
        if not times:
            raise soak.missing(bundle.label, stage)
        newest, response, _newest = max(times, key=lambda entry: entry[0])
        if any(promotion.progress.running for _time, _response, promotion in times):
            # its time in the environment has not begun
            reason = f"a promotion of {bundle.label} to '{stage}' is still running"
            raise waiting(f"{reason}, since {iso(newest)}", None)
        soak.require(bundle.label, stage, newest, response)

    def predict(self, _plan: Plan) -> None:
        name = (*self._bundle.prediction_key, self._options.environment)
        self._task.predictions.add("promotion", *name)

    def _plan(self) -> Plan:
        if self._bundle.is_predicted:
            return self._planned(None)
        found = self._promotions()
        known = [promotion.millis for promotion in found]
        newest = max(found, key=lambda promotion: promotion.millis, default=None)
        if newest is not None and newest.is_active and self._has_wanted_repositories(newest):
            result = {"promotion": self._shown(newest)}
            return Plan({}, {}, result=result, waits=newest.progress.running, data=known)
        self._bundle.require_completed()
        return self._planned(newest).with_data(known)

    def _promotions(self) -> list[BundlePromotion]:
        """Return the promotions of the version to the environment of the task."""
        return [
            promotion
            for promotion in read_promotions(self._bundle)
            if promotion.environment == self._options.environment
        ]

    def _has_wanted_repositories(self, newest: BundlePromotion) -> bool:
        """Return whether a promotion has the repositories of the options.

        An option that is not set is not compared.
        """
        options = self._options
        if options.included_repositories is None and options.excluded_repositories is None:
            return True
        included, excluded = newest.included, newest.excluded
        if included is None:
            path = self._bundle.path("promotion/records", str(newest.millis))
            found = object_of(self._bundle.read("reading a promotion", path), "a promotion")
            included = _keys(found.get("included_repository_keys"))
            excluded = _keys(found.get("excluded_repository_keys"))
        # server fact [repo-33]: even the details of a promotion may lack the repositories
        return all(
            wanted is None or current is None or set(wanted) == set(current)
            for wanted, current in (
                (options.included_repositories, included),
                (options.excluded_repositories, excluded),
            )
        )

    def _shown(self, promotion: BundlePromotion) -> dict[str, Any]:
        """Return the return value `promotion` of one that has the wanted repositories."""
        included = promotion.included or self._options.included_repositories
        return replace(promotion, included=included).as_dict()

    def _planned(self, newest: BundlePromotion | None) -> Plan:
        """Return the plan for a new promotion. Raises `not_found` for an unknown repository."""
        options = self._options
        if self._named:
            repositories.require(RepoClient(self._task), self._named)
        keys = without_none(
            {
                "included_repositories": options.included_repositories,
                "excluded_repositories": options.excluded_repositories,
            }
        )
        after = {"environment": options.environment, "status": COMPLETED, **keys}
        before = {} if newest is None else newest.as_dict()
        before = {name: before[name] for name in after if before.get(name) is not None}
        promotion = BundlePromotion(
            options.environment, Progress(""), 0, None, options.included_repositories
        )
        shown = {**promotion.as_dict(), "status": None, "created_millis": None}
        if before == after:
            before = {**before, "status": None}
        action: Literal["create", "update"] = "update" if before else "create"
        return Plan(before, after, action, result={"promotion": shown})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        bundle, options = self._bundle, self._options
        known: list[int] = plan.data
        millis = None if plan.changed else max(known)
        try:
            if millis is None:
                if options.wait:
                    bundle.follow(f"creating {bundle.label}", bundle.status, options.polling())
                millis = self._send(known)
            return {"promotion": self._finished(millis)}
        except ToolchainError as error:
            if millis is not None:
                error.result.setdefault("changed", plan.changed)
            raise

    def _send(self, known: list[int]) -> int:
        """Request the promotion, and return its `created_millis`, which identifies it.

        :param known: `created_millis` of the promotions before the request
        """
        options = self._options
        body = without_none(
            {
                "environment": options.environment,
                "included_repository_keys": options.included_repositories,
                "excluded_repository_keys": options.excluded_repositories,
            }
        )
        response = self._bundle.write(
            self._doing,
            "POST",
            self._bundle.path("promotion/records"),
            query={"operation": options.operation},
            signing_key=options.signing_key,
            verify=lambda: self._newest_unknown(known) is not None,
            json=body,
        )
        found = object_of(response, "a promotion") if response.body.strip() else {}
        sent = found.get("created_millis")
        if isinstance(sent, (int, str)) and str(sent).isdigit():
            return int(sent)
        millis = self._newest_unknown(known)
        if millis is None:
            raise without_effect(self._doing, "it lists no new promotion")
        return millis

    def _newest_unknown(self, known: list[int]) -> int | None:
        """Return `created_millis` of the newest promotion to the environment that is not in
        `known`; `None` if there is none.
        """
        found = [promotion.millis for promotion in self._promotions()]
        return max(set(found) - set(known), default=None)

    def _finished(self, number: int) -> dict[str, Any]:
        """Wait until the promotion with these `created_millis` has ended; return the return value
        `promotion`.
        """
        self._task.unlock()
        path = self._bundle.path("promotion/statuses", str(number))

        def status() -> Progress:
            return progress_of(self._bundle.read("reading a promotion", path))

        if self._options.wait:
            found = self._bundle.follow(self._doing, status, self._options.polling())
            if found is not None and found.status != COMPLETED:
                raise ToolchainError(
                    "failed", f"{self._doing}: the promotion has the status {found.reported}"
                )
        for promotion in read_promotions(self._bundle):
            if promotion.millis == number:
                return self._shown(promotion)
        raise ToolchainError(
            "failed", f"{self._doing}: the server no longer has a record of the promotion"
        )
