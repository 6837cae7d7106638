# SPDX-License-Identifier: GPL-3.0-or-later
"""Promotions in a build record [W2.1, repo-11], and the results of a promotion [C2.6, repo-15]."""

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
    """An entry of `statuses` in a build record; missing values are `None`."""

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
    """Return the promotions in a build record, oldest first.

    A promotion without a valid timestamp stays behind its predecessor in the record.
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
    """Build record and target repository of a promotion, as read from the server.

    :param target: key of the repository that stores the files: for a virtual repository, its
        deployment repository
    :param target_error: error of the read of the target repository; `None` if it was found
    """

    record: Mapping[str, Any]
    target: str | None = None
    target_error: ToolchainError | None = None

    @property
    def history(self) -> list[Promotion]:
        return promotions(self.record)

    def is_newer_than(self, earlier: BuildSnapshot) -> bool:
        """Return whether the record has more promotions than in the earlier snapshot."""
        return len(self.history) > len(earlier.history)

    @property
    def newest(self) -> Promotion | None:
        return self.history[-1] if self.history else None


@dataclass(frozen=True)
class LaterPromotionOptions:
    """Suboptions of `followed_by`. `build_number` is empty for a build that does not exist yet."""

    build_name: str
    build_number: Annotated[str | None, Option(empty=True)] = None
    project: Annotated[str | None, Option(empty=True)] = None
    status: Annotated[str | None, Option(empty=True)] = None
    target_repo: Annotated[str | None, Option(empty=True)] = None


def stages_of(
    later: Sequence[LaterPromotionOptions], build: tuple[str, str, str | None], promotion: Promotion
) -> list[Promotion]:
    """Return the entries of `followed_by` that are promotions of this build with a status.

    :param build: name, number and project
    :param promotion: the promotion of the task
    :raises ToolchainError: `invalid` if the build record could not distinguish two promotions
    """
    stages = [promotion]
    for place, entry in enumerate(later):
        stage = Promotion(entry.status or None, entry.target_repo or None)
        named = (entry.build_name, entry.build_number, entry.project or None)
        if named != build or stage.status is None:
            continue
        if any(_is_indistinguishable(stage, before) for before in stages):
            name, number, _project = build
            raise invalid(
                f"followed_by[{place}] promotes the build '{name}' #{number} to the status"
                f" '{stage.status}' again, and its record cannot distinguish the two promotions:"
                " remove one of them, or use different statuses"
            )
        stages.append(stage)
    return stages[1:]


def _is_indistinguishable(later: Promotion, before: Promotion) -> bool:
    """Return whether the record entry of the earlier promotion also matches the later one."""
    return later.status == before.status and later.repository in (None, before.repository)


def messages_in(response: Response) -> list[dict[str, str]]:
    """Return the messages of a promotion response, each with `level` and `message`.

    The written interface [W2.1] does not specify the body: a text is a message of the level INFO.
    Raises `protocol` for truncated JSON, because it may have contained an ERROR.
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


def nothing_to_do(newest: Promotion) -> Plan:
    """Return the plan without changes for a build that has already been promoted."""
    return Plan({}, {}, result=result_of(newest, promoted=True))


def result_of(
    promotion: Promotion, *, promoted: bool, missing: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the return values of `build_promote`."""
    return {
        "messages": [],
        "promotion": promotion.as_dict(),
        "promoted": promoted,
        "missing_files": list(missing),
    }
