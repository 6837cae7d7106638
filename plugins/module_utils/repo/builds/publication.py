# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a wanted build record with the stored one [C8.3, repo-29].

A stored record has more content than the published one (checksums that the server knows) and less
(empty lists). So the stored record is searched for the wanted parts, not the reverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ...core.plan import without_none
from ...core.times import moment_of
from ..client import objects

ENVIRONMENT = "buildInfo.env."
_DIGESTS = ("sha256", "sha1", "md5")
#: Build agent in the record.
_AGENT = {"name": "delivery.toolchain"}


@dataclass(frozen=True)
class Publication:
    """Wanted parts of a record; `None` if a part is not managed."""

    name: str
    number: str
    modules: Sequence[Mapping[str, Any]]
    started: datetime | None = None
    url: str | None = None
    vcs: Sequence[Mapping[str, Any]] | None = None
    issues: Sequence[Mapping[str, Any]] | None = None
    environment: Mapping[str, str] | None = None
    properties: Mapping[str, str] | None = None
    #: Start of the build if no other start is known.
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def differences(self, record: Mapping[str, Any]) -> list[str]:
        """Return the names of the wanted parts that the record lacks; empty if the record is
        complete.
        """
        return list(self._differences(record))

    def _differences(self, record: Mapping[str, Any]) -> Iterator[str]:
        if self.started is not None and moment_of(record.get("started")) != self.started:
            yield "started"
        if self.url is not None and record.get("url") != self.url:
            yield "ci_url"
        yield from self._of_modules(record)
        for wanted in self.vcs or ():
            if not any(_has(entry, wanted) for entry in objects(record.get("vcs"))):
                yield f"vcs {wanted.get('url', '')} {wanted.get('revision', '')}".rstrip()
        for wanted in self.issues or ():
            if not any(_has(entry, wanted) for entry in _issues_in(record)):
                yield f"issue {wanted.get('key')}"
        found = record.get("properties")
        known: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        for name, value in self._properties().items():
            if str(known.get(name)) != value:
                yield f"property {name}"

    def _of_modules(self, record: Mapping[str, Any]) -> Iterator[str]:
        known = {str(module.get("id")): module for module in objects(record.get("modules"))}
        for module in self.modules:
            there = known.get(str(module["id"]))
            if there is None:
                yield f"module {module['id']}"
                continue
            for part, name in (("artifacts", "name"), ("dependencies", "id")):
                named: dict[str, list[Mapping[str, Any]]] = {}
                for obj in objects(there.get(part)):
                    named.setdefault(str(obj.get(name)), []).append(obj)
                for wanted in module.get(part, ()):
                    if not any(_is_file(one, wanted) for one in named.get(wanted[name], ())):
                        yield f"{part} {wanted[name]} of the module {module['id']}"

    def _properties(self) -> dict[str, str]:
        variables = (self.environment or {}).items()
        return {
            **(self.properties or {}),
            **{f"{ENVIRONMENT}{name}": value for name, value in variables},
        }

    def managed(self) -> dict[str, Any]:
        """Return the managed parts of a record with their wanted values."""
        issues = None
        if self.issues is not None:
            affected = [{**issue, "aggregated": False} for issue in self.issues]
            issues = {
                "tracker": {"name": "JIRA"},
                "aggregateBuildIssues": False,
                "affectedIssues": affected,
            }
        vcs = None if self.vcs is None else list(self.vcs)
        parts = {"url": self.url, "modules": list(self.modules), "vcs": vcs, "issues": issues}
        return without_none(parts)

    def record(self, there: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the record to send: parts that are not managed are kept, promotions included.

        Server fact [repo-29]: the same start replaces a record, another start adds a second one.
        """
        known = dict(there or {})
        properties = known.pop("properties", None)
        began = moment_of(known.get("started")) or self.started or self.now
        begun = {
            "version": "1.0.1",
            "type": "GENERIC",
            "durationMillis": 0,
            "agent": _AGENT,
            "buildAgent": _AGENT,
        }
        made = {**begun, **known, **self.managed(), "name": self.name, "number": self.number}
        made["started"] = known.get("started") or as_started(began)
        made["properties"] = self._merged(properties if isinstance(properties, Mapping) else {})
        return made

    def _merged(self, there: Mapping[str, Any]) -> dict[str, Any]:
        """Return the properties of the record. Environment variables and other properties are
        managed separately.
        """
        others = {
            name: value
            for name, value in there.items()
            if (self.environment if name.startswith(ENVIRONMENT) else self.properties) is None
        }
        return {**others, **self._properties()}


@dataclass(frozen=True)
class PublicationPlan:
    """A publication, the record on the server before the task, and the record after it.

    :param sends: whether the record is missing or differs
    :param unmarked: repository and path of files without the properties of the build, with their
        current properties
    """

    publication: Publication
    there: Mapping[str, Any] | None
    record: Mapping[str, Any]
    sends: bool
    unmarked: Mapping[tuple[str, str], Any]

    def sides(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return both sides of the diff: the managed parts of the record."""
        if not self.sends:
            return {}, {}
        wanted, there = self.publication, self.there
        names = [*wanted.managed(), "properties"]
        if wanted.started is not None:
            names.append("started")
        after = {name: self.record[name] for name in names if self.record.get(name)}
        if there is None:
            return {}, {"name": wanted.name, "number": wanted.number, **after}
        return {name: there[name] for name in names if there.get(name)}, after


def _has(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(there.get(name) == value for name, value in wanted.items())


def _issues_in(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    issues = record.get("issues")
    return objects(issues.get("affectedIssues")) if isinstance(issues, Mapping) else []


def _is_file(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether this is the wanted file of its name, by every digest that both have."""
    both = [digest for digest in _DIGESTS if there.get(digest) and wanted.get(digest)]
    scopes = set(wanted.get("scopes", ())) <= set(there.get("scopes") or ())
    return bool(both) and scopes and all(str(there[one]).lower() == wanted[one] for one in both)


def as_started(moment: datetime) -> str:
    """Format the start as the server expects it: three digits, and an offset without a colon
    [repo-29].
    """
    utc = moment.astimezone(timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}+0000"


def milliseconds(started: Any) -> str:
    """Return the start in epoch milliseconds, as in the marks of items."""
    moment = moment_of(started)
    return "" if moment is None else str(int(moment.timestamp() * 1000))
