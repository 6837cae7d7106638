# SPDX-License-Identifier: GPL-3.0-or-later
"""Scan the branches of a multibranch project or organization folder: `ci_branch_scan` [C3.8]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import unquote

from ...core.errors import ToolchainError, conflict, rejected
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.json_text import json_objects
from ...core.module.descriptor import Descriptor, reads, writes
from ...core.module.task import Task
from ...core.module.typed_options import Seconds
from ...core.plan import Plan
from ...core.progress import PollInterval, PollTimeout
from .. import client
from ..builds.build_log import without_notes
from ..client import BUILD, SEES_JOB, is_computed, object_of, require_confirmation, server_of
from ..job_address import Job, JobName, job_of
from ..service import SERVICE
from ..waiting import Outage, PollingFactory, Timeout, WaitOptions, patience

_RESULT = re.compile(r"^Finished: ([A-Z_]+)\s*\Z", re.MULTILINE)


class ScanLog:
    """The log of a computed folder's latest scan. The next scan replaces the log."""

    def __init__(self, server: Transport, job: Job, purpose: str) -> None:
        self._server, self._job, self._purpose = server, job, purpose
        self._previous = ""
        self.text = ""
        self.running = False

    def read(self, patience: float | None = None) -> None:
        """Read the log. It is empty if the folder was never scanned.

        :param patience: timeout in seconds, including retries
        """
        response = self._server.read(
            self._purpose,
            f"{self._job.path}/computation/logText/progressiveText",
            query={"start": 0},
            expect=(200, 404),
            patience=patience,
        )
        text = without_notes(response.body).decode("utf-8", "replace").replace("\r\n", "\n")
        self.text = text if response.status == 200 else ""
        # server fact [ci-29]: the server sends this header while the scan is running
        self.running = response.headers.get("X-More-Data") == "true"

    def remember(self) -> None:
        """Store the current log as that of the previous scan."""
        self._previous = self.text

    @property
    def is_new(self) -> bool:
        """Return whether the log belongs to a scan that started after `remember`.

        A previous scan that is still running only appends to its log. The log of a new scan begins
        with another time.
        """
        if self._previous and self.text.startswith(self._previous):
            self._previous = self.text
            return False
        return self.text != ""

    @property
    def result(self) -> str | None:
        """Return the result at the end of the log, or `None` if the scan is still running."""
        found = None if self.running else _RESULT.search(self.text)
        return None if found is None else found[1]


_TREE = "_class,fullName,buildable,disabled,jobs[name]"
#: Maximum seconds to wait for the start of the scan if the response was lost.
_VERIFY_SECONDS = 5.0
#: Maximum number of characters of the returned log.
_MAX_LOG = 1 << 16


@dataclass(frozen=True, kw_only=True)
class CiBranchScanOptions(WaitOptions):
    """The options of `ci_branch_scan`."""

    job: JobName
    wait_timeout: Timeout = 600
    poll_interval: Seconds = 2


