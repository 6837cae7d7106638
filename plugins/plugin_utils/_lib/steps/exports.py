# SPDX-License-Identifier: GPL-3.0-or-later
"""Summarise an export for the output of its playbook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import kinds
from ..services import SERVICES
from .folder import accounts_of
from .run import Result, Run

#: Nouns for the messages, by kind. The name of any other kind is its noun.
_NOUNS = {"configuration": "configuration sections"}


def accounts_of_exports(run: Run) -> Result:
    """Return the option `accounts` of the exports by service, {} without a mapping."""
    known = accounts_of(run)
    return {
        "options": {service: known.of_export(service) for service in SERVICES if known.is_given}
    }


def exported(run: Run, place: str, results: Mapping[str, Mapping[str, Any]]) -> Result:
    """Return the lines that are shown at the end of an export.

    :param place: folder of the export
    :param results: result of the export of each service
    """
    services = {name: result for name, result in results.items() if "exported" in result}
    lines = [f"Exported to {place}:" if services else "Nothing was exported."]
    for name, result in services.items():
        counts = [_counted(kind, count) for kind, count in result["exported"].items() if count]
        left = len(result["left_out"])
        more = f" ({left:,} left out, listed at the top of {name}.yml)" if left else ""
        lines.append(f"  {name}: {', '.join(counts) or 'nothing'}{more}")
    return {
        "lines": [*lines, *(line for each in services.values() for line in each["not_exported"])]
    }


def _counted(kind: str, count: int) -> str:
    """Return a count with its noun, such as "1 repository" for `repositories`."""
    noun = _NOUNS.get(kind, kind.replace("_", " "))
    if count == 1:
        noun = kinds.singular(noun)
    return f"{count:,} {noun}"
