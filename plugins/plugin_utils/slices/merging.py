# SPDX-License-Identifier: GPL-3.0-or-later
"""What the slices of a run found, as one: a slice that was lost is a failure of all its parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils.slices.running import Outcome


def objects(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """All objects, with the keys of a finding."""
    return [one for outcome in outcomes for one in (*outcome.objects, *_lost(outcome))]


def _lost(outcome: Outcome) -> Iterator[dict[str, Any]]:
    if not outcome.lost:
        return
    for unit in outcome.part.units:
        yield {
            "host": unit.host,
            "service": unit.service,
            "server": "",
            "kind": "slice",
            "name": unit.title(),
            "action": "none",
            "text": f"{unit.title()}: slice {outcome.part.title} failed: {outcome.lost}",
            "before": None,
            "after": None,
            "task": f"slice {outcome.part.title}",
            "status": "failed",
        }


def warnings(outcomes: Iterable[Outcome]) -> list[str]:
    """What the slices warned of, each once."""
    return list(dict.fromkeys(text for outcome in outcomes for text in outcome.warnings))
