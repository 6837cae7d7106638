# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields with their wanted values, and their comparison with current values [tracker-22]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.json_text import as_text
from ...core.plan import Change
from ..issues.documents import is_document, text_of
from ..issues.field_values import (
    Durations,
    is_sprint,
    missing,
    open_sprint,
    same,
    same_moment,
    shown,
)
from .site import Site

#: Field that no list of fields contains. Its value is an issue.
PARENT = "parent"
#: End of the custom type of a field whose value is the key of an epic.
_EPIC = ":gh-epic-link"


@dataclass(frozen=True)
class FieldComparison:
    """How values of a field are compared, and shown in results."""

    same: Callable[[Any, Any], bool] = same
    shown: Callable[[Any], Any] = shown


def _same_text(current: Any, wanted: Any) -> bool:
    return text_of(current) == text_of(wanted)


def _same_choice(current: Any, wanted: Any) -> bool:
    """Compare both levels of a cascading select."""
    if isinstance(current, Mapping) and isinstance(wanted, Mapping):
        wanted = {"child": None, **wanted}
    return same(current, wanted)


PLAIN = FieldComparison()
#: Compares the document of a string by its text.
BY_TEXT = FieldComparison(_same_text)


def comparison_of(schema: Mapping[str, Any], site: Site) -> FieldComparison:
    """Return the comparison for a field of the server."""
    kind = schema.get("type")
    if is_sprint(schema):
        return FieldComparison(
            lambda current, wanted: bool(open_sprint(current) == wanted), open_sprint
        )
    if kind == "datetime":
        return FieldComparison(same_moment)
    if kind == "option-with-child":
        return FieldComparison(_same_choice)
    if kind == "issuelink" or str(schema.get("custom")).endswith(_EPIC):
        return FieldComparison(lambda current, wanted: _same_issue(current, wanted, site))
    if kind == "timetracking":
        durations = Durations(site.client)
        return FieldComparison(durations.same, durations.shown)
    return PLAIN


def _same_issue(current: Any, wanted: Any, site: Site) -> bool:
    """Compare issues. The wanted key may be the key of an issue before it was moved."""
    if same(current, wanted) or not current or not wanted:
        return same(current, wanted)
    there, key = issue_key(current), issue_key(wanted)
    return bool(there and key) and site.named(key).key == there


def issue_key(value: Any) -> str:
    """Return the key in the value of a field that contains an issue, or ""."""
    return as_text(value.get("key") if isinstance(value, Mapping) else value)


@dataclass(frozen=True)
class WantedField:
    """A field and its wanted value.

    `adds`: whether the entries of `value` are added to a list, and those of `gone` removed.
    `check`: raises an error for an impossible value, for example a missing account.
    """

    id: str
    name: str
    value: Any
    adds: bool = False
    gone: tuple[Any, ...] = ()
    check: Callable[[], object] | None = None
    comparison: FieldComparison = PLAIN

    def differs(self, current: Any) -> bool:
        if self.adds:
            return bool(missing(current, self.value) or self.leaving(current))
        return not self.comparison.same(current, self.value)

    def leaving(self, current: Any) -> list[Any]:
        """Return the entries to remove from the current list."""
        return [entry for entry in current or [] if any(same(entry, gone) for gone in self.gone)]

    def change(self, current: Any) -> Change:
        before, after = map(self.comparison.shown, (current, self.value))
        if self.adds:
            kept = [entry for entry in current or [] if entry not in self.leaving(current)]
            after = [*shown(kept), *shown(missing(current, self.value))]
        if before == after and is_document(self.value):  # the text is the same
            before, after = current, self.value
        return Change(self.name, before, after)
