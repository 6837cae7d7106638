# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow a branch scan by its log. The server reports its start and end nowhere else [ci-29]."""

from __future__ import annotations

import re

from ...core.http.transport import Transport
from ..job_address import Job

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
        self.text = response.text if response.status == 200 else ""
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
