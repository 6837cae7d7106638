# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, create, change and delete a job or folder on the server [ci-21]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import unquote

from ...core.errors import ToolchainError, invalid, shorten
from ...core.http.messages import json_or_none
from ...core.http.transport import Transport
from ...core.http.writes import Verify
from ...core.json_text import as_text
from ...core.module.authorship import Author
from ...core.module.predictions import Predictions
from ..client import objects, part
from ..job_address import Job
from ..server_objects import REDIRECTED, ServerObjects, naming_class
from .configuration import is_enabled, kind_of, with_enabled

FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
_COMPUTED = ("MultiBranchProject", "OrganizationFolder")


def is_folder(shown: Mapping[str, Any]) -> bool:
    """Return whether a JSON object describes a folder of any kind."""
    name = str(shown.get("_class"))
    return "jobs" in shown or name == FOLDER or name.endswith(_COMPUTED)


def is_computed(shown: Mapping[str, Any]) -> bool:
    """Return whether a JSON object describes a computed folder, such as a multibranch project.

    Only computed folders have the field `buildable`.
    """
    named = str(shown.get("_class")).endswith(_COMPUTED)
    return is_folder(shown) and (named or "buildable" in shown)


#: `tree` query for the state of a job.
_STATE = "_class,fullName,name,buildable,disabled,color,builds[number]{0,1},jobs[name]{0,1}"
# Server fact [ci-5]: names must not contain these characters. The server would strip outer blanks.
_BAD_NAME = re.compile(r"[?*/\\%!@#$^&|<>\[\]:;\x00-\x1f\x7f-\x9f]|^\s|\s$|\.$|^\.{1,2}$")
#: Maximum depth of folders in which copied jobs are saved.
_DEEPEST = 20


