# SPDX-License-Identifier: GPL-3.0-or-later
"""Follow the log of a scan, which is the only sign of its beginning and its end [ci-29]."""

from __future__ import annotations

import re

from ...core.http.transport import Transport
from ..job_address import Job

_RESULT = re.compile(r"^Finished: ([A-Z_]+)\s*\Z", re.MULTILINE)


class ScanLog:
    """The log of the latest scan of a computed folder, which the next scan replaces."""

    def __init__(self, server: Transport, job: Job, purpose: str) -> None:
        self._server, self._job, self._purpose = server, job, purpose
        self._previous = ""
        self.text = ""
        self.running = False

    def read(self, patience: float | None = None) -> None:
        """Read the log; it is empty if the folder was never scanned."""
        response = self._server.read(
            self._purpose,
            f"{self._job.path}/computation/logText/progressiveText",
            query={"start": 0},
            expect=(200, 404),
            patience=patience,
        )
        self.text = response.text if response.status == 200 else ""
        # server fact [ci-29]: the header is there while the scan runs
        self.running = response.headers.get("X-More-Data") == "true"

    def remember(self) -> None:
        """Remember the log of the scan before ours."""
        self._previous = self.text

    @property
    def is_new(self) -> bool:
        """Return whether the log belongs to a scan that began after `remember`. An earlier scan
        that still runs only adds to its log; a new one begins with another time.
        """
        if self._previous and self.text.startswith(self._previous):
            self._previous = self.text
            return False
        return self.text != ""

    @property
    def result(self) -> str | None:
        """Return the result at the end of the log; `None` while the scan runs."""
        found = None if self.running else _RESULT.search(self.text)
        return None if found is None else found[1]
