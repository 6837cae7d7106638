# SPDX-License-Identifier: GPL-3.0-or-later
"""Promotions: those that a build record lists in `statuses` [W2.1, repo-11], later promotions of
the same release [C2.6], and the messages of a promotion response [repo-15].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

from ...core.errors import ToolchainError, invalid, shorten
from ...core.http.messages import Response
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ...core.times import moment_of
from ..client import objects
from ..error_text import errors_in, messages_of, text_of

_OLDEST = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Promotion:
    """An entry of `statuses`; missing parts are `None`."""

    status: str | None
    repository: str | None
    timestamp: str | None = None
    user: str | None = None

    def status_and_repository(self) -> dict[str, Any]:
        return {"status": self.status, "repository": self.repository}

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.status_and_repository(),
            "timestamp": self.timestamp,
            "user": self.user,
        }


def promotions(record: Mapping[str, Any]) -> list[Promotion]:
    """Return the promotions of a build, oldest first; empty if the record lists none.

    A promotion without a readable time stays after the entry before it.
    """
    found: list[tuple[datetime, Promotion]] = []
    moment = _OLDEST
    for entry in objects(record.get("statuses")):
        moment = moment_of(entry.get("timestamp")) or moment
        found.append((moment, _promotion(entry)))
    return [promotion for _time, promotion in sorted(found, key=lambda pair: pair[0])]


def _promotion(entry: Mapping[str, Any]) -> Promotion:
    names = ("status", "repository", "timestamp", "user")
    return Promotion(*(_text(entry.get(name)) for name in names))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


@dataclass(frozen=True)
class BuildSnapshot:
    """State of a build and of its target repository when they were read.

    :param target: key of the repository that receives the files; a virtual repository is resolved
    :param target_error: why the target repository cannot be read, if it cannot
    """

    record: Mapping[str, Any]
    target: str | None = None
    target_error: ToolchainError | None = None

    @property
    def history(self) -> list[Promotion]:
        return promotions(self.record)

    def is_newer_than(self, earlier: BuildSnapshot) -> bool:
        """Return whether the record got a promotion since the earlier snapshot."""
        return len(self.history) > len(earlier.history)

    @property
    def newest(self) -> Promotion | None:
        return self.history[-1] if self.history else None


@dataclass(frozen=True)
class LaterPromotionOptions:
    """Suboptions of `followed_by`: all options of a promotion, most of which are ignored here. A
    build that does not exist yet has no number.
    """

    build_name: str
    build_number: Annotated[str | None, Option(empty=True)] = None
    project: Annotated[str | None, Option(empty=True)] = None
    status: Annotated[str | None, Option(empty=True)] = None
    comment: Annotated[str | None, Option(empty=True)] = None
    ci_user: Annotated[str | None, Option(empty=True)] = None
    source_repo: Annotated[str | None, Option(empty=True)] = None
    target_repo: Annotated[str | None, Option(empty=True)] = None
    copy: bool | None = None
    artifacts: bool | None = None
    dependencies: bool | None = None
    scopes: list[str] | None = None
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None


def stages_of(
    later: Sequence[LaterPromotionOptions], build: tuple[str, str, str | None], promotion: Promotion
) -> list[Promotion]:
    """Return the later promotions of a build (name, number and project) that its record will show.

    Raises `invalid` for two that the record cannot distinguish.
    """
    stages = [promotion]
    for place, entry in enumerate(later):
        stage = Promotion(entry.status or None, entry.target_repo or None)
        named = (entry.build_name, entry.build_number, entry.project or None)
        if named != build or stage.status is None:
            continue
        if any(_hides(stage, before) for before in stages):
            name, number, _project = build
            raise invalid(
                f"followed_by[{place}] gives the build '{name}' #{number} the status"
                f" '{stage.status}' again, so its record cannot distinguish the two: remove one of"
                " them, or use different statuses"
            )
        stages.append(stage)
    return stages[1:]


def _hides(later: Promotion, before: Promotion) -> bool:
    """Return whether the record of the earlier promotion also matches the later promotion."""
    return later.status == before.status and later.repository in (None, before.repository)


def messages_in(response: Response) -> list[dict[str, str]]:
    """Return the messages of a response: JSON, or its text, since [W2.1] shows no body.

    Raises `protocol` for a truncated JSON object: it may have contained an ERROR.
    """
    found = messages_of(response.text)
    text = text_of(response.text)
    if response.status < 300 and text.startswith("{"):
        response.json()
    if response.status < 300 and not found and errors_in(response.text):
        return [{"level": "ERROR", "message": errors_in(response.text)}]
    if found or response.status == 400 or not text or text.startswith(("{", "[")):
        return found
    return [{"level": "INFO", "message": shorten(text)}]


def failure_of(response: Response, message: str, messages: list[dict[str, str]]) -> ToolchainError:
    """Return the error of a promotion that failed, with the messages of the server."""
    error = response.error("failed", message)
    error.result["messages"] = messages
    return error


def nothing_to_do(newest: Promotion) -> Plan:
    """Return the plan for a build that is promoted."""
    return Plan({}, {}, result=result_of(newest, promoted=True))


def result_of(
    promotion: Promotion, *, promoted: bool, missing: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the return values of a promotion."""
    return {
        "messages": [],
        "promotion": promotion.as_dict(),
        "promoted": promoted,
        "missing_files": list(missing),
    }
