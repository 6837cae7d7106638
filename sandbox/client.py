# SPDX-License-Identifier: GPL-3.0-or-later
"""Test client: start a sandbox in a separate process, add faults and read its log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

_ROOT = Path(__file__).parent.parent
_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
_CALL_SECONDS = 10.0


class Sandbox:
    """A running sandbox, which is a context manager. `urls`: base URL by service."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        folder: tempfile.TemporaryDirectory[str],
        ready: dict[str, Any],
    ) -> None:
        self._process = process
        self._folder = folder
        self._session = requests.Session()
        self._session.trust_env = False
        self.pid: int = ready["pid"]
        self.port: int = ready["port"]
        self.urls: dict[str, str] = ready["urls"]
        self.control: str = ready["control"]

    @classmethod
    def start(
        cls,
        seed: dict[str, Any] | None = None,
        flavour: str | None = "written",
        database: str | None = None,
        settings: dict[str, dict[str, Any]] | None = None,
    ) -> Sandbox:
        """Start the sandbox on a free port and wait until it listens.

        Raises `RuntimeError` with the error message of the process if it does not start.

        :param seed: merged into the default seeds
        :param flavour: flavour of all services; None means that of the seeds
        :param database: file for the state; None means in memory
        :param settings: `{service: {key: value}}`
        """
        folder = tempfile.TemporaryDirectory(prefix="sandbox-client-")
        ready_file = Path(folder.name) / "ready.json"
        # The sandbox may need another Python and other libraries than the tests.
        python = os.environ.get("SANDBOX_PYTHON", sys.executable)
        command = [python, "-m", "sandbox", "--port", "0", "--ready-file", str(ready_file)]
        if seed is not None:
            seed_file = Path(folder.name) / "seed.json"
            seed_file.write_text(json.dumps(seed), encoding="utf-8")
            command += ["--seed", str(seed_file)]
        if flavour is not None:
            command += ["--flavour", flavour]
        if database is not None:
            command += ["--database", database]
        with open(Path(folder.name) / "errors", "wb") as errors:
            process = subprocess.Popen(  # noqa: S603 (our own command line)
                command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=errors
            )
        sandbox = cls(process, folder, _wait_ready(process, folder, ready_file))
        for service, changes in (settings or {}).items():
            sandbox.settings(service, **changes)
        return sandbox

    def _call(self, method: str, path: str, payload: Any = None, **query: Any) -> Any:
        response = self._session.request(
            method, self.control + path, json=payload, params=query, timeout=_CALL_SECONDS
        )
        if response.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {response.status_code} {response.text}")
        return response.json() if response.content else None

    def requests(
        self, service: str | None = None, writes: bool | None = None, since: int = 0
    ) -> list[dict[str, Any]]:
        """Return logged requests.

        Raises `RuntimeError` if the log no longer contains all of them.

        :param writes: True returns only writes, False only reads, None all requests
        :param since: number of a request, see `mark()`; only later requests are returned
        """
        log = self._call("GET", "/requests", service=service or "", since=since)
        if log["forgotten"] > since:
            raise RuntimeError(
                f"the log no longer contains all requests after {since}: the first"
                f" {log['forgotten']} were discarded"
            )
        found: list[dict[str, Any]] = log["requests"]
        return [entry for entry in found if writes is None or entry["write"] == writes]

    def mark(self) -> int:
        """Return the number of the newest request; pass it as `since` later."""
        return int(self._call("GET", "/requests", since=2**60)["last"])

    def fault(self, **fault: Any) -> None:
        """Add a fault, see `sandbox.faults.Fault`."""
        self._call("POST", "/faults", fault)

    def pending_faults(self) -> list[dict[str, Any]]:
        pending: list[dict[str, Any]] = self._call("GET", "/faults")["faults"]
        return pending

    def replace_faults(self, faults: Sequence[Mapping[str, Any]]) -> int:
        """Replace all pending faults. Return `mark()`."""
        return int(self._call("PUT", "/faults", list(faults))["last"])

    def clear_faults(self) -> None:
        self._call("DELETE", "/faults")

    def settings(self, service: str, **changes: Any) -> dict[str, Any]:
        """Change settings of a service. Return all its settings."""
        all_settings: dict[str, dict[str, Any]] = self._call(
            "PATCH", "/settings", {service: changes}
        )
        return all_settings[service]

    def reset(
        self,
        settings: Mapping[str, Any] | None = None,
        seed: Mapping[str, Any] | None = None,
        faults: Sequence[Mapping[str, Any]] = (),
    ) -> int:
        """Restore the state at the start, with its seeds and flavours. Return `mark()`.

        :param settings: `{service: {key: value}}`, changed after the reset
        :param seed: added to the seeds
        """
        body = {"settings": settings or {}, "seed": seed or {}, "faults": list(faults)}
        return int(self._call("POST", "/reset", body)["last"])

    def seed(self, data: dict[str, Any]) -> None:
        self._call("POST", "/seed", data)

    def stop(self) -> int:
        """Stop the process and return its exit code."""
        self._session.close()
        if self._process.poll() is None:
            self._process.terminate()
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._folder.cleanup()
        return code

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _wait_ready(
    process: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str], ready_file: Path
) -> dict[str, Any]:
    deadline = time.monotonic() + _START_SECONDS
    while not ready_file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            message = (Path(folder.name) / "errors").read_text(encoding="utf-8", errors="replace")
            folder.cleanup()
            raise RuntimeError(f"the sandbox did not start: {message}")
        time.sleep(0.02)
    ready: dict[str, Any] = json.loads(ready_file.read_text(encoding="utf-8"))
    return ready
