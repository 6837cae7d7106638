# SPDX-License-Identifier: GPL-3.0-or-later
"""The promotions that one release gives a build one after the other [C2.6].

The record of a build tells its newest promotion. So a stage before it has been gone through, and is
not done once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from ...core.errors import invalid
from ...core.module.typed_options import Option
from .records import Promotion


@dataclass(frozen=True)
class LaterPromotionOptions:
    """The suboptions of C(followed_by): all that an entry of a release may have, most of which does
    not matter here. A build that is still to be made has no number.
    """

    build_name: str
    build_number: Annotated[str | None, Option(empty=True)] = None
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
    given: Sequence[LaterPromotionOptions], build: tuple[str, str], own: Promotion
) -> list[Promotion]:
    """The later promotions of a build (name and number) that leave a trace in its record.
    C(invalid) for two that cannot be told apart there.
    """
    stages = [own]
    for place, entry in enumerate(given):
        stage = Promotion(entry.status or None, entry.target_repo or None)
        if (entry.build_name, entry.build_number) != build or stage.status is None:
            continue
        if any(_hides(stage, before) for before in stages):
            name, number = build
            raise invalid(
                f"followed_by[{place}] gives the build '{name}' #{number} the status"
                f" '{stage.status}' again, so that its record cannot tell which of the two was"
                " done: leave one of them out, or give each a status of its own"
            )
        stages.append(stage)
    return stages[1:]


def _hides(later: Promotion, before: Promotion) -> bool:
    """Whether the record of a build that the earlier one has promoted shows the later one, too."""
    return later.status == before.status and later.repository in (None, before.repository)
