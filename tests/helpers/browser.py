# SPDX-License-Identifier: GPL-3.0-or-later
"""Drive a Chromium page over the pipe of its debugging protocol, without a port or a library."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.helpers import installed

PROGRAM = "chromium-headless-shell"
_SECONDS = 60
_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
#: The browser reads from descriptor 3 and writes to descriptor 4.
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, number in zip(ends, (3, 4)):
    os.dup2(end, number)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A page. `console` lists its errors and warnings, `requests` the addresses it requested.

    :param printed: file with the output of the program
    """

    def __init__(self, reading: int, writing: int, printed: Path) -> None:
        self._reading = open(reading, "rb")  # noqa: SIM115 - closed with the browser
        self._writing = open(writing, "wb")  # noqa: SIM115
        self._printed = printed
        self._ids = itertools.count(1)
        self._session = ""
        self._rest = b""
        self.console: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._reading.close()
        self._writing.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command and return its result. Record the page events that arrive meanwhile."""
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        try:
            self._writing.write(json.dumps(message).encode() + b"\0")
            self._writing.flush()
        except BrokenPipeError:
            raise self._end() from None
        while True:
            response = self._next()
            if response.get("id") == number:
                assert "error" not in response, response
                result: dict[str, Any] = response["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._reading.fileno(), 1 << 16)
            if not more:
                raise self._end()
            self._rest += more
        text, _zero, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _end(self) -> RuntimeError:
        printed = self._printed.read_text("utf-8", errors="replace")
        return RuntimeError(f"The browser has ended. It printed: {printed}")

    def _note(self, method: str, event: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Log.entryAdded") or (
            method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning")
        ):
            self.console.append(json.dumps(event))

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page and return its value."""
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def open(self, file: Path, *, width: int = 1280, scheme: str = "light") -> None:
        """Open a file and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        self.call("Page.navigate", url=file.as_uri())
        self.run(
            "new Promise((done) => document.readyState === 'complete' ? done()"
            " : addEventListener('load', done))"
        )

    def picture(self, file: Path) -> None:
        """Save a screenshot of the visible part of the page."""
        taken = self.call("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(taken["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """Run Chromium until the block ends."""
    program = installed.program(PROGRAM)
    assert program is not None, f"{PROGRAM} is not there"
    to_browser, from_browser = os.pipe(), os.pipe()
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-browser-") as folder,
        open(Path(folder, "printed"), "w+b") as printed,
    ):
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", _START, str(to_browser[0]), str(from_browser[1])),
                *(str(program), *_OPTIONS, f"--user-data-dir={folder}"),
            ],
            pass_fds=(to_browser[0], from_browser[1]),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            env={**os.environ, **installed.environment(), "HOME": folder},
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        driven: Browser | None = None
        try:
            driven = Browser(from_browser[0], to_browser[1], Path(printed.name))
            yield driven
        finally:
            if driven is not None:
                driven.close()
            process.terminate()
            process.wait(timeout=_SECONDS)
