# SPDX-License-Identifier: GPL-3.0-or-later
"""Read issues and check a quality gate: `analysis_issue_info` [W4.5]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, protocol, shorten
from ...core.json_text import as_text
from ...core.module.descriptor import Descriptor, reads
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import AnalysisClient, Call
from ..service import SERVICE
from . import issue_details, issue_search, quality_gate
from .issue_search import IssueSearch, SearchOptions, SearchRequest, SearchResult, cut

#: Maximum number of offending issues in a message. The task returns up to `max_offenders`.
_MAX_IN_MESSAGE = 3


@dataclass(frozen=True)
class AnalysisIssueInfoOptions(SearchOptions):
    """The options of `analysis_issue_info`."""

    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [["id", "query"]]}
    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("id", forbids=("build", "view", "limit", "thresholds")),
    )

    id: int | None = None
    build: str | None = None
    summary: bool = True
    thresholds: Annotated[list[quality_gate.ThresholdOptions] | None, Option(empty=False)] = None
    max_offenders: Positive = 20


class AnalysisIssueInfoOperation(ReadOnly):
    """Returns issues, their summary, and the counts of a quality gate."""

    descriptor: ClassVar = Descriptor(SERVICE, {"search": reads()})

    def __init__(self, task: Task, options: AnalysisIssueInfoOptions) -> None:
        self._task, self._options = task, options
        self._client = AnalysisClient(task)
        build, thresholds = options.build, options.thresholds
        exact = None if build is None else issue_search.exact_build(build)
        text = issue_search.joined(exact, options.query)
        # a gate is decided on the summary, which proves that the response is of this service
        summary = options.summary or thresholds is not None
        self._request = SearchRequest(options.project, text, options.view, options.limit, summary)
        if thresholds is not None:
            issue_search.require_exact_build(options.query or "")
            issue_search.require_quoted_values(options.query or "")
        self._thresholds = None if thresholds is None else quality_gate.thresholds(thresholds)

    def plan(self) -> Plan:
        number = self._options.id
        if number is not None:
            issues = issue_details.read(self._client, self._options.project, [number])
            return unchanged({"issues": list(issues.values()), "summary": None, "complete": True})
        search = IssueSearch(self._task, self._client)
        has_gate = self._thresholds is not None
        read = search.read_ungrouped if has_gate else search.read
        found = read(self._request)
        search.warn(found)
        if has_gate and found.summary is None:
            raise protocol(
                f"{self._request.purpose}: the response has no summary, so the quality gate cannot"
                " be decided"
            )
        summary = found.summary if self._options.summary else None
        result = {"issues": found.issues, "summary": summary, "complete": found.complete}
        if self._thresholds is None:
            if not found.complete:
                self._task.warn(cut(found))
            return unchanged(result)
        thresholds = self._thresholds
        self._refuse_unknown(search, found, thresholds)
        quality_gate.validate(found.issues, thresholds, self._options.max_offenders)
        offenders = quality_gate.offenders(thresholds, self._options.max_offenders)
        counted = {
            "thresholds": [threshold.as_dict() for threshold in thresholds],
            "offenders": offenders,
        }
        complete = found.complete and found.total is not None and not found.fills_limit
        reported = {**counted, "summary": summary, "complete": complete}
        exceeded = ", ".join(threshold.words for threshold in thresholds if threshold.exceeded)
        if exceeded:
            first = "; ".join(map(quality_gate.line, offenders[:_MAX_IN_MESSAGE]))
            raise self._failed(f"{exceeded}; the first: {first}", reported)
        if not complete:
            raise self._failed(
                f"the gate cannot pass, because the result may be incomplete: {cut(found)}",
                reported,
            )
        return unchanged({**result, **counted})

    def _refuse_unknown(
        self, search: IssueSearch, found: SearchResult, thresholds: list[quality_gate.Threshold]
    ) -> None:
        """Raise `invalid` for an unknown value in a threshold, and warn about an unknown code.

        Without this check a typo would let the gate pass.
        """
        unknown = quality_gate.unknown(thresholds, found.issues)
        request = SearchRequest(self._options.project)
        if found.request != request and any(word.name != "code" for word in unknown):
            unknown = quality_gate.unknown(thresholds, search.read(request).issues)
        for word in unknown:
            if word.name != "code":
                raise word.refusal
        if not unknown:
            return
        project = self._options.project
        types = self._client.ask(
            f"reading the defect types of the project '{project}'",
            Call("defect_types", {"project": project}),
        )
        known = [as_text(type_.get("code")).lower() for type_ in types]
        for word in unknown:
            if not word.is_among(known):
                self._task.warn(
                    f"{word.place} is '{word.text}', but no defect type of the project '{project}'"
                    " has this code: check its spelling"
                )

    def _failed(self, reason: str, result: Mapping[str, Any]) -> ToolchainError:
        message = f"the quality gate of the project '{self._request.project}': {reason}"
        return ToolchainError("failed", shorten(message), result=result)
