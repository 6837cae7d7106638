# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify by the log of the sandbox that a client test performed the operations that it claims to
confirm.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from tools import witnesses

#: Maps an operation to the pattern of its requests.
ASKED: dict[str, str] = yaml_load(
    (witnesses.SOURCE.parent / "asked.yml").read_text(encoding="utf-8")
)

#: Some clients of the CI server fetch a crumb before each request, and send a POST to the page of a
#: redirect.
_AROUND = re.compile(r"GET /crumbIssuer/|POST /(job/.*/)?$")
#: Operations whose response contains their effect.
REPORTED_EFFECTS = ("ci_script.run", "ci_job_build.log")

#: Operations with an effect that a later change hides: only the next request can verify it.
SWITCHED = ("ci_job.enable and disable", "ci_plugin.enable and disable")


@cache
def _claims() -> Mapping[tuple[str, str], Collection[str]]:
    return {
        (witness.file, test): operations
        for witness in witnesses.witnesses(witnesses.load())
        if witness.kind == "clients"
        for test, operations in witness.tests.items()
    }


def claims(file: str, test: str) -> Collection[str]:
    """Return the operations that a client test claims to confirm."""
    return _claims().get((file, test), ())


def unasked(log: Sequence[Mapping[str, Any]], operations: Collection[str]) -> Iterator[str]:
    """Yield the operations without a successful request, and those whose change was not verified by
    a later read (of a deleted object: with a 404).
    """
    asked = [entry for entry in log if not _AROUND.match(f"{entry['method']} {entry['path']}")]
    for operation in operations:
        found = [number for number, entry in enumerate(asked) if _is(operation, entry)]
        if not found:
            yield f"{operation}: never asked"
        elif operation not in REPORTED_EFFECTS and not _looked(
            asked, found, at_once=operation in SWITCHED
        ):
            yield f"{operation}: nobody looked at what it changed"


def _looked(asked: Sequence[Mapping[str, Any]], found: list[int], *, at_once: bool) -> bool:
    """Return whether a read follows the last of these requests. With `at_once`, return whether a
    read directly follows any of them.
    """
    if not asked[found[-1]]["write"]:
        return True
    if at_once:
        return any(
            not record["write"] for number in found for record in asked[number + 1 : number + 2]
        )
    return any(not record["write"] for record in asked[found[-1] + 1 :])


def _is(operation: str, entry: Mapping[str, Any]) -> bool:
    """Return whether a request belongs to this operation and succeeded."""
    done = (entry["served"] or 500) < 400
    return done and re.match(ASKED[operation], line_of(entry), re.DOTALL) is not None


def line_of(entry: Mapping[str, Any]) -> str:
    """Return a request in the format that the patterns match."""
    headers = {name.lower(): value for name, value in entry["headers"].items()}
    named = [name for name in headers if name.startswith("x-")]
    if headers.get("authorization", "").startswith("OAuth"):
        named.append("authorization-oauth")
    target = f"{entry['path']}?{entry['query']}"
    return " ".join((entry["method"], target, *named, entry["body"] or ""))
