# SPDX-License-Identifier: GPL-3.0-or-later
"""Create, update, copy or delete a job or folder: `ci_job` [C8.4]."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError, invalid, listed
from ...core.files import read_text
from ...core.module.authorship import Author, authors_of
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Plan, unchanged
from ...core.verification import not_saved, not_taken, without_effect
from ..client import (
    CONFIGURE,
    CREATE,
    DELETE,
    EXTENDED_READ,
    READ_JOB,
    READ_SERVER,
    SEES_JOB,
    server_of,
)
from ..job_address import Job, JobName, job_of
from ..service import SERVICE
from ..xml_reader import KEPT, UnreadableXml
from . import configuration, job_store, parts_of_others
from .configuration import ConfigurationDrift
from .job_store import JobStore, is_disabled, is_there_already
from .kept_secrets import marked, with_kept_ids, with_kept_secrets, with_secrets
from .kept_values import without_kept

#: Part of a plan. Returns return values of the task.
_Step: TypeAlias = Callable[[], Mapping[str, Any] | None]
_NOT_SAVED = "the job was copied and never saved, so it cannot be built"


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
            "read": reads(*SEES_JOB, EXTENDED_READ),
            "compare": reads(*SEES_JOB, EXTENDED_READ),
            "create": writes(*SEES_JOB, unforeseen=(CREATE, EXTENDED_READ)),
            "folder": writes(*SEES_JOB, unforeseen=(CREATE, EXTENDED_READ)),
            "update": writes(READ_SERVER, EXTENDED_READ, CONFIGURE, unforeseen=(READ_JOB,)),
            "enable and disable": writes(*SEES_JOB, unforeseen=(CONFIGURE,)),
            "copy": writes(*SEES_JOB, EXTENDED_READ, unforeseen=(CREATE, CONFIGURE)),
            "delete": writes(*SEES_JOB, unforeseen=(DELETE,)),
        },
        kind="job",
        name="{job}",
    )

    def __init__(self, task: Task, options: CiJobOptions) -> None:
        self._task, self._options = task, options
        job = job_of(options.job, task.connection.url)
        verb = "deleting" if options.state == "absent" else "managing"
        kind = "folder" if options.folder else "job"
        purpose = f"{verb} the {kind} '{job.name}'"
        self._store = JobStore(server_of(task), job, purpose, task.predictions)
        source = options.copy_from
        self._source = None if source is None else job_of(source, task.connection.url)
        self._text = _given_configuration(task, options)
        creates = options.folder or source is not None or self._text is not None
        if creates and options.state == "present" and "://" not in str(options.job):
            self._store.check_name()

    def plan(self) -> Plan:
        plan = self._planned()
        return plan.with_result(job={"name": self._store.job.name, "url": self._store.url})

    def authors(self, plan: Plan) -> list[Author]:
        """Return who changed the job last."""
        return authors_of(JobStore.author, [self._store])

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
        if plan.action == "delete":
            self._store.predict_deletion()
        elif plan.action == "create":
            self._store.predict(folder=self._creates_folder, enabled=self._options.enabled)

    def _planned(self) -> Plan:
        if self._options.state == "absent":
            return self._deletion()
        if self._text is not None:
            live = self._store.configuration()
            if live is None:
                return self._creation(self._text)
            self._store.require_spelling()
            return self._update(live, self._text)
        shown = self._store.state()
        if shown is not None:
            return self._switching(shown)
        if self._source is not None:
            return self._copy(self._source)
        if self._options.folder:
            return self._creation(f"<{job_store.FOLDER}/>")
        predicted = self._store.predicted_state()
        if predicted is not None:
            return self._switching(predicted)
        raise ToolchainError(
            "not_found",
            f"{self._store.purpose}: the job does not exist, or the account cannot see it. To"
            " create it, set config, src or copy_from",
            status=404,
        )

    def _creation(self, text: str) -> Plan:
        self._store.check_name()
        self._store.require_folder()
        text, left_out = parts_of_others.for_creation(text)
        if left_out:
            self._task.warn(
                f"{self._store.purpose}: the new folder does not get {listed(left_out)}, because"
                " the configuration lacks the secret: use ci_credential"
            )
        self._reject_marks(marked(text), "the job does not exist")
        self._warn_of_pinned(text)
        steps = [lambda: self._create(text), lambda: self._verify(text)]
        after = configuration.normalized(text)
        return Plan("", after, "create", result={"differences": []}, data=steps)

    def _warn_of_pinned(self, text: str) -> None:
        if configuration.is_pinned(text):
            self._task.warn(
                f"{self._store.purpose}: the configuration has no canRoam, so the server runs the"
                " job on the built-in node only. To use all nodes, add <canRoam>true</canRoam>; to"
                " keep it there, add <canRoam>false</canRoam>"
            )

    @property
    def _creates_folder(self) -> bool:
        text = self._text
        return (
            self._options.folder
            if text is None
            else configuration.kind_of(text) == job_store.FOLDER
        )

    def _create(self, text: str) -> Mapping[str, Any]:
        try:
            self._store.create(text)
        except ToolchainError as error:
            found = self._live_drift(text) if is_there_already(error) else None
            if found is None or found.found:
                raise
            return {"changed": False}  # a third party has created the same job since the plan
        return {}

    def _copy(self, source: Job) -> Plan:
        self._store.check_name()
        self._store.require_folder()
        text = self._store.configuration(source)
        if text is None and self._store.predicted_state(source) is not None:
            return Plan("", f"copy of '{source.name}'", "create", result={"differences": []})
        if text is None:
            missing = (
                f"copy_from: the job '{source.name}' does not exist, or the account cannot see it"
            )
            raise ToolchainError("not_found", f"{self._store.purpose}: {missing}", status=404)
        self._store.require_spelling(source)
        self._hide(configuration.secrets(text))
        self._refuse_stars(text, f"the job '{source.name}'")
        self._check_kind(configuration.kind_of(text) == job_store.FOLDER)
        enabled = self._options.enabled
        steps = [lambda: self._store.copy(source), lambda: self._release(enabled)]
        after = configuration.normalized(configuration.with_enabled(text, enabled))
        return Plan("", after, "create", data=steps).with_result(differences=[])

    def _release(self, enabled: bool | None) -> None:
        not_buildable = self._store.release(enabled)
        if not_buildable:
            self._task.warn(
                f"{self._store.purpose}: save these jobs in their web forms, because the server"
                f" still does not allow builds of them: {listed(not_buildable)}"
            )

    def _update(self, live: str, wanted: str) -> Plan:
        self._hide(configuration.secrets(live))
        self._check_same_kind(live, wanted)
        lacking = parts_of_others.not_sent(live, wanted)
        if lacking:
            self._task.warn(
                f"{self._store.purpose}: the server does not have {listed(lacking)}. Use"
                " ci_credential and ci_view, because ci_job does not change them in a folder"
            )
        wanted = parts_of_others.with_server_parts(live, wanted)
        wanted, missing = with_secrets(live, with_kept_ids(live, wanted))
        self._reject_marks(missing, "the job has no matching secret on the server")
        always = self._options.update_secrets == "always"
        compared = configuration.drift(live, wanted, resent=always)
        found = without_kept(self._task, "job", self._store.job.name, compared)
        self._hide(found.secrets)
        if found.uncompared:
            self._task.warn(
                f"{self._store.purpose}: secrets are not compared, because the server encrypts"
                f" them again with each save: {listed(found.uncompared)}"
            )
        if not found.found:
            same = unchanged({"differences": []}, state=found.before)
            return same.with_unknown(*found.uncompared)
        self._refuse_stars(live, "this job")
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
            now = self._store.configuration()
            return now not in (None, before) and not configuration.drift(now or "", wanted).found

        live = self._store.configuration() if parts_of_others.is_folder(wanted) else None
        if live is not None:  # another task may have added a credential or view since the plan
            wanted = parts_of_others.with_server_parts(live, wanted)
        self._store.save(wanted, saved)

    def _live_drift(self, wanted: str) -> ConfigurationDrift | None:
        live = self._store.configuration()
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
            raise without_effect(self._store.purpose, "the job does not exist", changed=False)
        name = self._store.job.name
        left = found.without_known(self._task.server_values.known("job", name))
        paths, dropped = left.paths(), left.paths("missing")
        if paths and before is not None and found.before == before.before:
            self._task.server_values.remember("job", name, found.kept(before))
            self._task.warn(not_taken(self._store.purpose, paths))
            return {"changed": False}
        if dropped:
            lost = not_saved(self._store.purpose, dropped, changed=True, differences=dropped)
            raise lost.with_hint("check that the plugin for these elements is installed")
        self._task.server_values.remember("job", name, found.kept(before))
        if paths and self._text is not None:
            self._task.warn(
                f"{self._store.purpose}: the server changed {listed(paths)} while saving. Use the"
                " server's version in the configuration to avoid a difference in every run"
            )
        return {}

    def _switching(self, shown: Mapping[str, Any]) -> Plan:
        """Plan to enable or disable an existing job, or to save a copied job for the first time."""
        self._check_kind("jobs" in shown, job_store.is_computed(shown))
        disabled, enabled = is_disabled(shown), self._options.enabled
        before = {"job": self._store.job.name, "enabled": not disabled}
        differences: list[str] = []
        steps: list[_Step] = []
        not_buildable = shown.get("buildable") is False and not disabled and "jobs" not in shown
        if not_buildable and self._source is not None:
            differences.append(_NOT_SAVED)
            steps = [lambda: self._release(enabled)]
        if enabled is not None and enabled is disabled:
            differences.append("disabled")
            steps = steps or [lambda: self._store.switch(enabled)]
        if not differences:
            return unchanged({"differences": []}, state=before)
        after = {**before, "enabled": not disabled if enabled is None else enabled}
        if not_buildable:
            before, after = {**before, "saved": False}, {**after, "saved": True}
        return Plan(before, after, "update", data=steps).with_result(differences=differences)

    def _deletion(self) -> Plan:
        shown = self._store.state()
        if shown is None:
            self._store.check_name()  # reports a pattern or a typo instead of "no change"
            return unchanged({"differences": []})
        if self._options.folder:
            self._check_kind("jobs" in shown)
        content = "" if self._options.force else self._store.content(shown)
        if content:
            raise invalid(
                f"{self._store.purpose}: it contains {content}, which would be deleted too. To"
                " delete them, set force=true"
            )
        live, steps = self._normalized_or_name(), [self._store.delete]
        return Plan(live, "", "delete", result={"differences": []}, data=steps)

    def _normalized_or_name(self) -> str:
        """Return the configuration for the diff, or the name if the account may not read it."""
        try:
            live = self._store.configuration()
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            live = None
        if live is None:
            return f"{self._store.job.name}\n"
        self._hide(configuration.secrets(live))
        return configuration.normalized(live)

    def _reject_marks(self, names: list[str], reason: str) -> None:
        if names:
            raise invalid(
                f"{self._store.purpose}: the configuration has '{KEPT}' in"
                f" {listed(sorted(set(names)))}, but {reason}. Replace it by the secret, encrypted"
                " with Ansible Vault, or enter the secret on the server"
            )

    def _refuse_stars(self, live: str, name: str) -> None:
        """Raise `permission` if the server has masked the secrets. Server facts [ci-14, ci-21]: it
        masks them for accounts that may not change the configuration or copy the job.
        """
        if configuration.masked_secrets(live):
            raise ToolchainError(
                "permission",
                f"{self._store.purpose}: the account lacks the permission Job/Configure for {name},"
                " so the server masks the secrets",
            )

    def _hide(self, secrets: Iterable[str]) -> None:
        for secret in secrets:
            self._task.hide(secret)

    def _check_same_kind(self, live: str, wanted: str) -> None:
        live_kind, wanted_kind = configuration.kind_of(live), configuration.kind_of(wanted)
        if live_kind != wanted_kind:
            raise ToolchainError(
                "conflict",
                f"{self._store.purpose}: the job is a {live_kind}, but the configuration describes"
                f" a {wanted_kind}. To change its kind, delete the job first",
            )

    def _check_kind(self, is_folder: bool, is_computed: bool = False) -> None:
        """Raise `conflict` for a job instead of a folder, and `invalid` if `enabled` is set for a
        plain folder.
        """
        if self._options.folder and not is_folder:
            raise ToolchainError("conflict", f"{self._store.purpose}: it is a job, not a folder")
        if is_folder and not is_computed and self._options.enabled is not None:
            raise invalid(
                f"{self._store.purpose}: it is a plain folder, which the server cannot disable"
            )


def _given_configuration(task: Task, options: CiJobOptions) -> str | None:
    """Return the configuration to save, with `enabled` applied; `None` without `config` and `src`.

    Raises `invalid` for an unusable configuration.
    """
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
    for secret in secrets:
        task.hide(secret)
    if stars:
        raise invalid(
            f"{name} has asterisks instead of a secret in {', '.join(sorted(set(stars)))}: the"
            " server would save the asterisks as the secret"
        )
    is_folder = kind == job_store.FOLDER
    if options.folder and not is_folder:
        required = job_store.FOLDER
        raise invalid(f"{name} describes a {kind}, but folder=true requires a {required}")
    if is_folder and options.enabled is not None:
        raise invalid("enabled cannot be set for a plain folder: the server cannot disable it")
    return configuration.with_enabled(text, options.enabled)
