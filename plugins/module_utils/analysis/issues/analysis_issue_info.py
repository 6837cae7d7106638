# SPDX-License-Identifier: GPL-3.0-or-later
"""Read issues of a project, and apply a quality gate ([W4.5]: `search`, `issue_details`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.errors import ToolchainError, invalid, shorten
from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, ReadOnly, unchanged
from .. import search_text
from ..client import AnalysisClient, Call
from . import issue_details, quality_gate
from .issue_search import IssueSearch, SearchOptions, SearchRequest, SearchResult, cut

#: Maximum number of offenders in the message of a gate; the task returns `max_offenders` offenders.
_TOLD = 3


@dataclass(frozen=True)
class AnalysisIssueInfoOptions(SearchOptions):
    """The options of `analysis_issue_info`."""

    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [["id", "query"]]}

    id: int | None = None
    build: str | None = None
    summary: bool = True
    thresholds: Annotated[list[quality_gate.ThresholdOptions] | None, Option(empty=False)] = None
    max_offenders: int = 20


class AnalysisIssueInfoOperation(ReadOnly):
    """Operation of `analysis_issue_info`: issues, summary, and the counts of a quality gate."""

    descriptor: ClassVar = Descriptor("analysis", {"search": reads()})

    def __init__(self, task: Task, options: AnalysisIssueInfoOptions) -> None:
        self._task, self._options = task, options
        self._refuse_search_by_id()
        self._client = AnalysisClient(task)
        build, thresholds = options.build, options.thresholds
        exact = None if build is None else search_text.exact_build(build)
        text = search_text.joined(exact, options.query)
        self._request = SearchRequest(
            options.project, text, options.view, options.limit, options.summary
        )
        if options.max_offenders < 1:
            raise invalid(f"max_offenders is {options.max_offenders}, but must be at least 1")
        self._thresholds = None if thresholds is None else quality_gate.thresholds(thresholds)

    def _refuse_search_by_id(self) -> None:
        if self._options.id is None:
            return
        for name in ("build", "view", "limit", "thresholds"):
            if getattr(self._options, name) is not None:
                raise invalid(f"{name} is only for a search, and cannot be combined with id")

    def plan(self) -> Plan:
        number = self._options.id
        return unchanged(self._found() if number is None else self._one(number))

    def _one(self, number: int) -> Mapping[str, Any]:
        found = issue_details.read(self._client, self._options.project, [number])
        return {"issues": list(found.values()), "summary": None, "complete": True}

    def _found(self) -> Mapping[str, Any]:
        search = IssueSearch(self._task, self._client)
        gated = self._thresholds is not None
        read = search.read_ungrouped if gated else search.read
        found = read(self._request)
        search.warn(found)
        result = {"issues": found.issues, "summary": found.summary, "complete": found.complete}
        if self._thresholds is None:
            if not found.complete:
                self._task.warn(cut(found))
            return result
        self._refuse_unknown(search, found, self._thresholds)
        return {**result, **self._gate(found, self._thresholds)}

    def _refuse_unknown(
        self, search: IssueSearch, found: SearchResult, judged: list[quality_gate.Threshold]
    ) -> None:
        """Raise `invalid` for a word that is unknown in the project: a typo would let the gate
        pass. Warn about a code without a defect type.
        """
        unknown = quality_gate.unknown(judged, found.issues)
        request = SearchRequest(self._options.project, summary=self._options.summary)
        if found.request != request and any(word.name != "code" for word in unknown):
            unknown = quality_gate.unknown(judged, search.read(request).issues)
        for word in unknown:
            if word.name != "code":
                raise word.refusal
        if unknown:
            self._warn_of_codes(unknown)

    def _warn_of_codes(self, unknown: list[quality_gate.Word]) -> None:
        project = self._options.project
        types = self._client.ask(
            f"reading the defect types of the project '{project}'",
            Call("defect_types", {"project": project}),
        )
        known = [str(type_.get("code")).lower() for type_ in types]
        for word in unknown:
            if not word.is_among(known):
                message = f"no defect type of the project '{project}' has this code"
                self._task.warn(f"{word.place} is '{word.text}', but {message}: check its spelling")

    def _gate(self, found: SearchResult, judged: list[quality_gate.Threshold]) -> Mapping[str, Any]:
        """Return the counts of the gate. Raises `failed` if they exceed a threshold or
        are unknown.
        """
        quality_gate.validate(found.issues, judged, self._options.max_offenders)
        counted = {
            "thresholds": [threshold.as_dict() for threshold in judged],
            "offenders": quality_gate.offenders(judged, self._options.max_offenders),
        }
        reported = {**counted, "summary": found.summary, "complete": found.complete}
        exceeded = [threshold for threshold in judged if threshold.exceeded]
        if exceeded:
            too_many = ", ".join(threshold.words for threshold in exceeded)
            first = "; ".join(
                quality_gate.line(offender) for offender in counted["offenders"][:_TOLD]
            )
            raise self._failed(f"{too_many}; the first: {first}", reported)
        if not found.complete:
            raise self._failed(
                f"the result may be incomplete, so the gate cannot pass; {cut(found)}", reported
            )
        return counted

    def _failed(self, reason: str, result: Mapping[str, Any]) -> ToolchainError:
        message = f"the quality gate of the project '{self._request.project}': {reason}"
        return ToolchainError("failed", shorten(message), result=result)
