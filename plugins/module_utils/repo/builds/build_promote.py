# SPDX-License-Identifier: GPL-3.0-or-later
"""Promoting a build: giving it a status, and copying or moving its files [C2.6]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core import address
from ...core.errors import ToolchainError, shorten
from ...core.http.messages import Response
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan, without_none
from .. import aql
from ..client import RepoClient, refuse_page, repository_key
from ..error_text import errors_in, messages_of, text_of
from ..properties import texts_of
from ..repositories import deployment_target
from . import records
from .records import Promotion
from .stages import LaterPromotionOptions, stages_of


@dataclass(frozen=True)
class BuildPromoteOptions:
    """The options of C(build_promote)."""

    constraints: ClassVar[dict[str, Any]] = {"required_one_of": [("status", "target_repo")]}

    build_name: str
    build_number: str
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
    followed_by: list[LaterPromotionOptions] | None = None


class BuildPromoteOperation:
    """Promotes a build, unless its newest promotion has the wanted status and target.

    Server fact [repo-15]: every promotion adds an entry to the record, whether or not it is the
    same as the one before.
    """

    descriptor: ClassVar = Descriptor(
        "repo",
        {"promote": writes("read", "deploy")},
        kind="build",
        name="{build_name}/{build_number}",
    )

    def __init__(self, task: Task, options: BuildPromoteOptions) -> None:
        self._task, self._options = task, options
        self._name, self._number = options.build_name, options.build_number
        self._label = f"the build '{self._name}' #{self._number}"
        for name, key in (
            ("source_repo", options.source_repo),
            ("target_repo", options.target_repo),
        ):
            if key is not None:
                repository_key(name, key)
        self._properties = {
            str(name): texts_of(value)
            for name, value in without_none(options.properties or {}).items()
        }
        self._later = stages_of(
            options.followed_by or (),
            (self._name, self._number),
            Promotion(options.status, options.target_repo),
        )
        self._client = RepoClient(task)
        self._record: Mapping[str, Any] = {}
        self._target = options.target_repo
        self._hidden: ToolchainError | None = None

    def plan(self) -> Plan:
        self._read()
        newest = self._newest()
        if newest is not None and not self._options.force and self._is_past(newest):
            return _nothing_to_do(newest)
        if self._target is not None and not (newest and newest.repository == self._target):
            self._target = self._behind(self._target)
        if not self._options.force and self._is_done():
            return _nothing_to_do(newest or Promotion(None, self._target))
        if self._options.gate:
            self._validate(self._rehearse())
        before = {} if newest is None else self._shown(newest)
        wanted = Promotion(self._options.status, self._target)
        result = {"messages": [], "promotion": wanted.as_dict(), "promoted": False}
        after = {**before, **without_none(self._shown(wanted))}
        return Plan(before, after, "update" if before else "create", result=result)

    def _is_past(self, newest: Promotion) -> bool:
        """Whether the build has come to a later promotion of the same release already."""
        return any(
            later.status == newest.status
            and (
                later.repository in (None, newest.repository)
                or self._behind(later.repository) == newest.repository
            )
            for later in self._later
        )

    def _behind(self, target: str) -> str:
        """The repository that the target stands for. One that is not shown may be there all the
        same: the server tells.
        """
        try:
            return deployment_target(self._client, target)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            self._task.warn(f"what the repository '{target}' is cannot be read: {error}")
            self._hidden = error
            return target

    def _shown(self, promotion: Promotion) -> dict[str, Any]:
        return {"status": promotion.status, "repository": promotion.repository}

    def _read(self) -> None:
        self._record = records.read_record(self._client, self._name, self._number)

    def _newest(self) -> Promotion | None:
        found = records.promotions(self._record)
        return found[-1] if found else None

    def _is_done(self) -> bool:
        """Whether the record, or for a promotion without a status the place of the files, shows
        what is wanted.
        """
        newest, status = self._newest(), self._options.status
        if newest is not None and status in (None, newest.status):
            # server fact [repo-15]: a virtual target is recorded as its deployment repository
            if self._target is None:
                return True
            if newest.repository in (self._target, self._options.target_repo):
                return True
        return status is None and self._is_relocated()

    def _is_relocated(self) -> bool:
        options = self._options
        if self._target is None or not options.artifacts or options.dependencies:
            return False
        found = records.relocated(
            self._client,
            self._name,
            self._number,
            self._record,
            self._target,
            copied=options.copy,
        )
        return found is True

    def _body(self) -> dict[str, Any]:
        """The request, without what is not given [W2.1]."""
        options = self._options
        given = {
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
        if given["failFast"] and not self._client.dialect.fail_fast_told:
            del given["failFast"]
        body = without_none(given)
        return {**body, "properties": self._properties} if self._properties else body

    @property
    def _path(self) -> str:
        return f"api/build/promote/{address.path(self._name, self._number)}"

    def preflight(self, plan: Plan) -> None:
        """Ask a server that surely knows C(dryRun); of another one, reading has to do."""
        if self._options.gate:
            return
        if self._client.rehearses_promotions():
            self._validate(self._rehearse())
        elif self._hidden is not None:
            raise self._hidden

    def _rehearse(self) -> Response:
        """Have the server try it without doing it (C(dryRun), written interface [W2.1]): a read.

        Raises C(failed) where a server has not listened to that, and has promoted.
        """
        known = len(records.promotions(self._record))
        response = self._client.transport.read(
            f"rehearsing the promotion of {self._label}",
            self._path,
            method="POST",
            json={**self._body(), "dryRun": True},
            expect=(200, 201, 202, 204, 400),
            validate=refuse_page,
        )
        if not self._client.rehearses_promotions():
            self._read()
            if len(records.promotions(self._record)) > known:
                error = response.error("failed", "this server does not rehearse: it has promoted")
                error.result["changed"] = True
                raise error
        return response

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        known = len(records.promotions(self._record))
        response = self._client.transport.write(
            f"promoting {self._label}",
            "POST",
            self._path,
            json=self._body(),
            expect=(200, 201, 202, 204, 400),
            validate=refuse_page,
            verify=lambda: self._went_through(known),
        )
        messages = self._validate(response)
        self._read()
        self._check(response, messages)
        return {"messages": messages, "promotion": self._recorded(plan)}

    def _went_through(self, known: int) -> bool | None:
        """Whether a promotion is in the record, or for one without a status, the files in their
        place; C(None): cannot tell, as where another one is in the record.
        """
        self._read()
        added = len(records.promotions(self._record)) > known
        if added or self._options.status is None:
            done = self._is_done()
            return None if not done and (added or self._has_begun()) else done
        told = known or self._client.dialect.record_shows_promotions
        return False if told and not self._has_begun() else None

    def _has_begun(self) -> bool:
        """Whether files may have gone to the target: the status is the last that a promotion does.

        Server fact [repo-15, repo-28]: items go one by one.
        """
        options = self._options
        if self._target is None or not (options.artifacts or options.dependencies):
            return False
        criteria = {"@build.name": self._name, "@build.number": self._number, "repo": self._target}
        if options.dependencies or not self._client.dialect.query_by_property:
            return True
        what = f"looking for the files of {self._label}"
        return aql.ask_if_told(self._client, what, criteria, ["path"]) != []

    def _validate(self, response: Response) -> list[dict[str, str]]:
        """The server's messages. Raises C(rejected) for an ERROR among them; a WARNING goes to
        the user.

        Server fact [repo-15]: 200 although files stayed where they were, or 400 with the same
        messages.
        """
        messages = _messages(response)
        wrong = [one["message"] for one in messages if one["level"] == "ERROR"]
        if response.status == 400 and not messages:
            raise self._client.transport.failure(response)
        if wrong or response.status == 400:
            said = shorten(
                errors_in(response.text) or "; ".join(one["message"] for one in messages)
            )
            error = response.error("rejected", f"the server reports: {said}", said)
            error.result["messages"] = messages
            raise error
        for one in messages:
            if one["level"].startswith("WARN"):
                self._task.warn(f"{response.request.what}: {one['message']}")
        return messages

    def _check(self, response: Response, messages: list[dict[str, str]]) -> None:
        """See that a record that shows promotions shows this one."""
        newest = self._newest()
        if self._options.status is None or self._is_done():
            return
        if newest is not None:
            shown = f"has the status '{newest.status}' and the repository '{newest.repository}'"
        elif self._client.dialect.record_shows_promotions:
            shown = "is missing"
        else:
            return
        error = response.error(
            "failed",
            f"the server reported success, but the newest promotion in the record {shown}",
        )
        error.result["messages"] = messages
        raise error

    def _recorded(self, plan: Plan) -> dict[str, Any]:
        """The promotion as the record has it, else as it was asked for."""
        newest, planned = self._newest(), dict(plan.result["promotion"])
        if newest is None or self._options.status is None:
            return planned
        return newest.as_dict()


def _nothing_to_do(newest: Promotion) -> Plan:
    result = {"messages": [], "promotion": newest.as_dict(), "promoted": True}
    return Plan({}, {}, result=result)


def _messages(response: Response) -> list[dict[str, str]]:
    """Messages of an answer, whose body the written interface does not show: JSON, else its
    text. Raises C(protocol) for an object that ends too early: it may have held an ERROR.
    """
    found = messages_of(response.text)
    text = text_of(response.text)
    if response.status < 300 and text.startswith("{"):
        response.json()
    if response.status < 300 and not found and errors_in(response.text):
        return [{"level": "ERROR", "message": errors_in(response.text)}]
    if found or response.status == 400 or not text or text.startswith(("{", "[")):
        return found
    return [{"level": "INFO", "message": shorten(text)}]
