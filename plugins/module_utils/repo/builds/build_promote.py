# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote a build: set its status, and copy or move its files [C2.6]."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...core.errors import ToolchainError
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.plan import Action, Plan, without_none
from ..client import RepoClient, repository_key
from ..properties import texts_of
from ..repositories import deployment_target
from .promotions import LaterPromotionOptions, Promotion, stages_of
from .records import Aggregated, BuildKey, read_builds
from .single_promotion import PromotionOptions, SinglePromotion


@dataclass(frozen=True, kw_only=True)
class BuildPromoteOptions(PromotionOptions):
    """The options of `build_promote`."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [("status", "target_repo")]}

    build_name: str
    build_number: str
    project: str | None = None
    aggregated: Aggregated = "fail"
    followed_by: list[LaterPromotionOptions] | None = None


@dataclass(frozen=True)
class _BuildPlan:
    """The plan for a build."""

    promotion: SinglePromotion
    plan: Plan


class BuildPromoteOperation:
    """Promote a build, and if wanted the builds to which it refers, before the build itself.

    A later run continues after an error: the promotion of the build itself comes last.
    """

    descriptor: ClassVar = Descriptor(
        "repo",
        {"promote": writes("read", "deploy")},
        kind="build",
        name="{build_name}/{build_number}",
    )

    def __init__(self, task: Task, options: BuildPromoteOptions) -> None:
        properties = {
            str(name): texts_of(value)
            for name, value in without_none(options.properties or {}).items()
        }
        self._task, self._options = task, replace(options, properties=properties)
        self._key = BuildKey(options.build_name, options.build_number, options.project)
        for name, key in (
            ("source_repo", options.source_repo),
            ("target_repo", options.target_repo),
        ):
            if key is not None:
                repository_key(name, key)
        self._later = stages_of(
            options.followed_by or (),
            (options.build_name, options.build_number, options.project),
            Promotion(options.status, options.target_repo),
        )
        self._client = RepoClient(task)
        # the cache saves requests, and limits warnings to one per target
        self._resolve = functools.cache(self._read_target)

    def plan(self) -> Plan:
        own, others = read_builds(self._client, self._key, self._options.aggregated)
        builds = []
        for build in (*others, own):
            promotion = SinglePromotion(
                self._task,
                self._client,
                self._options,
                build.key,
                later=self._later,
                resolve=self._resolve,
            )
            builds.append(_BuildPlan(promotion, promotion.plan(build.record)))
        return _combined(builds)

    def _read_target(self, target: str) -> tuple[str, ToolchainError | None]:
        """Return the repository that stores the promoted files, and the error if it is not found.

        The repository may exist although the account cannot see it, so the task only warns.
        """
        try:
            return deployment_target(self._client, target), None
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            self._task.warn(f"cannot read the repository '{target}': {error}")
            return target, error

    def preflight(self, plan: Plan) -> None:
        for build in _changed(plan):
            build.promotion.preflight(build.plan)

    def predict(self, plan: Plan) -> None:
        for build in _changed(plan):
            build.promotion.predict(build.plan)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: dict[BuildKey, Mapping[str, Any]] = {}
        for build in _changed(plan):
            try:
                done[build.promotion.key] = build.promotion.apply(build.plan)
            except ToolchainError as error:
                error.result["aggregated"] = _aggregated(plan.data, done)
                if done:
                    error.result["changed"] = True
                raise
        messages = [message for values in done.values() for message in values["messages"]]
        return {**done.get(self._key, {}), "messages": messages}


def _changed(plan: Plan) -> list[_BuildPlan]:
    return [build for build in plan.data if build.plan.changed]


def _aggregated(
    builds: list[_BuildPlan], done: Mapping[BuildKey, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the entries of the return value `aggregated`.

    :param done: promoted builds after an error; `None` means that all changes count
    """
    return [
        {
            **build.promotion.key.as_dict(),
            "changed": build.plan.changed if done is None else build.promotion.key in done,
        }
        for build in builds[:-1]
    ]


def _combined(builds: list[_BuildPlan]) -> Plan:
    """Return the plan for all builds; the build of the task is the last one."""
    *others, own = (build.plan for build in builds)
    before, after = own.before, own.after
    changed = [build for build in builds[:-1] if build.plan.changed]
    if changed:
        names = ["/".join(build.promotion.key.as_dict().values()) for build in changed]
        plans = [build.plan for build in changed]
        before = {**before, "aggregated": dict(zip(names, (p.before for p in plans), strict=True))}
        after = {**after, "aggregated": dict(zip(names, (p.after for p in plans), strict=True))}
    actions = {plan.action for plan in (*others, own) if plan.changed}
    action: Action = "update" if len(actions) > 1 else next(iter(actions), "none")
    missing = [path for plan in (*others, own) for path in plan.result["missing_files"]]
    result = {**own.result, "missing_files": missing, "aggregated": _aggregated(builds)}
    return Plan(before, after, action, result=result, data=builds)
