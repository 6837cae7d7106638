# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, read and compare sealed plans: the changes that `drift` found and `enforce` may write."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ....module_utils._lib.core.errors import shorten
from ....module_utils._lib.core.files import open_regular
from .. import collection
from ..sentence_error import SentenceError
from .contents import Contents
from .since import PLACE, finding_id

FORMAT = 1
_MAX_NAMED = 50
#: Tolerated difference between the clocks of the machines of drift and enforce.
_SKEW = timedelta(minutes=5)
_AGAIN = "run drift again"


class PlanError(SentenceError):
    """A sealed plan is invalid. The message begins with a verb: "has no seal: set ..."."""

    prefix = "The sealed plan "


def make(contents: Contents, salt: str, key: str | None, hosts: Collection[str]) -> dict[str, Any]:
    """Return the sealed plan for the findings of a run, as a JSON value.

    It contains salted digests of the findings (`entries`) and of their changes (`writes` of each
    entry), but no values.
    """
    drift = [finding for finding in contents.findings if finding["status"] == "drift"]
    ignored = [
        finding
        for finding in contents.findings
        if finding["status"] == "ignored" and finding["action"] != "none"
    ]
    plan: dict[str, Any] = {
        "format": FORMAT,
        "collection": collection.version(),
        "content": collection.content(),
        "created": contents.finished,
        "hosts": sorted(hosts),
        "servers": sorted({row.server for row in contents.rows() if row.server}),
        "places": [
            {"host": host, "service": service, "server": server}
            for (host, service), server in sorted(contents.servers.items())
        ],
        "salt": salt,
        "entries": [_entry(finding, contents, salt) for finding in drift],
        "ignored": [
            *_all_digests(ignored, contents),
            *(_entry(finding, contents, salt)["digest"] for finding in ignored),
        ],
    }
    return {**plan, "digest": _digest(plan), "seal": None if key is None else _seal(plan, key)}


def _all_digests(found: Sequence[Mapping[str, Any]], contents: Contents) -> list[str]:
    return sorted(
        {digest for finding in found for digest in contents.digests.get(finding["id"], ())}
    )


def _entry(finding: Mapping[str, Any], contents: Contents, salt: str) -> dict[str, Any]:
    keys = (*PLACE, "action")
    values = [finding.get(key) for key in (*keys, "text", "before", "after")]
    text = _canonical([*values, sorted(contents.digests.get(str(finding["id"]), ()))])
    digest = hmac.new(salt.encode(), text, hashlib.sha256).hexdigest()
    return {
        **{key: finding[key] for key in keys},
        "digest": digest,
        "writes": _all_digests([finding], contents),
    }


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()


def _digest(plan: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(_sealed_part(plan))).hexdigest()


def _seal(plan: Mapping[str, Any], key: str) -> str:
    return hmac.new(key.encode(), _canonical(_sealed_part(plan)), hashlib.sha256).hexdigest()


def _sealed_part(plan: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plan.items() if name not in ("digest", "seal")}


#: Checks the approvals of a plan in a file, with the bytes of the file.
Approve = Callable[[Path, bytes], None]


def read(
    source: Any, resolve: Any, only: Collection[str] = (), approve: Approve | None = None
) -> Plans:
    """Read one sealed plan, or the plans of several slices of a run.

    :param source: the plan as a mapping or the path of its file, or a list of such values
    :param resolve: returns the absolute path for a path
    :param only: ids of the findings to apply, empty for all
    :param approve: checks the approvals of each plan, `None` to skip this check
    :raises PlanError: if the list is empty, a plan is invalid or was edited, two plans are for the
        same host, or no plan has one of the ids
    """
    listed = source if isinstance(source, list | tuple) else [source]
    if not listed:
        raise PlanError(
            f"is missing, because enforce_plan is an empty list: {_AGAIN}, or set enforce_plan: ''"
            " to enforce without a plan"
        )
    return Plans([_read(plan, resolve, approve) for plan in listed], only)


def _read(source: Any, resolve: Any, approve: Approve | None) -> dict[str, Any]:
    plan = _loaded(source, resolve, approve)
    if plan.get("format") != FORMAT:
        found = str(plan.get("format"))[:20]
        raise PlanError(f"has format {found}, but this release reads format {FORMAT}: {_AGAIN}")
    if not _is_plan(plan) or plan["digest"] != _digest(plan):
        raise PlanError(f"was edited after drift wrote it: {_AGAIN}")
    version, content = plan["collection"], plan["content"]
    if version != collection.version():
        raise PlanError(
            f"was made by version {version} of the collection, but this is version"
            f" {collection.version()}: {_AGAIN}"
        )
    if content != collection.content():
        raise PlanError(
            f"was made by another build of version {version} of the collection: its files have the"
            f" digest {content[:12]}, but the files of this build {collection.content()[:12]}."
            " Install the same build for drift and enforce"
        )
    return plan


