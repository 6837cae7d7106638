# SPDX-License-Identifier: GPL-3.0-or-later
"""Issues of a project, and a gate on them ([W4.5]: C(search), C(issue_details))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.task import Task
from ...core.plan import Reading
from .. import search_text
from ..client import AnalysisClient
from . import issue_details, quality_gate
from .issue_search import IssueSearch, SearchRequest, SearchResult, cut

#: Offenders that the message of a gate names; C(max_offenders) of them are returned.
_TOLD = 3


def operation(task: Task) -> Reading:
    """The operation of the module: C(issues), C(summary), C(complete), and what a gate counted."""
    params = task.params
    by_search = [
        each for each in ("build", "view", "limit", "thresholds") if params[each] is not None
    ]
    if params["id"] is not None:
        if by_search:
            raise invalid(f"{by_search[0]} goes with a search, not with id")
        return Reading(lambda: _one(task))
    return Reading(_Reader(task).read)


def _one(task: Task) -> Mapping[str, Any]:
    project, number = task.params["project"], task.params["id"]
    found = issue_details.read(AnalysisClient(task), project, [number])
    return {"issues": list(found.values()), "summary": None, "complete": True}


class _Reader:
    """A search with what is made of it."""

    def __init__(self, task: Task) -> None:
        self._task, params = task, task.params
        self._client = AnalysisClient(task)
        build = params["build"]
        text = search_text.joined(
            None if build is None else search_text.exact_build(build), params["query"]
        )
        self._question = SearchRequest(
            params["project"], text, params["view"], params["limit"], params["summary"]
        )
        self._keep = int(params["max_offenders"])
        if self._keep < 1:
            raise invalid(f"max_offenders is {self._keep}, but must be at least 1")
        given = params["thresholds"]
        self._thresholds = None if given is None else quality_gate.thresholds(given)

    def read(self) -> Mapping[str, Any]:
        search = IssueSearch(self._task, self._client)
        gated = self._thresholds is not None
        found = (search.read_ungrouped if gated else search.read)(self._question)
        search.warn(found)
        result = {"issues": found.issues, "summary": found.summary, "complete": found.complete}
        if self._thresholds is None:
            if not found.complete:
                self._task.warn(cut(found))
            return result
        return {**result, **self._gate(found, self._thresholds)}

    def _gate(self, found: SearchResult, judged: list[quality_gate.Threshold]) -> Mapping[str, Any]:
        """What the gate counted; C(failed) where there are too many, or nobody knows how many."""
        for unknown in quality_gate.judge(found.issues, judged, self._keep):
            self._task.warn(
                f"{found.question.what}: no issue has the {unknown}, check its spelling"
            )
        counted = {
            "thresholds": [each.as_dict() for each in judged],
            "offenders": quality_gate.offenders(judged, self._keep),
        }
        told = {**counted, "summary": found.summary, "complete": found.complete}
        exceeded = [each for each in judged if each.exceeded]
        if exceeded:
            too_many = ", ".join(each.words for each in exceeded)
            first = "; ".join(quality_gate.line(each) for each in counted["offenders"][:_TOLD])
            raise self._failed(f"{too_many}; the first: {first}", told)
        if not found.complete:
            raise self._failed(f"it cannot be passed; {cut(found)}", told)
        return counted

    def _failed(self, reason: str, result: Mapping[str, Any]) -> ToolchainError:
        message = f"the quality gate of the project '{self._question.project}': {reason}"
        return ToolchainError("failed", shorten(message), result=result)
