# SPDX-License-Identifier: GPL-3.0-or-later
"""Manage a job or folder by its configuration: `ci_job` [C8.4]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from ...core.errors import ToolchainError, invalid
from ...core.files import read_text
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option, PathText
from ...core.plan import Plan, unchanged
from .. import xml_reader
from ..client import objects, server_of
from ..job_address import Job, JobName, job_of
from ..permissions import CONFIGURE, CREATE, DELETE, EXTENDED_READ, READ_JOB, READ_SERVER, SEES_JOB
from . import computed_folders, configuration
from .configuration import ConfigurationDrift
from .job_store import JobStore, is_disabled, is_there_already
from .kept_secrets import KEPT, marked, with_kept_secrets, with_secrets

_NOT_SAVED = "it was copied and never saved, so it cannot be built"
_MAX_NAMED = 10


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

    constraints: ClassVar[dict[str, Any]] = {"mutually_exclusive": [("config", "src", "copy_from")]}


class CiJobOperation:
    """Creates, changes or deletes a job."""

    descriptor: ClassVar = Descriptor(
        "ci",
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
        _check(options)
        self._text = self._given_text()
        creates = options.folder or source is not None or self._text is not None
        if creates and options.state == "present" and "://" not in str(options.job):
            self._store.check_name()
        #: Someone else created the job meanwhile, exactly as wanted.
        self._made_by_others = False

    def plan(self) -> Plan:
        plan = self._planned()
        return plan.with_result(job={"name": self._store.job.name, "url": self._store.url})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        for number, step in enumerate(plan.data):
            try:
                step()
            except ToolchainError as error:
                if number:  # earlier steps have been done
                    error.result.setdefault("job", plan.result["job"])
                raise
        return {"changed": False} if self._made_by_others else {}

    def predict(self, plan: Plan) -> None:
        if plan.action == "delete":
            self._store.predict_deletion()
        elif plan.action == "create":
            self._store.predict(folder=self._makes_folder, enabled=self._options.enabled)

    def _planned(self) -> Plan:
        if self._options.state == "absent":
            return self._deletion()
        if self._text is not None:
            live = self._store.configuration()
            return self._creation(self._text) if live is None else self._update(live, self._text)
        shown = self._store.state()
        if shown is not None:
            return self._switching(shown)
        if self._source is not None:
            return self._copy(self._source)
        if self._options.folder:
            return self._creation(f"<{computed_folders.FOLDER}/>")
        predicted = self._store.predicted_state()
        if predicted is not None:
            return self._switching(predicted)
        raise ToolchainError(
            "not_found",
            f"{self._store.purpose}: there is no such job, or the account cannot see it; to create"
            " it, set config, src or copy_from",
            status=404,
        )

    def _given_text(self) -> str | None:
        """Return the wanted configuration including `enabled`. Raises `invalid` if it cannot be
        used.
        """
        name, text = "config", self._options.config
        if self._options.src is not None:
            name, text = "src", read_text(self._options.src, "the configuration in src")
        if text is None:
            return None
        try:
            secrets, stars = configuration.secrets(text), configuration.masked_secrets(text)
            kind = configuration.kind_of(text)
        except xml_reader.UnreadableXml as error:
            raise invalid(f"{name} is not the configuration of a job: {error}") from None
        for secret in secrets:
            if secret != KEPT:
                self._task.hide(secret)
        if stars:
            raise invalid(
                f"{name} has stars instead of a secret in {', '.join(sorted(set(stars)))}: the"
                " server would save the stars as the secret"
            )
        is_folder = kind == computed_folders.FOLDER
        if self._options.folder and not is_folder:
            folder = computed_folders.FOLDER
            raise invalid(f"{name} describes a {kind}, but folder is true, which means a {folder}")
        if is_folder and self._options.enabled is not None:
            raise invalid(
                "enabled cannot be combined with a plain folder: the server disables jobs,"
                " multibranch"
                " projects and organization folders"
            )
        return configuration.with_enabled(text, self._options.enabled)

    def _creation(self, text: str) -> Plan:
        self._store.check_name()
        self._store.require_folder()
        self._reject_marks(marked(text), "there is no such job")
        steps = [lambda: self._create(text), lambda: self._verify(text)]
        after = configuration.normalized(text)
        return Plan("", after, "create", result={"differences": []}, data=steps)

    @property
    def _makes_folder(self) -> bool:
        text = self._text
        return (
            self._options.folder
            if text is None
            else configuration.kind_of(text) == computed_folders.FOLDER
        )

    def _create(self, text: str) -> None:
        try:
            self._store.create(text)
        except ToolchainError as error:
            if not is_there_already(error) or self._differs(text):
                raise
            self._made_by_others = True

    def _copy(self, source: Job) -> Plan:
        self._store.check_name()
        self._store.require_folder()
        text = self._store.configuration(source)
        if text is None:
            raise ToolchainError(
                "not_found",
                f"{self._store.purpose}: there is no job '{source.name}' to copy, or the account"
                " cannot see it",
                status=404,
            )
        self._hide_secrets(text)
        self._refuse_stars(text, f"the job '{source.name}'")
        self._check_kind(configuration.kind_of(text) == computed_folders.FOLDER)
        enabled = self._options.enabled
        steps = [lambda: self._store.copy(source), lambda: self._release(enabled)]
        after = configuration.normalized(configuration.with_enabled(text, enabled))
        return Plan("", after, "create", data=steps).with_result(differences=[])

    def _release(self, enabled: bool | None) -> None:
        held = self._store.release(enabled)
        if held:
            self._task.warn(
                f"{self._store.purpose}: the server still does not allow builds of {_named(held)}:"
                " save it once in its web form"
            )

    def _update(self, live: str, wanted: str) -> Plan:
        self._hide_secrets(live)
        self._check_same_kind(live, wanted)
        wanted, missing = with_secrets(live, wanted)
        self._reject_marks(missing, "the job has no matching secret on the server")
        always = self._options.update_secrets == "always"
        found = configuration.drift(live, wanted, resent=always)
        if found.uncompared:
            self._task.warn(
                f"{self._store.purpose}: secrets cannot be compared, because the server encrypts"
                f" them again with each save: {_named(found.uncompared)}"
            )
        if not found.found:
            return unchanged({"differences": []}, state=found.before)
        self._refuse_stars(live, "it")
        sent = wanted if always else with_kept_secrets(live, wanted)
        steps = [lambda: self._save(sent, live), lambda: self._verify(sent, found.before)]
        result = {"differences": [difference.path for difference in found.differences]}
        return Plan(found.before, found.after, "update", result=result, data=steps)

    def _save(self, wanted: str, before: str) -> None:
        """Save a configuration. Server fact [ci-15]: its secrets change with each save, which
        shows that it was saved if nothing else differs.
        """

        def saved() -> bool:
            live = self._store.configuration()
            return live not in (None, before) and not configuration.drift(live or "", wanted).found

        self._store.save(wanted, saved)

    def _differs(self, wanted: str) -> bool:
        found = self._live_drift(wanted)
        return found is None or found.found

    def _live_drift(self, wanted: str) -> ConfigurationDrift | None:
        live = self._store.configuration()
        return None if live is None else configuration.drift(live, wanted)

    def _verify(self, wanted: str, before: str = "") -> None:
        """Verify the saved configuration. Server fact [ci-21]: the server drops unknown elements
        and reports success. `before` is the configuration before the save.
        """
        try:
            found = self._live_drift(wanted)
        except ToolchainError as error:
            raise error.with_hint(
                "the server saved the configuration, but the saved version cannot be read"
            ) from None
        if found is None:
            raise ToolchainError(
                "failed",
                f"{self._store.purpose}: the server accepted the request, but the job does not"
                " exist",
                result={"changed": False},
            )
        dropped = [
            difference.path for difference in found.differences if difference.kind == "missing"
        ]
        if dropped:
            raise ToolchainError(
                "rejected",
                f"{self._store.purpose}: the server dropped {_named(dropped)}, as it does with"
                " unknown elements: a plugin may be missing",
                result={"changed": found.before != before, "differences": dropped},
            )
        others = [difference.path for difference in found.differences]
        if others:
            self._task.warn(
                f"{self._store.purpose}: the server changed {_named(others)} while saving: use the"
                " server's version in the configuration, or every run will find a difference"
            )

    def _switching(self, shown: Mapping[str, Any]) -> Plan:
        """Plan without a configuration: folder, enabled, and saved once."""
        self._check_kind("jobs" in shown, computed_folders.is_computed(shown))
        disabled, enabled = is_disabled(shown), self._options.enabled
        before = {"job": self._store.job.name, "enabled": not disabled}
        differences: list[str] = []
        steps: list[Callable[[], None]] = []
        held = shown.get("buildable") is False and not disabled and "jobs" not in shown
        if held and self._source is not None:
            differences.append(_NOT_SAVED)
            steps = [lambda: self._release(enabled)]
        if enabled is not None and enabled is disabled:
            differences.append("disabled")
            steps = steps or [lambda: self._store.switch(enabled)]
        if not differences:
            return unchanged({"differences": []}, state=before)
        after = {**before, "enabled": not disabled if enabled is None else enabled}
        if held:
            before, after = {**before, "saved": False}, {**after, "saved": True}
        return Plan(before, after, "update", data=steps).with_result(differences=differences)

    def _deletion(self) -> Plan:
        shown = self._store.state()
        if shown is None:
            self._store.check_name()  # no existing job has such a name, in particular no pattern
            return unchanged({"differences": []})
        if self._options.folder:
            self._check_kind("jobs" in shown)
        held = [word for word in ("builds", "jobs") if objects(shown.get(word))]
        if held and not self._options.force:
            raise invalid(
                f"{self._store.purpose}: it has {held[0]}, which would be deleted with it; force:"
                " true allows that"
            )
        live, steps = self._normalized_or_name(), [self._store.delete]
        return Plan(live, "", "delete", result={"differences": []}, data=steps)

    def _normalized_or_name(self) -> str:
        """Return the configuration for the diff; the name if the account must not read it."""
        try:
            live = self._store.configuration()
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            live = None
        if live is None:
            return f"{self._store.job.name}\n"
        self._hide_secrets(live)
        return configuration.normalized(live)

    def _reject_marks(self, names: list[str], reason: str) -> None:
        if names:
            raise invalid(
                f"{self._store.purpose}: the configuration refers to the server's secret in"
                f" {_named(sorted(set(names)))}, but {reason}: write the secret, encrypted with"
                " Ansible Vault, or enter it on the server"
            )

    def _refuse_stars(self, live: str, name: str) -> None:
        """Raise `permission` if the server shows stars instead of secrets: the account may read the
        configuration, but neither change it nor copy the job [ci-14, ci-21].
        """
        if configuration.masked_secrets(live):
            raise ToolchainError(
                "permission",
                f"{self._store.purpose}: the account lacks the permission Job/Configure for {name}:"
                " the server shows it stars instead of the secrets",
            )

    def _hide_secrets(self, live: str) -> None:
        for secret in configuration.secrets(live):
            self._task.hide(secret)

    def _check_same_kind(self, live: str, wanted: str) -> None:
        theirs, ours = configuration.kind_of(live), configuration.kind_of(wanted)
        if theirs != ours:
            raise ToolchainError(
                "conflict",
                f"{self._store.purpose}: it is a {theirs} on the server, but the configuration"
                f" describes a {ours}; the kind cannot be changed: delete the job first",
            )

    def _check_kind(self, is_folder: bool, is_computed: bool = False) -> None:
        """Raise `conflict` for a job instead of a folder, `invalid` for enabling or disabling a
        plain folder.
        """
        if self._options.folder and not is_folder:
            raise ToolchainError("conflict", f"{self._store.purpose}: it is a job, not a folder")
        if is_folder and not is_computed and self._options.enabled is not None:
            raise invalid(
                f"{self._store.purpose}: it is a plain folder, which the server cannot disable"
            )


def _check(options: CiJobOptions) -> None:
    """Raise `invalid` for contradictory options."""
    if options.state == "present":
        if options.folder and options.enabled is not None:
            raise invalid(
                "enabled cannot be combined with folder: the server cannot disable a plain folder;"
                " omit folder for a multibranch project"
            )
        if options.force:
            raise invalid("force requires state=absent: it allows the deletion of jobs with builds")
        if options.update_secrets == "always" and options.config is options.src is None:
            raise invalid("update_secrets is 'always', but there is no config or src to send")
        return
    for name in ("config", "src", "copy_from", "enabled"):
        if getattr(options, name) is not None:
            raise invalid(f"{name} cannot be combined with state=absent")
    if options.update_secrets == "always":
        raise invalid("update_secrets cannot be combined with state=absent")


def _named(paths: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(paths[:_MAX_NAMED]) + more
