# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the promotions of a release bundle version [repo-33]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.http.messages import Response, unexpected_body
from ...core.times import moment_of
from ..client import object_of
from .lifecycle import COMPLETED, Bundle, Progress, progress_of


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

    def with_details(self, bundle: Bundle) -> BundlePromotion:
        """Return the promotion with its repositories; send a request if they are unknown."""
        if self.included is not None:
            return self
        path = bundle.path("promotion/records", str(self.millis))
        found = object_of(bundle.read("reading a promotion", path), "a promotion")
        return replace(
            self,
            included=_keys(found.get("included_repository_keys")),
            excluded=_keys(found.get("excluded_repository_keys")),
        )


def read_promotions(bundle: Bundle) -> list[BundlePromotion]:
    """Return all promotions of a version to any environment.

    Raises `not_found` if the version does not exist.
    """
    path, purpose = bundle.path("promotion/records"), "reading the promotions"
    return [_promotion(*row) for row in bundle.pages(purpose, path, "promotions", include="MSG")]


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
