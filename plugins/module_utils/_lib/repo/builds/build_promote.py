# SPDX-License-Identifier: GPL-3.0-or-later
"""Promote a build: set its status, and copy or move its files [C2.6]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core import address
from ...core.errors import ToolchainError, conflict, invalid, shorten
from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, Segment
from ...core.plan import Action, Plan, unchanged, without_none
from ...core.verification import without_effect
from .. import aql
from ..client import RepoClient, errors_in, messages_of, refuse_page, repository_key, text_of
from ..properties import texts_of
from ..repositories import deployment_target
from ..service import SERVICE
from . import recorded_files, records, soak
from .records import Aggregated, BuildKey, Promotion, promotions, read_builds
from .soak import StatusSoak

_NOT_PROMOTED = Promotion(None, None)

#: Returns the repository that stores the files promoted to a target, and the error if it is not
#: found.
Resolve: TypeAlias = Callable[[str], tuple[str, ToolchainError | None]]

#: Message of the server if it lacks files of the record, in lower case [repo-15].
_NO_FILES = "unable to find artifacts"


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


@dataclass(frozen=True)
class BuildSnapshot:
    """Build record and target repository of a promotion, as read from the server.

    :param target: key of the repository that stores the files: for a virtual repository, its
        deployment repository
    :param target_error: error of the read of the target repository; `None` if it was found
    """

    record: Mapping[str, Any]
    target: str | None = None
    target_error: ToolchainError | None = None

    @property
    def history(self) -> list[Promotion]:
        return promotions(self.record)

    def is_newer_than(self, earlier: BuildSnapshot) -> bool:
        """Return whether the record has more promotions than in the earlier snapshot."""
        return len(self.history) > len(earlier.history)

    @property
    def newest(self) -> Promotion | None:
        return self.history[-1] if self.history else None


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
            newest = current.history[-1]
            since = f" since {newest.timestamp}" if newest.timestamp else ""
            raise conflict(
                f"{self._label} was withdrawn: after the wanted promotion its status is"
                f" '{newest.status}'{since}, which no later promotion of the release has. To"
                " release it again on purpose, set release_again: true in the playbook release, or"
                f" withdrawn: promote in the task; if '{newest.status}' is a later stage of the"
                " release, add its promotion"
            )
        if options.withdrawn == "check":
            stages = [options.status, *(later.status for later in self._later)]
            promoted = newest is not None and newest.status in stages
            return unchanged(result_of(newest or _NOT_PROMOTED, promoted=promoted))
        force = options.force or withdrawn
        if newest is not None and not force and self._is_superseded(current):
            return Plan({}, {}, result=result_of(newest, promoted=True))
        if options.target_repo and not (newest and newest.repository == options.target_repo):
            target, error = self._resolve(options.target_repo)
            current = replace(current, target=target, target_error=error)
        missing: Sequence[str] = ()
        if not force and self._is_promoted(current):
            # without a recorded promotion, the files have already been found in the target
            missing = self._missing_files(current) if self._is_recorded(current) else ()
            if not missing:
                done = newest or Promotion(None, current.target)
                return Plan({}, {}, result=result_of(done, promoted=True))
            if not self._options.copy:
                raise conflict(
                    f"{self._label} is promoted, but '{current.target}' does not contain the"
                    f" content of {shorten(', '.join(missing), 400)}: deploy these files there, or"
                    " promote the build again with copy: true"
                )
            self._task.warn(
                f"{self._label} is promoted, but '{current.target}' lacks"
                f" {shorten(', '.join(missing), 300)}: the task promotes these files again"
            )
        if options.gate and records.predicted_record(*self._build) is None:
            self._validate(self._rehearse(current))
        wanted = Promotion(options.status, current.target)
        before = {} if newest is None else newest.status_and_repository()
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
        """Return whether somebody has withdrawn the promotion that the task describes.

        The newest promotion withdraws it if both conditions hold:

        - The build record has the promotion of the task earlier in its history. Without a `status`,
          this is any promotion to the target.
        - The status of the newest promotion differs from it, and is not in `followed_by`.
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
            target = earlier[-1].repository
            missing = self._missing_files(replace(current, target=target))
            if missing:
                self._task.warn(
                    f"{self._label} was promoted to '{wanted.status}' before and is unchanged, but"
                    f" '{target}' lacks {shorten(', '.join(missing), 300)}: force promotes it"
                    " again; followed_by lists later promotions that move its files"
                )
        return bool(earlier)

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
        options, target = self._options, current.target
        if self._is_recorded(current):
            return True
        if options.status is not None or not options.artifacts or options.dependencies:
            return False
        if target is None or current.target_error is not None:
            return False
        found = recorded_files.relocated(
            self._client, current.record, self.key, target, copied=options.copy
        )
        return found is True

    def _is_recorded(self, current: BuildSnapshot) -> bool:
        newest, options = current.newest, self._options
        if newest is None or options.status not in (None, newest.status):
            return False
        return current.target is None or newest.repository in (current.target, options.target_repo)

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

    def _request(self, **more: bool) -> dict[str, Any]:
        """Return the parts of the request [W2.1]; options that are not set are left out.

        :param more: further members of the body
        """
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
        if options.fail_fast and not self._client.dialect.takes_fail_fast:
            del values["failFast"]
        body = {**without_none(values), **more}
        return {
            "path": f"api/build/promote/{address.path(self._name, self._number)}",
            "query": {"project": self.key.project},
            "json": {**body, "properties": options.properties} if options.properties else body,
            "expect": (200, 201, 202, 204, 400),
            "validate": refuse_page,
        }

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
            method="POST",
            **self._request(dryRun=True),
        )
        if not self._client.rehearses_promotions() and self._read(known).is_newer_than(known):
            message = "the server ignored the dry run and promoted the build"
            error = response.error("failed", message)
            error.result["changed"] = True
            raise error
        return response

    def predict(self, plan: Plan) -> None:
        if self._options.status is not None:
            key = (*self.key.prediction, self._options.status)
            self._client.predictions.add("promotion", *key)
        if plan.data.target is not None and self._options.artifacts:
            recorded_files.predict_files(self._client, plan.data.record, plan.data.target)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        response = self._client.transport.write(
            f"promoting {self._label}",
            "POST",
            verify=partial(self._was_done, plan.data),
            **self._request(),
        )
        messages, purpose = self._validate(response), response.request.purpose
        current = self._read(plan.data)
        newest, target = current.newest, current.target
        if self._options.status is not None and not self._is_promoted(current):
            found = "is missing" if self._client.dialect.record_shows_promotions else ""
            if newest is not None:
                found = f"has the status '{newest.status}' and the repository '{newest.repository}'"
            if found:
                reason = f"the newest promotion in the record {found}"
                raise without_effect(purpose, reason, messages=messages)
        missing = self._missing_files(current) if plan.result["missing_files"] else ()
        if missing:
            files = shorten(", ".join(missing), 400)
            reason = f"'{target}' still does not contain the content of {files}"
            raise without_effect(purpose, reason, messages=messages)
        recorded = plan.result["promotion"]
        if newest is not None and self._options.status is not None:
            recorded = newest.as_dict()
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
        criteria = {**self.key.criteria, "repo": current.target}
        purpose = f"finding the files of {self._label}"
        return aql.ask_if_supported(self._client, purpose, criteria, ["path"]) != []

    def _validate(self, response: Response) -> list[dict[str, str]]:
        """Return the messages in a promotion response; warn for each message of the level WARNING.

        Raises `rejected` for a message of the level ERROR. Server fact [repo-15]: the server may
        report with status 200 or 400 that it could not relocate some files.
        """
        messages, text = messages_of(response.text), text_of(response.text)
        if response.status < 300:
            # the written interface [W2.1] does not specify the body: a text is a message
            if text.startswith("{"):
                response.json()  # raises for truncated JSON, which may have contained an ERROR
            if not messages and errors_in(response.text):
                messages = [{"level": "ERROR", "message": errors_in(response.text)}]
            elif not messages and text and not text.startswith(("{", "[")):
                messages = [{"level": "INFO", "message": shorten(text)}]
        wrong = [message["message"] for message in messages if message["level"] == "ERROR"]
        if response.status == 400 and not messages:
            error = self._client.transport.failure(response)
            self._add_remedy(error, text)
            raise error
        if wrong or response.status == 400:
            every = "; ".join(message["message"] for message in messages)
            detail = shorten(errors_in(response.text) or every)
            error = response.error("rejected", f"the server reports: {detail}", detail)
            error.result["messages"] = messages
            self._add_remedy(error, detail)
            raise error
        for message in messages:
            if message["level"].startswith("WARN"):
                self._task.warn(f"{response.request.purpose}: {message['message']}")
        return messages

    def _add_remedy(self, error: ToolchainError, text: str) -> None:
        """Say what to do if the server lacks files of the record."""
        if _NO_FILES in text.lower():
            source = f" of '{self._options.source_repo}'" if self._options.source_repo else ""
            error.with_hint(
                f"some files of the record are no items{source} with these digests and the"
                " properties build.name and build.number, or two builds have this number: check"
                " source_repo, or deploy the files again and run build_publish, which sets the"
                " properties"
            )


