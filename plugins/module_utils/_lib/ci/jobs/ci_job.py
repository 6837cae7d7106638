# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update, copy or delete a job or folder: `ci_job` [C8.4, ci-21]."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeAlias
from urllib.parse import unquote

from ...core.errors import Kind, ToolchainError, invalid, listed, shorten
from ...core.files import read_text
from ...core.http.messages import json_or_none
from ...core.http.writes import Verify
from ...core.json_text import as_text, json_objects
from ...core.module.authorship import Author, authors_of
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Plan, unchanged
from ...core.verification import not_saved, not_taken, without_effect
from .. import client
from ..client import FOLDER, SEES_JOB, ServerObjects, is_computed, part, server_of
from ..job_address import SPECIAL, Job, JobName, job_of
from ..service import SERVICE
from ..xml_reader import KEPT, UnreadableXml
from . import configuration, parts_of_others
from .configuration import ConfigurationDrift, without_kept
from .kept_secrets import marked, with_kept_ids, with_kept_secrets, with_secrets

#: Part of a plan. Returns return values of the task.
_Step: TypeAlias = Callable[[], Mapping[str, Any] | None]
_NOT_SAVED = "the job was copied and never saved, so it cannot be built"
_UNKNOWN_CONTENT = "(the server does not show whether it has some)"
#: `tree` query for the state of a job.
_STATE = "_class,fullName,name,buildable,disabled,color,builds[number]{0,1},jobs[name]{0,1}"
# Server fact [ci-5]: names must not contain these characters. The server would strip outer blanks.
_BAD_NAME = re.compile(rf"[{re.escape(SPECIAL)}\x00-\x1f\x7f-\x9f]|^\s|\s$|\.$|^\.{{1,2}}$")
#: Maximum depth of folders in which copied jobs are saved.
_DEEPEST = 20


@dataclass(frozen=True, kw_only=True)
class CiJobOptions:
    """The options of `ci_job`."""

    job: JobName
    config: Annotated[str | None, Option(private=True)] = None
    src: PathText | None = None
    copy_from: JobName | None = None
    folder: bool = False
    enabled: bool | None = None
    update_secrets: Annotated[Literal["never", "always"], Option(secret=False)] = "never"
    state: Literal["present", "absent"] = "present"
    force: bool = False

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", forbids=("config", "src", "copy_from", "enabled", "update_secrets")),
        Rule("force", requires="state=absent"),
        Rule("update_secrets=always", requires=("config", "src")),
        Rule("folder", forbids="enabled", because="the server cannot disable a plain folder"),
    )
    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [("config", "src", "copy_from")]}


