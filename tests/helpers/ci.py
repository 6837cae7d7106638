# SPDX-License-Identifier: GPL-3.0-or-later
"""Run operations of the CI server against the sandbox, inside the test process."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from sandbox.client import Sandbox
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run

TOKEN = "builder-api-token-1234567890"


class Ci:
    """Run tasks of a module against a sandbox."""

    def __init__(self, sandbox: Sandbox, operation: Any, options: type) -> None:
        self.sandbox, self._operation, self._options = sandbox, operation, options
        self.warnings: list[str] = []
        self.username, self.token = "builder", TOKEN

    def run(self, *, check: bool = False, **given: Any) -> dict[str, Any]:
        url = self.sandbox.urls["ci"]
        played = Run(url, check, token=self.token, username=self.username)
        chosen: Any = options_of(self._options, **given)
        found = played.play(lambda task: self._operation(task, chosen))
        self.warnings = played.warnings
        return found

    def lives(self, **given: Any) -> dict[str, Any]:
        """Run in check mode, run, and run again; return the result of the first run."""
        foreseen = self.run(check=True, **given)
        done = self.run(**given)
        assert (foreseen["changed"], foreseen["diff"]) == (done["changed"], done["diff"])
        again = self.run(**given)
        assert not again["changed"], again["diff"]
        return done

    def fails(self, error: str, /, *words: str, **given: Any) -> ToolchainError:
        """Verify that check mode and run mode raise this kind of error, and send no write."""
        before = self.sandbox.mark()
        for check in (True, False):
            with pytest.raises(ToolchainError) as caught:
                self.run(check=check, **given)
            assert caught.value.kind == error, caught.value.message
            for word in words:
                assert word in caught.value.message
        assert self.writes(before) == []
        return caught.value

    def writes(self, since: Any = None) -> list[str]:
        asked = self.sandbox.requests("ci", since=since) if since else self.sandbox.requests("ci")
        return [f"{record['method']} {record['path']}" for record in asked if record["write"]]

    def text(self, path: str, method: str = "GET", **parts: Any) -> str:
        """Send a request without our client, and return the response."""
        response = requests.request(
            method,
            f"{self.sandbox.urls['ci']}/{path}",
            auth=("builder", TOKEN),
            timeout=10,
            allow_redirects=False,
            **parts,
        )
        assert response.status_code < 400, response.text
        return response.text