class JobStore:
    """Access to a job or folder.

    :param purpose: operation and object for messages
    :param predictions: jobs that earlier tasks in check mode would have created
    """

    def __init__(
        self, server: Transport, job: Job, purpose: str, predictions: Predictions | None = None
    ) -> None:
        self._objects, self.job, self.purpose = ServerObjects(server), job, purpose
        self.url = f"{server.connection.url}/{job.path}/"
        self._predictions = predictions or Predictions()

    @property
    def _above(self) -> str:
        """Return the path of the parent folder with a trailing slash; "" at the top level."""
        parent = self.job.path.rpartition("/job/")[0]
        return f"{parent}/" if parent else ""

    @property
    def name(self) -> str:
        return unquote(self.job.path.rpartition("/")[2])

    def check_name(self) -> None:
        """Raise `invalid` if the server would reject or change the name."""
        if _BAD_NAME.search(self.name):
            raise invalid(
                f"job: '{shorten(self.job.name)}' cannot be the name of a job: it contains one of"
                " ?*/\\%!@#$^&|<>[]:; or a control character, has a leading or trailing blank, or"
                " ends with a dot"
            )

    def configuration(self, job: Job | None = None) -> str | None:
        """Return the XML configuration; `None` if the job does not exist or is not visible.

        :param job: another job to read
        """
        return self._objects.text(self.purpose, (job or self.job).path)

    def require_spelling(self, job: Job | None = None) -> None:
        """Raise `conflict` if the server spells the name of a job with other letter case.

        :param job: the default is the job of the task
        """
        job = job or self.job
        response = self._objects.read(self.purpose, f"{job.path}/api/json", "fullName")
        shown = None if response is None else json_or_none(response.body)
        job.require_spelling(part(shown), self.purpose)

    def state(self) -> Mapping[str, Any] | None:
        """Return the JSON object of the job, or `None` if the job does not exist.

        Raises `conflict` if the server spells its name with other letter case.
        """
        shown = self._shown(self.job.path, _STATE)
        if shown is None:
            return None
        self.job.require_spelling(shown, self.purpose)
        if is_computed(shown) and shown.get("buildable") is False:
            return {**shown, "disabled": self._is_disabled_itself()}
        return shown

    def author(self) -> Author:
        """Return who changed the job last."""
        return self._objects.author(self.purpose, self.job.path)

    def _is_disabled_itself(self) -> bool:
        """Return whether a computed folder itself is disabled, and not only a parent folder.

        Server fact [ci-29]: `buildable` is false in both cases.
        """
        try:
            text = self.configuration()
        except ToolchainError as error:
            if error.kind != "permission":
                raise
            return True
        return text is None or not is_enabled(text)

    def predicted_state(self, job: Job | None = None) -> Mapping[str, Any] | None:
        """Return the state of a job that an earlier task in check mode would create, or `None`.

        :param job: the default is the job of the task
        """
        name = (job or self.job).name
        state: Mapping[str, Any] | None = self._predictions.get("job", name)
        return state

    def predict(self, *, folder: bool, enabled: bool | None) -> None:
        """Record the job that the task would create, for later tasks in check mode."""
        state = {"buildable": enabled is not False, **({"jobs": []} if folder else {})}
        self._predictions.add("job", self.job.name, value=state)
        stored = self.job.stored_name
        self._predictions.add("job spelling", stored.casefold(), value=stored)
        self._predictions.remove("deleted job", *self._place)

    def predict_deletion(self) -> None:
        self._predictions.remove("job", self.job.name)
        self._predictions.remove("job spelling", self.job.stored_name.casefold())
        self._predictions.add("deleted job", *self._place)

    @property
    def _place(self) -> tuple[str, str]:
        """Return the parent folder and the name in it, as predictions spell them."""
        parent, _slash, name = self.job.stored_name.casefold().rpartition("/")
        return parent, name

    def content(self, shown: Mapping[str, Any]) -> str:
        """Return `builds` or `jobs` if the job contains some, or may contain some, otherwise "".

        A job shows `builds`, a folder `jobs`; without these lists, the content is not known. Jobs
        that earlier tasks in check mode would delete do not count.

        :param shown: result of `state`
        """
        if "jobs" not in shown or "builds" in shown:
            builds = shown.get("builds")
            if not isinstance(builds, list):
                return "builds (the server does not show whether it has some)"
            if builds:
                return "builds"
        jobs = shown.get("jobs", [])
        gone = self._predictions.all("deleted job", self.job.stored_name.casefold())
        if jobs and gone:
            jobs = part(self._shown(self.job.path, "jobs[name]")).get("jobs")
        if not isinstance(jobs, list):
            return "jobs (the server does not show whether it has some)"
        names = [as_text(part(job).get("name")).casefold() for job in jobs]
        return "jobs" if any(name not in gone for name in names) else ""

    def require_folder(self) -> None:
        """Check the parent folder.

        Raises `not_found` if it does not exist. Raises `conflict` if it is a job, if the server
        spells it differently, or if an earlier task in check mode would create the job in a folder
        with another spelling.
        """
        spelling = self._predictions.get("job spelling", self.job.stored_name.casefold())
        self.job.require_spelling({"fullName": spelling or ""}, self.purpose)
        shown = self._shown(self._above.rstrip("/"), "_class,fullName,jobs[name]{0,1}")
        parent = self.job.name.rpartition("/")[0]
        predicted = self._predictions.get("job", parent)
        if shown is None and predicted is not None and "jobs" in predicted:
            return
        if shown is None:
            missing = (
                f"the folder '{parent}' does not exist, or the account cannot see it. To create"
                " the folder, use ci_job with folder=true"
                if parent
                else (
                    "the server does not list its top-level jobs (api/json), so it cannot create"
                    " jobs"
                )
            )
            raise ToolchainError("not_found", f"{self.purpose}: {missing}", status=404)
        if not self._above:
            return
        Job(self._above.rstrip("/"), parent).require_spelling(shown, f"{self.purpose}: '{parent}'")
        if "jobs" not in shown:
            raise ToolchainError("conflict", f"{self.purpose}: '{parent}' is a job, not a folder")

    def _shown(self, path: str, tree: str) -> Mapping[str, Any] | None:
        return self._objects.shown(self.purpose, path, tree)

    def create(self, text: str) -> None:
        """Create the job with this XML configuration."""
        query = {"name": self.name}
        self._send(self._creation_path, text, self._exists, query=query)

    def copy(self, source: Job) -> None:
        """Copy a job. The copy cannot be built until `release` has saved it."""
        segments = [unquote(part) for part in source.path.split("/")[1::2]]
        query = {"name": self.name, "mode": "copy", "from": "/" + "/".join(segments)}
        self._write(self._creation_path, self._exists, query=query, form={})

    @property
    def _creation_path(self) -> str:
        return f"{self._above}createItem"

    def _exists(self) -> bool:
        return self.state() is not None

    def save(self, text: str, verify: Verify) -> None:
        """Replace the configuration. `verify` is called after a lost response."""
        self._send(f"{self.job.path}/config.xml", text, verify)

    def switch(self, enabled: bool) -> None:
        """Enable or disable the job. Raises `rejected` if its kind cannot be disabled."""
        action = "enable" if enabled else "disable"

        def done() -> bool:
            return is_disabled(self.state() or {}) is not enabled

        self._write(f"{self.job.path}/{action}", done, form={}, repeatable=True)
        if not done():
            raise ToolchainError(
                "rejected",
                f"{self.purpose}: the server did not {action} the job; it cannot disable jobs of"
                " this kind",
            )

    def delete(self) -> None:
        """Delete the job with its builds, or the folder with its content."""
        self._objects.delete(self.purpose, self.job.path, lambda: not self._exists())

    def release(self, enabled: bool | None) -> list[str]:
        """Save a copied job, or all jobs of a copied folder, to make them buildable.

        :param enabled: whether to enable the job; `None` keeps the state of the source job
        :returns: names of the jobs that are still not buildable
        """
        not_buildable = []
        for job in self._below(self.job, 0):
            text = self.configuration(job)
            if text is not None:
                text = with_enabled(text, enabled if job == self.job else None)
                try:
                    self._release(job, text)
                except ToolchainError as error:
                    hint = f"'{job.name}' cannot be built until it has been saved once"
                    raise error.with_hint(hint) from None
                if self._is_buildable(job) is False:
                    not_buildable.append(job.name)
        return not_buildable

    def _release(self, job: Job, text: str) -> None:
        """Save a copied job to make it buildable.

        Server fact [ci-21]: on very old servers the description must be saved too, here unchanged.
        """
        verify = partial(self._is_buildable, job)
        self._send(f"{job.path}/config.xml", text, verify, repeatable=True)
        if verify() is False:
            shown = part(self._shown(job.path, "description"))
            form = {"description": str(shown.get("description") or "")}
            self._write(f"{job.path}/submitDescription", verify, form=form, repeatable=True)

    def _is_buildable(self, job: Job) -> bool | None:
        shown = part(self._shown(job.path, _STATE))
        return None if is_disabled(shown) else shown.get("buildable") is True

    def _below(self, job: Job, depth: int) -> Iterator[Job]:
        shown = part(self._shown(job.path, "jobs[name]"))
        if "jobs" not in shown:
            yield job
        elif depth < _DEEPEST:
            for obj in objects(shown["jobs"]):
                if obj.get("name"):
                    yield from self._below(job.below(str(obj["name"])), depth + 1)

    def _send(self, path: str, text: str, verify: Verify, **parts: Any) -> None:
        with naming_class(kind_of(text)):
            self._objects.send(self.purpose, path, text, verify, expect=REDIRECTED, **parts)

    def _write(self, path: str, verify: Verify, **parts: Any) -> None:
        self._objects.write(self.purpose, path, verify, **parts)


def is_disabled(shown: Mapping[str, Any]) -> bool:
    """Return whether a job is disabled. Server fact [ci-21]: some kinds of jobs show this only by
    their color.
    """
    return shown.get("disabled") is True or str(shown.get("color")).startswith("disabled")


def is_there_already(error: ToolchainError) -> bool:
    """Return whether a creation failed because the job already exists, and set the error's kind to
    `conflict`.
    """
    if error.status == 400 and "already exists" in (error.detail or ""):
        error.kind = "conflict"
        return True
    return False
