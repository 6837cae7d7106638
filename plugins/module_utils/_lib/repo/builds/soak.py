# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide whether a build or a bundle has been in a stage for long enough to be promoted [C2.6]."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

from ...core.errors import ToolchainError, conflict, excerpt, not_found
from ...core.http.messages import Response, expected, unexpected_body
from ...core.module.typed_options import Option
from ...core.times import age_of, iso, moment_of, waiting
from ..client import RepoClient
from . import records
from .records import BuildKey

# Without a zone, a time could be hours wrong, and the promotion would come too early.
_ZONE = re.compile(r".*(?:Z|GMT|UTC|[+-]\d\d:?\d\d)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Soak:
    """The suboptions that all modules with the option `soak` have."""

    duration: Annotated[str, Option(name="for")]
    check_only: bool = False

    def check(self) -> None:
        age_of("for", self.duration)

    def missing(self, label: str, stage: str) -> ToolchainError:
        """Return the error for an object that nobody has promoted to the stage."""
        return not_found(
            f"{label} has no promotion to '{stage}', in which it must stay for {self.duration}"
            " before this promotion: promote it to that stage first"
        )

    def require(self, label: str, stage: str, newest: datetime, response: Response) -> None:
        """Raise `waiting` if the object has not been in the stage for long enough.

        :param newest: time of the newest promotion to the stage
        :param response: response of the server whose clock decides
        """
        now = response.date if _ZONE.fullmatch(response.headers.get("Date", "").strip()) else None
        if now is None:
            raise response.error(
                "protocol",
                f"the response has no valid Date, so it is unknown how long {label} has been in"
                f" '{stage}'",
            )
        self._require_age(label, stage, newest, now)

    def require_prediction(self, label: str, stage: str) -> None:
        """Raise `waiting` for an object that the run in check mode would promote to the stage."""
        now = datetime.now(timezone.utc)
        self._require_age(label, stage, now, now)

    def _require_age(self, label: str, stage: str, newest: datetime, now: datetime) -> None:
        age = age_of("for", self.duration)
        if now - newest >= age:
            return
        try:
            until = newest + age
        except OverflowError:  # after the year 9999
            until = None
        reason = f"{label} must stay in '{stage}' for {self.duration}, since {iso(newest)}"
        raise waiting(reason, until)


@dataclass(frozen=True, kw_only=True)
class StatusSoak(Soak):
    """The option `soak` of builds."""

    status: str


@dataclass(frozen=True, kw_only=True)
class EnvironmentSoak(Soak):
    """The option `soak` of release bundles."""

    environment: str


def time_in(response: Response, value: Any, label: str) -> datetime:
    """Parse the time of a promotion. Raises `protocol` if it is invalid or has no time zone."""
    moment = moment_of(value) if isinstance(value, str) and _ZONE.fullmatch(value) else None
    if moment is None:
        raise response.error(
            "protocol", f"a promotion of {label} has the invalid time {excerpt(value)}"
        )
    return moment


def require_builds(client: RepoClient, keys: Iterable[BuildKey], soak: StatusSoak) -> None:
    """Raise an error unless all builds have been in the status for long enough.

    :raises ToolchainError: `waiting` for the build that becomes ready last, `not_found` for a build
        without a promotion to the status, `protocol` for times that cannot be parsed
    """
    found: list[ToolchainError] = []
    for key in dict.fromkeys(keys):
        try:
            _require_build(client, key, soak)
        except ToolchainError as error:
            if error.kind != "waiting":
                raise
            found.append(error)
    if found:
        # without a time last: it is after the year 9999
        raise max(found, key=lambda error: str(error.result["waiting"]["until"] or "never"))


def _require_build(client: RepoClient, key: BuildKey, soak: StatusSoak) -> None:
    label = str(key)
    if client.predictions.get("promotion", *key.prediction, soak.status):
        soak.require_prediction(label, soak.status)
    try:
        response = records.record_response(client, key)
    except ToolchainError as error:
        if error.kind == "not_found" and records.predicted_record(client, key) is not None:
            raise soak.missing(label, soak.status) from None
        raise
    record: Mapping[str, Any] = expected(response, dict, "a build record", "buildInfo")
    entries = record.get("statuses")
    if not isinstance(entries, (list, type(None))) or not all(
        isinstance(entry, Mapping) for entry in entries or ()
    ):
        raise unexpected_body(response, "a build record with a list of promotions")
    times = [
        # each promotion may be the newest, so that all of their times must be valid
        time_in(response, entry.get("timestamp"), label)
        for entry in entries or ()
        if entry.get("status") == soak.status
    ]
    if not times:
        raise soak.missing(label, soak.status)
    soak.require(label, soak.status, max(times), response)


def build_named_by(
    item: str, properties: Mapping[str, Sequence[str]] | None, project: str | None
) -> BuildKey:
    """Return the build that the properties of an item name [repo-30].

    :param item: the item, for messages
    :param properties: `None` if the server does not return them
    :raises ToolchainError: `not_found` without these properties, `conflict` for several builds
    """
    names, numbers = (
        list((properties or {}).get(name, ())) for name in ("build.name", "build.number")
    )
    if len(names) > 1 or len(numbers) > 1:
        raise conflict(f"the properties of {item} name several builds, so it cannot soak")
    if not (names and numbers and names[0].strip() and numbers[0].strip()):
        raise not_found(
            f"{item} has no properties build.name and build.number, so its build is unknown: push"
            " it in a build, or set these properties"
        )
    return BuildKey(names[0], numbers[0], project)
