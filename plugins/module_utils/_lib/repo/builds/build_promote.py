# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote a build: set its status, and copy or move its files [C2.6]."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core import address
from ...core.errors import ToolchainError, shorten
from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Action, Plan, unchanged, without_none
from ...core.verification import without_effect
from .. import aql
from ..client import RepoClient, refuse_page, repository_key
from ..error_text import errors_in
from ..properties import texts_of
from ..repositories import deployment_target
from ..service import SERVICE
from . import recorded_files, records
from .promotions import (
    BuildSnapshot,
    LaterPromotionOptions,
    Promotion,
    messages_in,
    nothing_to_do,
    result_of,
    stages_of,
)
from .records import Aggregated, BuildKey, read_builds

_NOT_PROMOTED = Promotion(None, None)

#: Returns the repository that stores the files promoted to a target, and the error if it is not
#: found.
Resolve: TypeAlias = Callable[[str], tuple[str, ToolchainError | None]]


@dataclass(frozen=True)
class PromotionOptions:
    """The options of a promotion that apply to each of its builds."""

    status: str | None = None
    comment: Annotated[str | None, Option(empty=True)] = None
    ci_user: str | None = None
    source_repo: str | None = None
    target_repo: str | None = None
    copy: bool = True
    artifacts: bool = True
    dependencies: bool = False
    scopes: list[str] | None = None
    properties: Annotated[dict[str, Any] | None, Option(values="text")] = None
    fail_fast: bool = True
    force: bool = False
    gate: bool = False
    withdrawn: Literal["keep", "fail", "check", "promote"] = "keep"


