# SPDX-License-Identifier: GPL-3.0-or-later
"""Make, read and compare a sealed plan: what `drift` found, and `enforce` may write."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import Contents
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.since import PLACE

FORMAT = 1
#: The fact with the sealed plan of `drift`.
MADE = "drift_plan_made"
#: The fact with which `enforce` ends the comparison.
COMPARED = "enforce_plan_compared"
_MOST_NAMED = 50
_AGAIN = "run drift again"
_MANIFEST = Path(__file__).resolve().parents[3]


class PlanError(Exception):
    """A plan that cannot be used; the message contains the reason and what to do."""


def make(contents: Contents, salt: str, key: str | None) -> dict[str, Any]:
    """Return the sealed plan of the findings.

    It contains no values: an entry has a salted digest of both sides, and `writes` those of the
    changes.
    """
    drift = [one for one in contents.findings if one["status"] == "drift"]
    aside = [one for one in contents.findings if one["status"] == "ignored"]
    plan: dict[str, Any] = {
        "format": FORMAT,
        "collection": version(),
        "created": contents.finished,
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


def read(given: Any, resolve: Any) -> dict[str, Any]:
    """Return a plan from a mapping, or from the file that a string names.

    :param resolve: returns the path of a file name
    :raises PlanError: if it is no plan, or was edited
    """
    plan = _loaded(given, resolve)
    if plan.get("format") != FORMAT:
        found = str(plan.get("format"))[:20]
        raise PlanError(f"has format {found}, but this release reads format {FORMAT}: {_AGAIN}")
    if not _is_plan(plan) or plan["digest"] != _digest(plan):
        raise PlanError(f"was edited after drift wrote it: {_AGAIN}")
    if plan["collection"] != version():
        raise PlanError(
            f"was made by version {plan['collection']} of the collection, and this is"
            f" {version()}: {_AGAIN}"
        )
    return plan


def _loaded(given: Any, resolve: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return {str(name): _plain(value) for name, value in given.items()}
    file = resolve(str(given))
    try:
        plan = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise PlanError(f"cannot be read: {error.strerror}; drift writes it as plan.json") from None
    except (ValueError, RecursionError):
        plan = None
    if not isinstance(plan, dict):
        raise PlanError(f"is no plan that drift wrote: {_AGAIN}")
    return plan


def _plain(given: Any) -> Any:
    """Return a copy without the marks that Ansible gives to values."""
    if isinstance(given, Mapping):
        return {str(name): _plain(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [_plain(value) for value in given]
    return str(given) if isinstance(given, str) else given


def _is_plan(plan: Mapping[str, Any]) -> bool:
    texts = ("collection", "created", "salt", "digest")
    lists = ("servers", "writes", "ignored")
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
            raise PlanError(f"has no seal: give drift the same key in drift_plan_key, and {_AGAIN}")
        if not hmac.compare_digest(str(plan["seal"]), _seal(plan, key)):
            raise PlanError("has a seal that does not fit the key: use the key of drift")
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
        raise PlanError(f"does not tell when it was made: {_AGAIN}") from None


def differences(plan: Mapping[str, Any], contents: Contents) -> list[str]:
    """Return a line for each finding that is new, gone or different since the plan was made."""
    now = {
        _place(one): _entry(one, contents, plan["salt"])["digest"]
        for one in contents.findings
        if one["status"] in ("drift", "ignored")
    }
    ignored = set(plan["ignored"])
    approved = {_place(one): one["digest"] for one in plan["entries"]}
    return list(_differences(now, approved, ignored))


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
    rest = len(found) - _MOST_NAMED
    named = "; ".join(found[:_MOST_NAMED]) + (f"; and {rest} more" if rest > 0 else "")
    return f"conflict: the servers differ from the sealed plan, and nothing was written: {named}."