def _loaded(source: Any, resolve: Any, approve: Approve | None) -> dict[str, Any]:
    if isinstance(source, Mapping):
        if approve is not None:
            raise PlanError(
                "is a mapping, which nobody can have signed: set enforce_plan to the file plan.json"
            )
        return {str(name): _plain(value) for name, value in source.items()}
    file = resolve(str(source))
    try:
        with open(file, "rb", opener=open_regular) as stream:
            content = stream.read()
    except OSError as error:
        raise PlanError(
            f"{file} cannot be read: {error.strerror}. Use the file plan.json that drift writes"
        ) from None
    if approve is not None:
        approve(file, content)
    try:
        plan = json.loads(content)
    except (ValueError, RecursionError):
        plan = None
    if not isinstance(plan, dict):
        raise PlanError(f"{file} is not a plan that drift wrote: {_AGAIN}")
    return plan


def _plain(marked: Any) -> Any:
    """Return a copy without the tags that Ansible adds to values."""
    if isinstance(marked, Mapping):
        return {str(name): _plain(value) for name, value in marked.items()}
    if isinstance(marked, list | tuple):
        return [_plain(value) for value in marked]
    return str(marked) if isinstance(marked, str) else marked


def _is_plan(plan: Mapping[str, Any]) -> bool:
    texts = ("collection", "content", "created", "salt", "digest")
    lists = ("hosts", "servers", "ignored")
    return (
        all(isinstance(plan.get(name), str) for name in texts)
        and all(
            isinstance(plan.get(name), list) and all(isinstance(item, str) for item in plan[name])
            for name in lists
        )
        and isinstance(plan.get("entries"), list)
        and isinstance(plan.get("places"), list)
        and all(
            isinstance(place, dict) and {"host", "service", "server"} <= place.keys()
            for place in plan["places"]
        )
        and all(
            isinstance(entry, dict)
            and {*PLACE, "digest"} <= entry.keys()
            and isinstance(entry.get("writes"), list)
            for entry in plan["entries"]
        )
    )