class CiBranchScanOperation:
    """Starts a scan, waits for its end, and compares the branches before and after it.

    :param make_polling: creates a `PollInterval` from a timeout and a maximum pause in seconds
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            "scan": writes(*SEES_JOB, unforeseen=(BUILD,)),
            "log": reads(*SEES_JOB),
            "branches": reads(*SEES_JOB),
        },
        kind="job",
        name="{job}",
        lock=None,
    )

    def __init__(
        self, task: Task, options: CiBranchScanOptions, make_polling: PollingFactory = PollInterval
    ) -> None:
        self._options, self._make_polling = options, make_polling
        self._job = job_of(options.job, task.connection.url)
        self._purpose = f"scanning '{self._job.name}'"
        self._server = server_of(task)
        self._log = ScanLog(self._server, self._job, self._purpose)

    def plan(self) -> Plan:
        shown = self._read()
        if not is_computed(shown):
            kind = "folder" if "jobs" in shown else "job"
            raise rejected(
                f"{self._purpose}: it is a {kind}: set job to a multibranch project or an"
                " organization folder"
            )
        if shown.get("buildable") is False:
            raise self._not_buildable(shown)
        found = _branches(shown)
        scan = {"job": self._job.name, "branches": found}
        values = {"branches": found, "added": [], "removed": []}
        return Plan({}, {"scan": scan}, "run", result={"scan": _scan(None, ""), **values})

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self._log.read()
        self._log.remember()
        self._server.write(
            self._purpose,
            "POST",
            f"{self._job.path}/build",
            query={"delay": "0sec"},
            form={},
            expect=client.REDIRECTED,
            validate=self._validate,
            verify=self._is_started,
        )
        if not self._options.wait:
            return {}
        self._follow(plan.result["branches"])
        return self._values(plan.result["branches"])

    def _read(self) -> Mapping[str, Any]:
        response = self._server.read(
            self._purpose, f"{self._job.path}/api/json", query={"tree": _TREE}, expect=(200, 404)
        )
        if response.status == 404:
            raise response.error(
                "not_found",
                "the server returned 404: the project does not exist, or the account cannot see it",
            )
        shown = object_of(response)
        self._job.require_spelling(shown, self._purpose)
        return shown

    def _validate(self, response: Response) -> None:
        # server fact [ci-29]: a scan of a disabled project causes a 500
        if response.status == 500 and (shown := self._read()).get("buildable") is False:
            raise self._not_buildable(shown)
        require_confirmation(self._server, response)

    def _not_buildable(self, shown: Mapping[str, Any]) -> ToolchainError:
        """Return the error for a project that cannot be scanned.

        Server fact [ci-29]: it is disabled or has no branch source. Only some servers say which.
        """
        reason = {
            True: "the project or a parent folder is disabled: enable it with ci_job",
            False: "the project has no branch source: add one to its config with ci_job",
        }.get(
            shown.get("disabled"),  # type: ignore[arg-type]
            "the project or a parent folder is disabled, or the project has no branch source: look"
            " at its config with ci_job_info, and correct it with ci_job",
        )
        return conflict(f"{self._purpose}: {reason}")

    def _is_started(self) -> bool | None:
        """Return true if the scan has started; `None` if not, because it may be in the queue."""
        polling = self._make_polling(_VERIFY_SECONDS, self._options.poll_interval)
        try:
            while True:
                self._log.read(patience(polling))
                if self._log.is_new:
                    return True
                polling.pause(self._purpose)
        except PollTimeout:
            return None

    def _follow(self, before: list[str]) -> None:
        """Wait for the end of the scan. Raises `failed` if the scan failed."""
        polling = self._make_polling(self._options.wait_timeout, self._options.poll_interval)
        outage = Outage(self._server, polling.now)
        while True:
            try:
                self._log.read(patience(polling))
                outage.is_over()
                if self._log.is_new and self._log.result is not None:
                    break
            except ToolchainError as error:
                if not outage.passes(error):
                    raise
            try:
                state = "is running" if self._log.is_new else "has not started"
                polling.pause(f"{self._purpose}: the scan {state} ({self._url})")
            except PollTimeout as error:
                changed = self._log.is_new
                error.result = {"changed": changed, "scan": _scan(None, self._log.text)}
                raise
        if self._log.result != "SUCCESS":
            raise ToolchainError(
                "failed",
                f"{self._purpose}: the scan ended with {self._log.result} ({self._url})",
                url=self._url,
                result={"changed": True, **self._values(before)},
            )

    @property
    def _url(self) -> str:
        return f"{self._server.connection.url}/{self._job.path}/computation/console"

    def _values(self, before: list[str]) -> dict[str, Any]:
        after = _branches(self._read())
        return {
            "scan": _scan(self._log.result, self._log.text),
            "branches": after,
            "added": [name for name in after if name not in before],
            "removed": [name for name in before if name not in after],
        }


def _scan(result: str | None, log: str) -> dict[str, Any]:
    return {"result": result, "log": log[-_MAX_LOG:]}


def _branches(shown: Mapping[str, Any]) -> list[str]:
    """Return the decoded names of the branches. Server fact [ci-5]: job names of branches are
    percent-encoded.
    """
    return sorted(unquote(str(obj.get("name"))) for obj in json_objects(shown.get("jobs")))
