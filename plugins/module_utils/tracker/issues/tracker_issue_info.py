# SPDX-License-Identifier: GPL-3.0-or-later
"""Single issues [W4.2, C4.2]: the module C(tracker_issue_info)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.address import path
from ...core.concurrency import first_alone
from ...core.errors import ToolchainError, invalid
from ...core.http.messages import Answer, unreadable
from ...core.module.task import Task
from ...core.plan import Reading
from ..client import Tracker, describe

Issue = dict[str, Any]

#: Missing issues that a message names, so that it stays a sentence.
_MOST_NAMED = 50


def operation(task: Task) -> Reading:
    """The operation of the module: C(issues), in the order in which they were asked for."""
    params = task.params
    keys = [params["issue"]] if params["issues"] is None else params["issues"]
    parallel = parallel_of(params)
    tracker = Tracker(task, connections=parallel)
    query = _query(params)

    def read() -> Mapping[str, Any]:
        return {"issues": read_issues(tracker, list(dict.fromkeys(keys)), query, parallel)}

    return Reading(read)


def parallel_of(params: Mapping[str, Any]) -> int:
    """The option C(parallel); C(invalid) where it is not positive."""
    parallel = int(params["parallel"])
    if parallel < 1:
        raise invalid(f"parallel is {parallel}, but must be at least 1")
    return parallel


def _query(params: Mapping[str, Any]) -> dict[str, str]:
    """Not given means what the server gives by default: of a single issue all fields."""
    query = {}
    if params["fields"] is not None:
        # No name at all would mean the default; the key is not a field and comes anyway.
        query["fields"] = ",".join(params["fields"]) or "key"
    if params["expand"]:
        query["expand"] = ",".join(params["expand"])
    return query


def read_issues(
    tracker: Tracker, keys: Sequence[str], query: Mapping[str, str], parallel: int
) -> list[Issue]:
    """All of the issues, or C(not_found) with every one that is missing.

    Server fact [tracker-5]: one that the account may not see is answered as one that is missing.
    """
    paths = {key: f"rest/api/2/issue/{path(key)}" for key in keys}

    def ask(key: str) -> Answer:
        what = f"reading the issue '{key}'"
        return tracker.read(what, paths[key], query=query, expect=(200, 404))

    # The first one alone: a login that is refused must not count several times towards a lock.
    answers = first_alone(parallel, ask, keys)
    found, missing = [], {}
    for key, answer in zip(keys, answers, strict=True):
        if answer.status == 404:
            missing[key] = answer
        else:
            found.append(_issue(answer))
    if missing:
        raise _not_found(missing)
    return found


def _issue(answer: Answer) -> Issue:
    decoded = answer.json()
    if not isinstance(decoded, dict) or not isinstance(decoded.get("fields", {}), dict):
        raise unreadable(answer, "an issue")
    if not {"key", "id", "fields"} & set(decoded):
        raise unreadable(answer, "an issue")
    return decoded


def _not_found(missing: Mapping[str, Answer]) -> ToolchainError:
    names, answers = list(missing), list(missing.values())
    said = describe(answers[0])
    named = ", ".join(names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        named += f" and {len(names) - _MOST_NAMED} more"
    return answers[0].error(
        "not_found",
        f"missing, or not visible to this account: {named}; the server answered 404: {said}",
        said,
    )
