# SPDX-License-Identifier: GPL-3.0-or-later
"""Make, read and compare a sealed plan: what `drift` found, and `enforce` may write."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils.core.errors import shorten
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import Contents
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.since import PLACE

FORMAT = 1
#: The fact with the sealed plan of `drift`.
MADE = "drift_plan_made"
#: The fact with which `enforce` ends the comparison.
COMPARED = "enforce_plan_compared"
_MAX_NAMED = 50
_AGAIN = "run drift again"
_MANIFEST = Path(__file__).resolve().parents[3]


class PlanError(Exception):
    """A plan that cannot be used; the message contains the reason and what to do."""


def make(contents: Contents, salt: str, key: str | None, hosts: Collection[str]) -> dict[str, Any]:
    """Return the sealed plan of the findings on the hosts of a run.

    It contains no values: an entry has a salted digest of both sides, and `writes` those of the
    changes.
    """
    drift = [finding for finding in contents.findings if finding["status"] == "drift"]
    aside = [finding for finding in contents.findings if finding["status"] == "ignored"]
    plan: dict[str, Any] = {
        "format": FORMAT,
        "collection": version(),
        "created": contents.finished,
        "hosts": sorted(hosts),
        "servers": sorted({row.server for row in contents.rows() if row.server}),
        "places": [
            {"host": host, "service": service, "server": server}
            for (host, service), server in sorted(contents.servers.items())
        ],
        "salt": salt,
        "entries": [_entry(one, contents, salt) for one in drift],
        "writes": _all_digests(drift, contents),
        "ignored": [
            *_all_digests(aside, contents),
            *(_entry(one, contents, salt)["digest"] for one in aside),
        ],
    }
    return {**plan, "digest": _digest(plan), "seal": None if key is None else _seal(plan, key)}


def _all_digests(found: list[dict[str, Any]], contents: Contents) -> list[str]:
    return sorted({digest for one in found for digest in contents.digests.get(one["id"], ())})


def _entry(one: Mapping[str, Any], contents: Contents, salt: str) -> dict[str, Any]:
    keys = (*PLACE, "action")
    sides = [one.get(key) for key in (*keys, "text", "before", "after")]
    text = _canonical([*sides, sorted(contents.digests.get(str(one["id"]), ()))])
    digest = hmac.new(salt.encode(), text, hashlib.sha256).hexdigest()
    return {**{key: one[key] for key in keys}, "digest": digest}


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, default=str).encode()


def _digest(plan: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(_sealed_part(plan))).hexdigest()


def _seal(plan: Mapping[str, Any], key: str) -> str:
    return hmac.new(key.encode(), _canonical(_sealed_part(plan)), hashlib.sha256).hexdigest()


def _sealed_part(plan: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plan.items() if name not in ("digest", "seal")}


def version() -> str:
    """Return the version of the collection."""
    manifest = _MANIFEST / "MANIFEST.json"
    if manifest.exists():
        found = json.loads(manifest.read_text("utf-8"))["collection_info"]["version"]
        return str(found)
    lines = (_MANIFEST / "galaxy.yml").read_text("utf-8").splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("version:"))


def read(source: Any, resolve: Any) -> Plans:
    """Return a plan, or the list of plans that slices of a run have made.

    :param source: a mapping, or a string that names a file, or a list of them
    :param resolve: returns the path of a file name
    :raises PlanError: if the list is empty, if one is not a plan or was edited, or if two are for
        the same host
    """
    listed = source if isinstance(source, list | tuple) else [source]
    if not listed:
        raise PlanError(
            f"is missing, because enforce_plan is an empty list: {_AGAIN}, or set enforce_plan: ''"
            " to enforce without a plan"
        )
    return Plans([_read(one, resolve) for one in listed])


def _read(source: Any, resolve: Any) -> dict[str, Any]:
    plan = _loaded(source, resolve)
    if plan.get("format") != FORMAT:
        found = str(plan.get("format"))[:20]
        raise PlanError(f"has format {found}, but this release reads format {FORMAT}: {_AGAIN}")
    if not _is_plan(plan) or plan["digest"] != _digest(plan):
        raise PlanError(f"was edited after drift wrote it: {_AGAIN}")
    if plan["collection"] != version():
        raise PlanError(
            f"was made by version {plan['collection']} of the collection, but this is version"
            f" {version()}: {_AGAIN}"
        )
    return plan


def _loaded(source: Any, resolve: Any) -> dict[str, Any]:
    if isinstance(source, Mapping):
        return {str(name): _plain(value) for name, value in source.items()}
    file = resolve(str(source))
    try:
        plan = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise PlanError(
            f"{file} cannot be read: {error.strerror}; drift writes plan.json"
        ) from None
    except (ValueError, RecursionError):
        plan = None
    if not isinstance(plan, dict):
        raise PlanError(f"{file} is not a plan that drift wrote: {_AGAIN}")
    return plan


def _plain(marked: Any) -> Any:
    """Return a copy without the marks that Ansible gives to values."""
    if isinstance(marked, Mapping):
        return {str(name): _plain(value) for name, value in marked.items()}
    if isinstance(marked, list | tuple):
        return [_plain(value) for value in marked]
    return str(marked) if isinstance(marked, str) else marked


def _is_plan(plan: Mapping[str, Any]) -> bool:
    texts = ("collection", "created", "salt", "digest")
    lists = ("hosts", "servers", "writes", "ignored")
    return (
        all(isinstance(plan.get(name), str) for name in texts)
        and all(
            isinstance(plan.get(name), list) and all(isinstance(each, str) for each in plan[name])
            for name in lists
        )
        and isinstance(plan.get("entries"), list)
        and isinstance(plan.get("places"), list)
        and all(map(_is_place, plan["places"]))
        and all(map(_is_entry, plan["entries"]))
    )


def _is_entry(one: Any) -> bool:
    return isinstance(one, dict) and {*PLACE, "digest"} <= one.keys()


def _is_place(one: Any) -> bool:
    return isinstance(one, dict) and {"host", "service", "server"} <= one.keys()


def verify(
    plan: Mapping[str, Any],
    *,
    key: str | None,
    max_age: timedelta | None,
    at: datetime,
    configured: Mapping[tuple[str, str], str],
) -> None:
    """Check seal, age and servers of a plan, before any request.

    :param configured: addresses that the run connects to, by host and service
    :raises PlanError: for the first check that fails
    """
    if key is not None:
        if not plan.get("seal"):
            raise PlanError(f"has no seal: set drift_plan_key to the same key, and {_AGAIN}")
        if not hmac.compare_digest(str(plan["seal"]), _seal(plan, key)):
            raise PlanError("has a seal that does not match the key: use the same key as drift")
    if max_age is not None:
        age = at - _time(plan)
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
                " connections of drift"
            )


def _time(plan: Mapping[str, Any]) -> datetime:
    try:
        return datetime.strptime(str(plan["created"]), "%Y-%m-%dT%H:%M:%S%z")
    except ValueError:
        raise PlanError(f"has no valid creation time: {_AGAIN}") from None


class Plans:
    """The sealed plans of a run: one, or those of its slices. A host has a single plan."""

    def __init__(self, plans: Sequence[Mapping[str, Any]]) -> None:
        self.plans = plans
        self._by_host: dict[str, Mapping[str, Any]] = {}
        for plan in plans:
            for host in plan["hosts"]:
                if host in self._by_host:
                    raise PlanError(f"of the host {host} is listed twice: use only the newest one")
                self._by_host[host] = plan

    def require_hosts(self, hosts: Collection[str]) -> None:
        """Raise `PlanError` if no plan contains a host of the run."""
        if self._by_host.keys().isdisjoint(hosts):
            known = shorten(", ".join(sorted(self._by_host)))
            raise PlanError(f"is for {known}, but this run has none of these hosts: {_AGAIN}")

    def of_host(self, host: str) -> Mapping[str, Any]:
        """Return the plan of a host. A host that drift did not check may write nothing."""
        nothing = {"salt": "", "entries": [], "writes": [], "ignored": []}
        return self._by_host.get(host, nothing)

    def differences(self, contents: Contents, hosts: Collection[str]) -> list[str]:
        """Return a line for each finding that is new, gone or different since its plan was made.

        :param hosts: the hosts of the run; entries of other hosts are left to other runs
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
                _place(one): _entry(one, contents, plan["salt"])["digest"]
                for one in found
                if one["status"] in ("drift", "ignored")
            }
            approved = {_place(one): one["digest"] for one in entries.get(host, ())}
            lines += _differences(now, approved, set(plan["ignored"]))
        return lines


def _differences(
    now: Mapping[tuple[str, ...], str],
    approved: Mapping[tuple[str, ...], str],
    ignored: Collection[str],
) -> Iterator[str]:
    for place, digest in now.items():
        if place in approved and approved[place] != digest:
            yield f"different: {_shown(place)}"
        elif place not in approved and digest not in ignored:
            yield f"new: {_shown(place)}"
    yield from (f"gone: {_shown(place)}" for place in approved if place not in now)


def _place(one: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(one[key]) for key in PLACE)


def _shown(place: tuple[str, ...]) -> str:
    host, _service, server, kind, name = place
    return f"{kind} {name} on {server or host}"


def conflict(found: list[str]) -> str:
    """Return the message of a run that ends before its first write."""
    rest = len(found) - _MAX_NAMED
    named = "; ".join(found[:_MAX_NAMED]) + (f"; and {rest} more" if rest > 0 else "")
    return f"conflict: the servers differ from the sealed plan, and nothing was written: {named}."