class SinglePromotion:
    """Promote a build if its newest promotion or the files in the target repository differ.

    Server fact [repo-15]: every request adds a promotion to the record, even an identical one.

    :param later: promotions of the same release that follow this promotion
    """

    def __init__(
        self,
        task: Task,
        client: RepoClient,
        options: PromotionOptions,
        key: BuildKey,
        *,
        later: Sequence[Promotion],
        resolve: Resolve,
    ) -> None:
        self._task, self._client, self._options = task, client, options
        self.key, self._later, self._resolve = key, later, resolve
        self._name, self._number, self._label = key.name, key.number, str(key)
        self._build = client, key

    def plan(self, record: Mapping[str, Any]) -> Plan:
        options = self._options
        current = BuildSnapshot(record, options.target_repo)
        newest = current.newest
        withdrawn = options.withdrawn != "keep" and self._is_withdrawn(current)
        if withdrawn and options.withdrawn != "promote":
            raise self._withdrawal(current)
        if options.withdrawn == "check":
            stages = [options.status, *(later.status for later in self._later)]
            promoted = newest is not None and newest.status in stages
            return unchanged(result_of(newest or _NOT_PROMOTED, promoted=promoted))
        force = options.force or withdrawn
        if newest is not None and not force and self._is_superseded(current):
            return nothing_to_do(newest)
        if options.target_repo and not (newest and newest.repository == options.target_repo):
            target, error = self._resolve(options.target_repo)
            current = replace(current, target=target, target_error=error)
        missing: Sequence[str] = ()
        if not force and self._is_promoted(current):
            # without a recorded promotion, the files have already been found in the target
            missing = self._missing_files(current) if self._is_recorded(current) else ()
            if not missing:
                return nothing_to_do(newest or Promotion(None, current.target))
            self._require_copy(current, missing)
            self._warn_of_repair(current, missing)
        if options.gate and records.predicted_record(*self._build) is None:
            self._validate(self._rehearse(current))
        return self._planned(current, missing)

    def _planned(self, current: BuildSnapshot, missing: Sequence[str]) -> Plan:
        wanted = Promotion(self._options.status, current.target)
        before = {} if current.newest is None else current.newest.status_and_repository()
        after = {**before, **without_none(wanted.status_and_repository())}
        if missing:
            before["missing_files"], after["missing_files"] = list(missing), []
        result = result_of(wanted, promoted=False, missing=missing)
        action: Action = "update" if before else "create"
        return Plan(before, after, action, result=result, data=current)

    def _read(self, known: BuildSnapshot) -> BuildSnapshot:
        """Return the snapshot with a newly read build record."""
        return replace(known, record=records.expected_record(*self._build))

    def _is_withdrawn(self, current: BuildSnapshot) -> bool:
        """Return whether the newest promotion takes back the wanted one: it follows the wanted
        promotion, and its status is neither the wanted one nor one of `followed_by`.

        Without a wanted status, an earlier promotion to the target is the wanted one.
        """
        *history, newest = current.history or [_NOT_PROMOTED]
        if newest.status in [later.status for later in self._later]:
            return False
        status, target = self._options.status, self._options.target_repo
        earlier = [
            promotion.status
            for promotion in history
            if self._equals(promotion, Promotion(status or promotion.status, target))
        ]
        return bool(earlier) and newest.status != earlier[-1]

    def _withdrawal(self, current: BuildSnapshot) -> ToolchainError:
        newest = current.history[-1]
        since = f" since {newest.timestamp}" if newest.timestamp else ""
        return ToolchainError(
            "conflict",
            f"{self._label} was withdrawn: after the wanted promotion its status is"
            f" '{newest.status}'{since}, which no later promotion of the release has. To release it"
            " again on purpose, set release_again: true in the playbook release, or withdrawn:"
            f" promote in the task; if '{newest.status}' is a later stage of the release, add its"
            " promotion",
        )

    def _is_superseded(self, current: BuildSnapshot) -> bool:
        """Return whether the build already has a promotion that follows the wanted promotion.

        Either `followed_by` lists the newest promotion, or the record contains the wanted promotion
        and its newest promotion has another status.
        """
        *history, newest = current.history
        wanted = Promotion(self._options.status, self._options.target_repo)
        if any(self._equals(newest, later) for later in self._later):
            return True
        if wanted.status in (None, newest.status):
            return False
        earlier = [promotion for promotion in history if self._equals(promotion, wanted)]
        if earlier and earlier[-1].repository is not None:
            self._warn_of_missing(replace(current, target=earlier[-1].repository))
        return bool(earlier)

    def _warn_of_missing(self, current: BuildSnapshot) -> None:
        missing = self._missing_files(current)
        if missing:
            self._task.warn(
                f"{self._label} was promoted to '{self._options.status}' before and is unchanged,"
                f" but '{current.target}' lacks {shorten(', '.join(missing), 300)}: force promotes"
                " it again; followed_by lists later promotions that move its files"
            )

    def _equals(self, recorded: Promotion, wanted: Promotion) -> bool:
        """Return whether a recorded promotion has the wanted status and repository.

        Server fact [repo-15]: for a virtual target, the record contains its deployment repository.
        """
        if recorded.status != wanted.status:
            return False
        if wanted.repository in (None, recorded.repository):
            return True
        return self._resolve(str(wanted.repository))[0] == recorded.repository

    def _is_promoted(self, current: BuildSnapshot) -> bool:
        """Return whether the build has the wanted promotion. Without a status, a promotion may have
        no entry in the record; then the files must be in the target repository.
        """
        return self._is_recorded(current) or self._is_relocated(current)

    def _is_recorded(self, current: BuildSnapshot) -> bool:
        newest, options = current.newest, self._options
        if newest is None or options.status not in (None, newest.status):
            return False
        return current.target is None or newest.repository in (current.target, options.target_repo)

    def _is_relocated(self, current: BuildSnapshot) -> bool:
        options = self._options
        if options.status is not None or not options.artifacts or options.dependencies:
            return False
        if current.target is None:
            return False
        found = recorded_files.relocated(
            self._client, current.record, self.key, current.target, copied=options.copy
        )
        return found is True

    def _missing_files(self, current: BuildSnapshot) -> Sequence[str]:
        """Return the paths of recorded artifacts that the target repository lacks.

        Warns and returns nothing if the server cannot list the target repository.
        """
        if current.target is None or not self._options.artifacts:
            return ()
        missing = recorded_files.missing_files(
            self._client, current.record, current.target, self._options.source_repo
        )
        if missing is None:
            self._task.warn(
                f"the files of {self._label} in '{current.target}' cannot be compared with the"
                " build record: the server does not list this repository, or no digests"
            )
        return missing or ()

    def _warn_of_repair(self, current: BuildSnapshot, missing: Sequence[str]) -> None:
        self._task.warn(
            f"{self._label} is promoted, but '{current.target}' lacks"
            f" {shorten(', '.join(missing), 300)}: the task promotes these files again"
        )

    def _require_copy(self, current: BuildSnapshot, missing: Sequence[str]) -> None:
        if not self._options.copy:
            raise ToolchainError(
                "conflict",
                f"{self._label} is promoted, but '{current.target}' does not contain the content"
                f" of {shorten(', '.join(missing), 400)}: deploy these files there, or promote the"
                " build again with copy: true",
            )

    def _body(self) -> dict[str, Any]:
        """Return the request body [W2.1]; options that are not set are left out."""
        options = self._options
        values = {
            "status": options.status,
            "comment": options.comment,
            "ciUser": options.ci_user,
            "sourceRepo": options.source_repo,
            "targetRepo": options.target_repo,
            "copy": options.copy,
            "artifacts": options.artifacts,
            "dependencies": options.dependencies,
            "scopes": options.scopes,
            "failFast": options.fail_fast,
        }
        if values["failFast"] and not self._client.dialect.takes_fail_fast:
            del values["failFast"]
        body = without_none(values)
        return {**body, "properties": options.properties} if options.properties else body

    @property
    def _path(self) -> str:
        return f"api/build/promote/{address.path(self._name, self._number)}"

    def preflight(self, plan: Plan) -> None:
        """Send a dry run if the server supports it; else raise the error of a missing target."""
        predicted = records.predicted_record(*self._build) is not None
        if self._options.gate and not predicted:
            return
        if not predicted and self._client.rehearses_promotions():
            self._validate(self._rehearse(plan.data))
        elif plan.data.target_error is not None:
            raise plan.data.target_error

    def _rehearse(self, known: BuildSnapshot) -> Response:
        """Send the promotion with `dryRun` [W2.1]. The request counts as a read.

        Raises `failed` if the server ignored `dryRun` and promoted the build.
        """
        response = self._client.transport.read(
            f"rehearsing the promotion of {self._label}",
            self._path,
            method="POST",
            query={"project": self.key.project},
            json={**self._body(), "dryRun": True},
            expect=(200, 201, 202, 204, 400),
            validate=refuse_page,
        )
        if not self._client.rehearses_promotions() and self._read(known).is_newer_than(known):
            error = response.error(
                "failed", "the server ignored the dry run and promoted the build"
            )
            error.result["changed"] = True
            raise error
        return response

    def predict(self, plan: Plan) -> None:
        if plan.data.target is not None and self._options.artifacts:
            recorded_files.predict_files(self._client, plan.data.record, plan.data.target)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        response = self._client.transport.write(
            f"promoting {self._label}",
            "POST",
            self._path,
            query={"project": self.key.project},
            json=self._body(),
            expect=(200, 201, 202, 204, 400),
            validate=refuse_page,
            verify=lambda: self._was_done(plan.data),
        )
        messages = self._validate(response)
        current = self._read(plan.data)
        self._require_promoted(response, current, messages)
        if plan.result["missing_files"]:
            self._require_files(response, current, messages)
        recorded = plan.result["promotion"]
        if current.newest is not None and self._options.status is not None:
            recorded = current.newest.as_dict()
        return {"messages": messages, "promotion": recorded}

    def _was_done(self, known: BuildSnapshot) -> bool | None:
        """Return whether the server promoted the build although its response was lost.

        Returns `None` if that is unknown, for example after a promotion by another client.
        """
        current = self._read(known)
        added = current.is_newer_than(known)
        if added or self._options.status is None:
            done = self._is_promoted(current)
            return None if not done and (added or self._has_begun(current)) else done
        conclusive = known.history or self._client.dialect.record_shows_promotions
        return False if conclusive and not self._has_begun(current) else None

    def _has_begun(self, current: BuildSnapshot) -> bool:
        """Return whether the server may have begun to copy or move files to the target repository.

        Server fact [repo-15, repo-28]: it relocates the items individually, then sets the status.
        """
        options = self._options
        if current.target is None or not (options.artifacts or options.dependencies):
            return False
        if options.dependencies or not self._client.dialect.query_by_property:
            return True
        criteria = {
            "@build.name": self._name,
            "@build.number": self._number,
            "repo": current.target,
        }
        purpose = f"finding the files of {self._label}"
        return aql.ask_if_supported(self._client, purpose, criteria, ["path"]) != []

    def _validate(self, response: Response) -> list[dict[str, str]]:
        """Return the messages in a promotion response; warn for each message of the level WARNING.

        Raises `rejected` for a message of the level ERROR. Server fact [repo-15]: the server may
        report with status 200 or 400 that it could not relocate some files.
        """
        messages = messages_in(response)
        wrong = [message["message"] for message in messages if message["level"] == "ERROR"]
        if response.status == 400 and not messages:
            raise self._client.transport.failure(response)
        if wrong or response.status == 400:
            error_message = shorten(
                errors_in(response.text) or "; ".join(message["message"] for message in messages)
            )
            error = response.error(
                "rejected", f"the server reports: {error_message}", error_message
            )
            error.result["messages"] = messages
            raise error
        for message in messages:
            if message["level"].startswith("WARN"):
                self._task.warn(f"{response.request.purpose}: {message['message']}")
        return messages

    def _require_promoted(
        self, response: Response, current: BuildSnapshot, messages: list[dict[str, str]]
    ) -> None:
        """Raise `failed` if the newest promotion in the record is not the requested promotion."""
        newest = current.newest
        if self._options.status is None or self._is_promoted(current):
            return
        if newest is not None:
            found = f"has the status '{newest.status}' and the repository '{newest.repository}'"
        elif self._client.dialect.record_shows_promotions:
            found = "is missing"
        else:
            return
        purpose = response.request.purpose
        reason = f"the newest promotion in the record {found}"
        raise without_effect(purpose, reason, messages=messages)

    def _require_files(
        self, response: Response, current: BuildSnapshot, messages: list[dict[str, str]]
    ) -> None:
        """Raise `failed` if files that were missing in the target are still missing."""
        missing = self._missing_files(current)
        if missing:
            raise without_effect(
                response.request.purpose,
                f"'{current.target}' still does not contain the content of"
                f" {shorten(', '.join(missing), 400)}",
                messages=messages,
            )


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
        SERVICE,
        {"promote": writes("read", "deploy")},
        kind="build",
        name="{project}:{build_name}/{build_number}",
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
        try:
            own, others = read_builds(self._client, self._key, self._aggregated)
        except ToolchainError as error:
            # a release checks its builds before it publishes their records
            if error.kind != "not_found" or self._options.withdrawn != "check":
                raise
            missing = result_of(_NOT_PROMOTED, promoted=False)
            return unchanged({**missing, "aggregated": []})
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

    @property
    def _aggregated(self) -> Aggregated:
        only_checks = self._options.withdrawn == "check" and self._options.aggregated == "fail"
        return "ignore" if only_checks else self._options.aggregated

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