class CiJobOperation:
    """Creates, changes or deletes a job."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            **dict.fromkeys(("read", "compare"), reads(*SEES_JOB, client.EXTENDED_READ)),
            **dict.fromkeys(
                ("create", "folder"),
                writes(*SEES_JOB, unforeseen=(client.CREATE, client.EXTENDED_READ)),
            ),
            "update": writes(
                *(client.READ_SERVER, client.EXTENDED_READ, client.CONFIGURE),
                unforeseen=(client.READ_JOB,),
            ),
            "enable and disable": writes(*SEES_JOB, unforeseen=(client.CONFIGURE,)),
            "copy": writes(
                *SEES_JOB, client.EXTENDED_READ, unforeseen=(client.CREATE, client.CONFIGURE)
            ),
            "delete": writes(*SEES_JOB, unforeseen=(client.DELETE,)),
        },
        kind="job",
        name="{job}",
    )

    def __init__(self, task: Task, options: CiJobOptions) -> None:
        self._task, self._options = task, options
        self._job = job = job_of(options.job, task.connection.url)
        self._url = f"{task.connection.url}/{job.path}/"
        verb = "deleting" if options.state == "absent" else "managing"
        kind = "folder" if options.folder else "job"
        self._purpose = f"{verb} the {kind} '{job.name}'"
        self._objects = ServerObjects(server_of(task))
        self._name = unquote(job.path.rpartition("/")[2])
        #: Path of the parent folder; "" at the top level.
        self._parent = job.path.rpartition("/job/")[0]
        source, url = options.copy_from, task.connection.url
        self._source = None if source is None else job_of(source, url, "copy_from")
        self._text = self._given_configuration()
        creates = options.folder or source is not None or self._text is not None
        if creates and options.state == "present" and "://" not in str(options.job):
            self._check_name()

    def _given_configuration(self) -> str | None:
        """Return the configuration to save, with `enabled` applied; `None` without `config` and
        `src`.
        """
        options = self._options
        name, text = "config", options.config
        if options.src is not None:
            name, text = "src", read_text(options.src, "the configuration in src")
        if text is None:
            return None
        try:
            secrets, stars = configuration.secrets(text), configuration.masked_secrets(text)
            kind = configuration.kind_of(text)
        except UnreadableXml as error:
            raise invalid(f"{name} is not the configuration of a job: {error}") from None
        self._hide(secrets)
        if stars:
            raise invalid(
                f"{name} has asterisks instead of a secret in {', '.join(sorted(set(stars)))}: the"
                " server would save the asterisks as the secret"
            )
        if options.folder and kind != FOLDER:
            raise invalid(f"{name} describes a {kind}, but folder=true requires a {FOLDER}")
        if kind == FOLDER and options.enabled is not None:
            raise invalid("enabled cannot be set for a plain folder: the server cannot disable it")
        return configuration.with_enabled(text, options.enabled)

    def plan(self) -> Plan:
        return self._planned().with_result(job={"name": self._job.name, "url": self._url})

    def authors(self, plan: Plan) -> list[Author]:
        """Return who changed the job last."""
        return authors_of(partial(self._objects.author, self._purpose), [self._job.path])

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        steps: Sequence[_Step] = plan.data
        returned: dict[str, Any] = {}
        for number, step in enumerate(steps):
            try:
                returned.update(step() or {})
            except ToolchainError as error:
                if number:  # earlier steps have been done
                    error.result.setdefault("job", plan.result["job"])
                raise
        return returned

    def predict(self, plan: Plan) -> None:
        """Record the job that would be created or deleted, for later tasks in check mode."""
        predictions, stored = self._task.predictions, self._job.stored_name
        parent, _slash, name = stored.casefold().rpartition("/")
        if plan.action == "delete":
            predictions.remove("job", self._job.name)
            predictions.remove("job spelling", stored.casefold())
            predictions.add("deleted job", parent, name)
        elif plan.action == "create":
            is_folder, text = self._options.folder, self._text
            if text is not None:
                is_folder = configuration.kind_of(text) == FOLDER
            state: dict[str, Any] = {"buildable": self._options.enabled is not False}
            predictions.add(
                "job", self._job.name, value=state | ({"jobs": []} if is_folder else {})
            )
            predictions.add("job spelling", stored.casefold(), value=stored)
            predictions.remove("deleted job", parent, name)

    def _planned(self) -> Plan:
        if self._options.state == "absent":
            return self._deletion()
        if self._text is not None:
            live = self._configuration()
            if live is None:
                return self._creation(self._text)
            self._require_spelling(self._job)
            return self._update(live, self._text)
        shown = self._state()
        if shown is not None:
            return self._switching(shown)
        if self._source is not None:
            return self._copy(self._source)
        if self._options.folder:
            return self._creation(f"<{FOLDER}/>")
        predicted = self._task.predictions.get("job", self._job.name)
        if predicted is not None:
            return self._switching(predicted)
        raise self._error(
            "not_found",
            "the job does not exist, or the account cannot see it. To create it, set config, src or"
            " copy_from",
            404,
        )

    def _creation(self, text: str) -> Plan:
        self._check_name()
        self._require_folder()
        text, left_out = parts_of_others.for_creation(text)
        if left_out:
            self._warn(
                f"the new folder does not get {listed(left_out)}, because the configuration lacks"
                " the secret: use ci_credential"
            )
        self._reject_marks(marked(text), "the job does not exist")
        self._warn_of_pinned(text)
        steps = [lambda: self._create(text), lambda: self._verify(text)]
        after = configuration.normalized(text)
        return Plan("", after, "create", result={"differences": []}, data=steps)

    def _create(self, text: str) -> Mapping[str, Any]:
        path = f"{self._parent}/createItem".lstrip("/")
        try:
            self._send(path, text, self._exists, query={"name": self._name})
        except ToolchainError as error:
            is_there = error.status == 400 and "already exists" in (error.detail or "")
            if is_there:
                error.kind = "conflict"
            found = self._live_drift(text) if is_there else None
            if found is None or found.found:
                raise
            return {"changed": False}  # a third party has created the same job since the plan
        return {}

    def _copy(self, source: Job) -> Plan:
        self._check_name()
        self._require_folder()
        text = self._configuration(source)
        if text is None and self._task.predictions.get("job", source.name) is not None:
            return Plan("", f"copy of '{source.name}'", "create", result={"differences": []})
        if text is None:
            missing = f"the job '{source.name}' does not exist, or the account cannot see it"
            raise self._error("not_found", f"copy_from: {missing}", 404)
        self._require_spelling(source)
        self._hide(configuration.secrets(text))
        self._refuse_stars(text, f"the job '{source.name}'")
        self._check_kind(configuration.kind_of(text) == FOLDER)
        enabled = self._options.enabled
        # the copy cannot be built until it has been saved
        query = {"name": self._name, "mode": "copy", "from": f"/{source.stored_name}"}
        path = f"{self._parent}/createItem".lstrip("/")
        steps: list[_Step] = [
            lambda: self._write(path, self._exists, query=query, form={}),
            lambda: self._release(enabled),
        ]
        after = configuration.normalized(configuration.with_enabled(text, enabled))
        return Plan("", after, "create", data=steps).with_result(differences=[])

    def _update(self, live: str, wanted: str) -> Plan:
        self._hide(configuration.secrets(live))
        live_kind, wanted_kind = configuration.kind_of(live), configuration.kind_of(wanted)
        if live_kind != wanted_kind:
            raise self._error(
                "conflict",
                f"the job is a {live_kind}, but the configuration describes a {wanted_kind}. To"
                " change its kind, delete the job first",
            )
        lacking = parts_of_others.not_sent(live, wanted)
        if lacking:
            self._warn(
                f"the server does not have {listed(lacking)}. Use ci_credential and ci_view,"
                " because ci_job does not change them in a folder"
            )
        wanted = parts_of_others.with_server_parts(live, wanted)
        wanted, missing = with_secrets(live, with_kept_ids(live, wanted))
        self._reject_marks(missing, "the job has no matching secret on the server")
        always = self._options.update_secrets == "always"
        compared = configuration.drift(live, wanted, resent=always)
        found = without_kept(self._task, "job", self._job.name, compared)
        self._hide(found.secrets)
        if found.uncompared:
            self._warn(
                "secrets are not compared, because the server encrypts them again with each save:"
                f" {listed(found.uncompared)}"
            )
        if not found.found:
            same = unchanged({"differences": []}, state=found.before)
            return same.with_unknown(*found.uncompared)
        self._refuse_stars(live, "this job")
        if not configuration.is_pinned(live):
            self._warn_of_pinned(wanted)
        sent = wanted if always else with_kept_secrets(live, wanted)
        # new secrets do not show, so an equal configuration does not mean that nothing was saved
        before = None if always and configuration.drift(live, wanted).uncompared else compared
        steps = [lambda: self._save(sent, live), lambda: self._verify(sent, before)]
        plan = Plan(found.before, found.after, "update", data=steps)
        return plan.with_result(differences=found.paths()).with_unknown(*found.uncompared)

    def _save(self, wanted: str, before: str) -> None:
        """Save a configuration. Server fact [ci-15]: each save encrypts the secrets again, so a
        changed configuration shows that the save took place.
        """

        def saved() -> bool:
            now = self._configuration()
            return now not in (None, before) and not configuration.drift(now or "", wanted).found

        live = self._configuration() if parts_of_others.is_folder(wanted) else None
        if live is not None:  # another task may have added a credential or view since the plan
            wanted = parts_of_others.with_server_parts(live, wanted)
        self._send(f"{self._job.path}/config.xml", wanted, saved)

    def _live_drift(self, wanted: str) -> ConfigurationDrift | None:
        live = self._configuration()
        if live is None:
            return None
        found = configuration.drift(live, wanted)
        self._hide(found.secrets)  # a new job shows only now what its classes encrypt
        return found

    def _verify(self, wanted: str, before: ConfigurationDrift | None = None) -> Mapping[str, Any]:
        """Compare the saved configuration with `wanted`. Server fact [ci-21]: the server drops
        unknown elements and reports success.

        :param before: comparison before the save
        """
        try:
            found = self._live_drift(wanted)
        except ToolchainError as error:
            raise error.with_hint("the configuration was saved, but cannot be read back") from None
        if found is None:
            raise without_effect(self._purpose, "the job does not exist", changed=False)
        name, remembered = self._job.name, self._task.server_values
        left = found.without_known(remembered.known("job", name))
        paths, dropped = left.paths(), left.paths("missing")
        if paths and before is not None and found.before == before.before:
            remembered.remember("job", name, found.kept(before))
            self._task.warn(not_taken(self._purpose, paths))
            return {"changed": False}
        if dropped:
            lost = not_saved(self._purpose, dropped, changed=True, differences=dropped)
            raise lost.with_hint("check that the plugin for these elements is installed")
        remembered.remember("job", name, found.kept(before))
        if paths and self._text is not None:
            self._warn(
                f"the server changed {listed(paths)} while saving. Use the server's version in the"
                " configuration to avoid a difference in every run"
            )
        return {}

    def _switching(self, shown: Mapping[str, Any]) -> Plan:
        """Plan to enable or disable an existing job, or to save a copied job for the first time."""
        self._check_kind("jobs" in shown, is_computed(shown))
        disabled, enabled = _is_disabled(shown), self._options.enabled
        before = {"job": self._job.name, "enabled": not disabled}
        differences: list[str] = []
        steps: list[_Step] = []
        not_buildable = shown.get("buildable") is False and not disabled and "jobs" not in shown
        if not_buildable and self._source is not None:
            differences.append(_NOT_SAVED)
            steps = [lambda: self._release(enabled)]
        if enabled is not None and enabled is disabled:
            differences.append("disabled")
            steps = steps or [lambda: self._switch(enabled)]
        if not differences:
            return unchanged({"differences": []}, state=before)
        after = {**before, "enabled": not disabled if enabled is None else enabled}
        if not_buildable:
            before, after = {**before, "saved": False}, {**after, "saved": True}
        return Plan(before, after, "update", data=steps).with_result(differences=differences)

    def _switch(self, enabled: bool) -> None:
        """Enable or disable the job. Raises `rejected` if its kind cannot be disabled."""
        action = "enable" if enabled else "disable"

        def done() -> bool:
            return _is_disabled(self._state() or {}) is not enabled

        self._write(f"{self._job.path}/{action}", done, form={}, repeatable=True)
        if not done():
            raise self._error(
                "rejected",
                f"the server did not {action} the job; it cannot disable jobs of this kind",
            )

    def _deletion(self) -> Plan:
        """Plan to delete the job with its builds, or the folder with its content."""
        shown = self._state()
        if shown is None:
            self._check_name()  # reports a pattern or a typo instead of "no change"
            return unchanged({"differences": []})
        if self._options.folder:
            self._check_kind("jobs" in shown)
        content = "" if self._options.force else self._content(shown)
        if content:
            raise self._error(
                "invalid",
                f"it contains {content}, which would be deleted too. To delete them, set"
                " force=true",
            )
        try:
            live = self._configuration()
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            live = None
        before = f"{self._job.name}\n"
        if live is not None:
            self._hide(configuration.secrets(live))
            before = configuration.normalized(live)
        path = self._job.path
        steps = [lambda: self._objects.delete(self._purpose, path, lambda: not self._exists())]
        return Plan(before, "", "delete", result={"differences": []}, data=steps)

    def _content(self, shown: Mapping[str, Any]) -> str:
        """Return `builds` or `jobs` if the job contains some, or may contain some, otherwise "".

        A job shows `builds`, a folder `jobs`; without these lists, the content is not known. Jobs
        that earlier tasks in check mode would delete do not count.
        """
        if "jobs" not in shown or "builds" in shown:
            builds = shown.get("builds")
            if not isinstance(builds, list):
                return f"builds {_UNKNOWN_CONTENT}"
            if builds:
                return "builds"
        jobs = shown.get("jobs", [])
        gone = self._task.predictions.all("deleted job", self._job.stored_name.casefold())
        if jobs and gone:
            jobs = part(self._shown(self._job.path, "jobs[name]")).get("jobs")
        if not isinstance(jobs, list):
            return f"jobs {_UNKNOWN_CONTENT}"
        names = [as_text(part(job).get("name")).casefold() for job in jobs]
        return "jobs" if any(name not in gone for name in names) else ""

    def _release(self, enabled: bool | None) -> None:
        """Save a copied job, or all jobs of a copied folder, to make them buildable.

        Server fact [ci-21]: on very old servers the description must be saved too, here unchanged.

        :param enabled: whether to enable the job; `None` keeps the state of the source job
        """
        not_buildable = []
        for job in self._below(self._job, 0):
            text = self._configuration(job)
            if text is None:
                continue
            verify = partial(self._is_buildable, job)
            text = configuration.with_enabled(text, enabled if job == self._job else None)
            try:
                self._send(f"{job.path}/config.xml", text, verify, repeatable=True)
                if verify() is False:
                    shown = part(self._shown(job.path, "description"))
                    form = {"description": str(shown.get("description") or "")}
                    path = f"{job.path}/submitDescription"
                    self._write(path, verify, form=form, repeatable=True)
            except ToolchainError as error:
                hint = f"'{job.name}' cannot be built until it has been saved once"
                raise error.with_hint(hint) from None
            if verify() is False:
                not_buildable.append(job.name)
        if not_buildable:
            self._warn(
                "save these jobs in their web forms, because the server still does not allow builds"
                f" of them: {listed(not_buildable)}"
            )

    def _is_buildable(self, job: Job) -> bool | None:
        shown = part(self._shown(job.path, _STATE))
        return None if _is_disabled(shown) else shown.get("buildable") is True

    def _below(self, job: Job, depth: int) -> Iterator[Job]:
        shown = part(self._shown(job.path, "jobs[name]"))
        if "jobs" not in shown:
            yield job
        elif depth < _DEEPEST:
            for obj in json_objects(shown["jobs"]):
                if obj.get("name"):
                    yield from self._below(job.below(str(obj["name"])), depth + 1)

    def _check_name(self) -> None:
        """Raise `invalid` if the server would reject or change the name."""
        if _BAD_NAME.search(self._name):
            raise invalid(
                f"job: '{shorten(self._job.name)}' cannot be the name of a job: it contains one of"
                f" {SPECIAL} or a control character, has a leading or trailing blank, or"
                " ends with a dot"
            )

    def _require_folder(self) -> None:
        """Check the parent folder.

        Raises `not_found` if it does not exist. Raises `conflict` if it is a job, if the server
        spells it differently, or if an earlier task in check mode would create the job in a folder
        with another spelling.
        """
        predictions = self._task.predictions
        spelling = predictions.get("job spelling", self._job.stored_name.casefold())
        self._job.require_spelling({"fullName": spelling or ""}, self._purpose)
        shown = self._shown(self._parent, "_class,fullName,jobs[name]{0,1}")
        parent = self._job.name.rpartition("/")[0]
        predicted = predictions.get("job", parent)
        if shown is None and predicted is not None and "jobs" in predicted:
            return
        if shown is None and parent:
            raise self._error(
                "not_found",
                f"the folder '{parent}' does not exist, or the account cannot see it. To create the"
                " folder, use ci_job with folder=true",
                404,
            )
        if shown is None:
            reason = "the server does not list its top-level jobs (api/json), so it cannot create"
            raise self._error("not_found", f"{reason} jobs", 404)
        if not self._parent:
            return
        Job(self._parent, parent).require_spelling(shown, f"{self._purpose}: '{parent}'")
        if "jobs" not in shown:
            raise self._error("conflict", f"'{parent}' is a job, not a folder")

    def _check_kind(self, is_folder: bool, is_computed: bool = False) -> None:
        """Raise `conflict` for a job instead of a folder, and `invalid` if `enabled` is set for a
        plain folder.
        """
        if self._options.folder and not is_folder:
            raise self._error("conflict", "it is a job, not a folder")
        if is_folder and not is_computed and self._options.enabled is not None:
            raise self._error("invalid", "it is a plain folder, which the server cannot disable")

    def _reject_marks(self, names: list[str], reason: str) -> None:
        if names:
            raise self._error(
                "invalid",
                f"the configuration has '{KEPT}' in {listed(sorted(set(names)))}, but {reason}."
                " Replace it by the secret, encrypted with Ansible Vault, or enter the secret on"
                " the server",
            )

    def _refuse_stars(self, live: str, name: str) -> None:
        """Raise `permission` if the server has masked the secrets. Server facts [ci-14, ci-21]: it
        masks them for accounts that may not change the configuration or copy the job.
        """
        if configuration.masked_secrets(live):
            raise self._error(
                "permission",
                f"the account lacks the permission Job/Configure for {name}, so the server masks"
                " the secrets",
            )

    def _warn_of_pinned(self, text: str) -> None:
        if configuration.is_pinned(text):
            self._warn(
                "the configuration has no canRoam, so the server runs the job on the built-in node"
                " only. To use all nodes, add <canRoam>true</canRoam>; to keep it there, add"
                " <canRoam>false</canRoam>"
            )

    def _warn(self, text: str) -> None:
        self._task.warn(f"{self._purpose}: {text}")

    def _error(self, kind: Kind, reason: str, status: int | None = None) -> ToolchainError:
        return ToolchainError(kind, f"{self._purpose}: {reason}", status=status)

    def _hide(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            self._task.hide(secret)

    def _configuration(self, job: Job | None = None) -> str | None:
        """Return the XML of the job of the task or of another job; `None` if the job does not exist
        or is not visible.
        """
        if job is None and self._is_free:
            return None
        return self._objects.text(self._purpose, (job or self._job).path)

    @property
    def _is_free(self) -> bool:
        """Return whether an earlier task in check mode would delete the job that this one needs."""
        needed = self._options.state != "absent"
        return needed and self._task.predictions.is_free("job", self._job.name)

    def _require_spelling(self, job: Job) -> None:
        """Raise `conflict` if the server spells the name of a job with other letter case."""
        response = self._objects.read(self._purpose, f"{job.path}/api/json", "fullName")
        shown = None if response is None else json_or_none(response.body)
        job.require_spelling(part(shown), self._purpose)

    def _state(self) -> Mapping[str, Any] | None:
        """Return the JSON object of the job, or `None` if the job does not exist.

        Raises `conflict` if the server spells its name with other letter case.

        Server fact [ci-29]: `buildable` of a computed folder is false if the folder or a parent
        folder is disabled. Only its configuration shows which.
        """
        shown = None if self._is_free else self._shown(self._job.path, _STATE)
        if shown is None:
            return None
        self._job.require_spelling(shown, self._purpose)
        if not is_computed(shown) or shown.get("buildable") is not False:
            return shown
        try:
            text = self._configuration()
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            return {**shown, "disabled": True}
        return {**shown, "disabled": text is None or not configuration.is_enabled(text)}

    def _exists(self) -> bool:
        return self._state() is not None

    def _shown(self, path: str, tree: str) -> Mapping[str, Any] | None:
        return self._objects.shown(self._purpose, path, tree)

    def _send(self, path: str, text: str, verify: Verify, **parts: Any) -> None:
        with client.naming_class(configuration.kind_of(text)):
            expect = client.REDIRECTED
            self._objects.send(self._purpose, path, text, verify, expect=expect, **parts)

    def _write(self, path: str, verify: Verify, **parts: Any) -> None:
        self._objects.write(self._purpose, path, verify, **parts)


def _is_disabled(shown: Mapping[str, Any]) -> bool:
    """Return whether a job is disabled. Server fact [ci-21]: some kinds of jobs show this only by
    their color.
    """
    return shown.get("disabled") is True or str(shown.get("color")).startswith("disabled")