def result_of(
    promotion: Promotion, *, promoted: bool, missing: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the return values of `build_promote`."""
    return {
        "messages": [],
        "promotion": promotion.as_dict(),
        "promoted": promoted,
        "missing_files": list(missing),
    }


@dataclass(frozen=True)
class LaterPromotionOptions:
    """Suboptions of `followed_by`. `build_number` is empty for a build that does not exist yet."""

    build_name: str
    build_number: Annotated[str | None, Option(empty=True)] = None
    project: Annotated[str | None, Option(empty=True)] = None
    status: Annotated[str | None, Option(empty=True)] = None
    target_repo: Annotated[str | None, Option(empty=True)] = None


@dataclass(frozen=True, kw_only=True)
class BuildPromoteOptions(PromotionOptions):
    """The options of `build_promote`."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [("status", "target_repo")]}

    build_name: Segment
    build_number: Segment
    project: str | None = None
    aggregated: Aggregated = "fail"
    followed_by: list[LaterPromotionOptions] | None = None
    soak: StatusSoak | None = None


def stages_of(
    later: Sequence[LaterPromotionOptions], build: tuple[str, str, str | None], promotion: Promotion
) -> list[Promotion]:
    """Return the entries of `followed_by` that are promotions of this build with a status.

    :param build: name, number and project
    :param promotion: the promotion of the task
    :raises ToolchainError: `invalid` if the build record could not distinguish two promotions
    """
    stages = [promotion]
    for place, entry in enumerate(later):
        stage = Promotion(entry.status or None, entry.target_repo or None)
        named = (entry.build_name, entry.build_number, entry.project or None)
        if named != build or stage.status is None:
            continue
        if any(
            # the record entry of the earlier promotion also matches this one
            stage.status == before.status and stage.repository in (None, before.repository)
            for before in stages
        ):
            name, number, _project = build
            raise invalid(
                f"followed_by[{place}] promotes the build '{name}' #{number} to the status"
                f" '{stage.status}' again, and its record cannot distinguish the two promotions:"
                " remove one of them, or use different statuses"
            )
        stages.append(stage)
    return stages[1:]


#: The promotions with their plans; the build of the task is the last one.
_Builds: TypeAlias = list[tuple[SinglePromotion, Plan]]


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
        if options.status is None and not (options.artifacts or options.dependencies):
            raise invalid(
                "artifacts, dependencies: both are false, so without status there is nothing to"
                " promote: set status, or one of them to true"
            )
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
        self._resolve = cache(self._read_target)

    def plan(self) -> Plan:
        try:
            mode = self._options.aggregated
            only_checks = self._options.withdrawn == "check" and mode == "fail"
            own, referenced = read_builds(
                self._client, self._key, "ignore" if only_checks else mode
            )
        except ToolchainError as error:
            # a release checks its builds before it publishes their records
            if error.kind != "not_found" or self._options.withdrawn != "check":
                raise
            missing = result_of(_NOT_PROMOTED, promoted=False)
            return unchanged({**missing, "aggregated": []})
        builds: _Builds = []
        for build in (*referenced, own):
            promotion = SinglePromotion(
                self._task,
                self._client,
                self._options,
                build.key,
                later=self._later,
                resolve=self._resolve,
            )
            builds.append((promotion, promotion.plan(build.record)))
        waits = self._options.soak
        if waits is not None:
            keys = [promotion.key for promotion, planned in builds if planned.changed]
            soak.require_builds(self._client, keys, waits)
        *others, (_promotion, plan) = builds
        before, after = plan.before, plan.after
        named = {
            "/".join(promotion.key.as_dict().values()): other
            for promotion, other in others
            if other.changed
        }
        if named:
            before = {**before, "aggregated": {name: each.before for name, each in named.items()}}
            after = {**after, "aggregated": {name: each.after for name, each in named.items()}}
        actions = {other.action for _promotion, other in builds if other.changed}
        action: Action = "update" if len(actions) > 1 else next(iter(actions), "none")
        lacking = [path for _promotion, other in builds for path in other.result["missing_files"]]
        result = {**plan.result, "missing_files": lacking, "aggregated": _aggregated(builds)}
        if waits is not None and waits.check_only:
            return unchanged({**result, "aggregated": _aggregated(builds, {})})
        return Plan(before, after, action, result=result, data=builds)

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
        for promotion, planned in _changed(plan):
            promotion.preflight(planned)

    def predict(self, plan: Plan) -> None:
        for promotion, planned in _changed(plan):
            promotion.predict(planned)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        done: dict[BuildKey, Mapping[str, Any]] = {}
        for promotion, planned in _changed(plan):
            try:
                done[promotion.key] = promotion.apply(planned)
            except ToolchainError as error:
                error.result["aggregated"] = _aggregated(plan.data, done)
                if done:
                    error.result["changed"] = True
                raise
        messages = [message for values in done.values() for message in values["messages"]]
        return {**done.get(self._key, {}), "messages": messages}


def _changed(plan: Plan) -> _Builds:
    return [(promotion, planned) for promotion, planned in plan.data if planned.changed]


def _aggregated(
    builds: _Builds, done: Mapping[BuildKey, Any] | None = None
) -> list[dict[str, Any]]:
    """Return the entries of the return value `aggregated`.

    :param done: promoted builds after an error; `None` means that all changes count
    """
    return [
        {
            **promotion.key.as_dict(),
            "changed": planned.changed if done is None else promotion.key in done,
        }
        for promotion, planned in builds[:-1]
    ]