def verify(
    plan: Mapping[str, Any],
    *,
    key: str | None,
    max_age: timedelta | None,
    at: datetime,
    configured: Mapping[tuple[str, str], str],
) -> None:
    """Verify the seal, the age and the servers of a plan, before the first request.

    :param key: key of the seal, `None` to skip this check
    :param max_age: maximum age, `None` to skip this check
    :param at: current time
    :param configured: addresses that the run connects to, by host and service
    :raises PlanError: for the first check that fails
    """
    if key is not None:
        if not plan.get("seal"):
            raise PlanError(f"has no seal: set drift_plan_key to the same key, and {_AGAIN}")
        if not hmac.compare_digest(str(plan["seal"]).encode(), _seal(plan, key).encode()):
            raise PlanError("has a seal that does not match the key: use the same key as drift")
    if max_age is not None:
        age = at - _time(plan)
        if age < -_SKEW:
            raise PlanError(f"was created in the future, at {plan['created']}: {_AGAIN}")
        if age > max_age:
            minutes = int(age.total_seconds() // 60)
            raise PlanError(
                f"is {minutes} minutes old, more than enforce_plan_max_age allows: {_AGAIN}"
            )
    for place in plan["places"]:
        address = configured.get((place["host"], place["service"]), place["server"])
        if address != place["server"]:
            raise PlanError(
                f"is for the server {place['server']}, but this run connects to {address}: use the"
                " same connections as drift"
            )


def _time(plan: Mapping[str, Any]) -> datetime:
    try:
        return datetime.strptime(str(plan["created"]), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        raise PlanError(f"has no valid creation time: {_AGAIN}") from None


class Plans:
    """The sealed plans of a run, or of its slices, with a single plan for each host.

    :param only: ids of the findings to apply, empty for all
    :raises PlanError: if two plans are for the same host, or no plan has one of the ids
    """

    def __init__(self, plans: Sequence[Mapping[str, Any]], only: Collection[str] = ()) -> None:
        self.only = frozenset(only)
        self.plans = _chosen(plans, self.only) if only else plans
        self._by_host: dict[str, Mapping[str, Any]] = {}
        for plan in self.plans:
            for host in plan["hosts"]:
                if host in self._by_host:
                    raise PlanError(f"of the host {host} is listed twice: use only the newest plan")
                self._by_host[host] = plan

    def require_hosts(self, hosts: Collection[str]) -> None:
        """Raise `PlanError` if the plans contain no host of the run."""
        if self._by_host.keys().isdisjoint(hosts):
            known = shorten(", ".join(sorted(self._by_host)))
            raise PlanError(f"is for {known}, but this run has none of these hosts: {_AGAIN}")

    def of_host(self, host: str) -> dict[str, Any]:
        """Return `salt`, `writes` and `ignored` of the plan of a host.

        For a host without plan, they are empty and allow no writes.
        """
        plan = self._by_host.get(host, {"salt": "", "entries": [], "ignored": []})
        writes = {digest for entry in plan["entries"] for digest in entry["writes"]}
        return {"salt": plan["salt"], "writes": sorted(writes), "ignored": plan["ignored"]}

    def differences(self, contents: Contents, hosts: Collection[str]) -> list[str]:
        """Return a line for each finding that is new, gone or different compared with the plans.
        With `only`, all other findings are ignored.

        :param hosts: hosts of the run; entries of other hosts are ignored
        """
        findings: dict[str, list[dict[str, Any]]] = {host: [] for host in hosts}
        for finding in contents.findings:
            findings.setdefault(finding["host"], []).append(finding)
        entries: dict[str, list[dict[str, Any]]] = {}
        for plan in self.plans:
            for entry in plan["entries"]:
                entries.setdefault(entry["host"], []).append(entry)
        lines: list[str] = []
        for host, found in findings.items():
            plan = self.of_host(host)
            now = {
                _place(finding): _entry(finding, contents, plan["salt"])["digest"]
                for finding in found
                if finding["status"] in ("drift", "ignored")
                and finding["action"] != "none"
                and (not self.only or finding["id"] in self.only)
            }
            approved = {_place(entry): entry["digest"] for entry in entries.get(host, ())}
            lines += _differences(now, approved, set(plan["ignored"]))
        return lines


def _chosen(plans: Sequence[Mapping[str, Any]], only: Collection[str]) -> list[Mapping[str, Any]]:
    """Return the plans with only some entries. Raise `PlanError` for an id that none has."""
    ids = [{finding_id(entry): entry for entry in plan["entries"]} for plan in plans]
    unknown = sorted(set(only).difference(*ids))
    if unknown:
        named = shorten(", ".join(unknown))
        raise PlanError(f"has no finding {named}: set enforce_only to ids of its report.json")
    return [
        {**plan, "entries": [entry for key, entry in known.items() if key in only]}
        for plan, known in zip(plans, ids, strict=True)
    ]


def _differences(
    now: Mapping[tuple[str, ...], str],
    approved: Mapping[tuple[str, ...], str],
    ignored: Collection[str],
) -> Iterator[str]:
    for place, digest in now.items():
        if place in approved and approved[place] != digest:
            yield f"different: {_describe(place)}"
        elif place not in approved and digest not in ignored:
            yield f"new: {_describe(place)}"
    yield from (f"gone: {_describe(place)}" for place in approved if place not in now)


def _place(finding: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(finding[key]) for key in PLACE)


def _describe(place: tuple[str, ...]) -> str:
    host, _service, server, kind, name = place
    return shorten(f"{kind} {name} on {server or host}")


def conflict(found: Sequence[str], contents: Contents) -> str:
    """Return the error message if the findings differ from the sealed plan.

    :param found: lines from `differences`
    :param contents: contents of the run
    """
    return (
        f"conflict: the servers differ from the sealed plan{_unwritten(contents)}: {_named(found)}."
    )


def failed_comparison(contents: Contents) -> str:
    """Return the error message if objects cannot be compared with the sealed plan, else ""."""
    texts = [finding["text"] for finding in contents.findings if finding["status"] == "failed"]
    if not texts:
        return ""
    return (
        f"Cannot compare the servers with the sealed plan{_unwritten(contents)}: {_named(texts)}."
    )


def _unwritten(contents: Contents) -> str:
    """Return the statement that the run has written nothing, or "" if it has."""
    return "" if contents.written else ", and nothing was written"


def _named(lines: Sequence[str]) -> str:
    more = len(lines) - _MAX_NAMED
    return "; ".join(lines[:_MAX_NAMED]) + (f"; and {more} more" if more > 0 else "")
