# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the last lines of a console log, while the build writes it."""

from __future__ import annotations

from collections import deque

from ...core.errors import ToolchainError
from ...core.http.transport import Transport
from ...core.secret import hidden
from .records import number_of

#: Maximum length of a stored line in bytes. It limits the memory for a log without line breaks.
_LONGEST_LINE = 1 << 16


class BuildLog:
    """The last lines of a build's console log.

    Server facts [ci-13]: `progressiveText` returns the next offset in `X-Text-Size`. Offsets count
    bytes of the raw log, and an offset beyond the end restarts at 0.

    :param path: path of the build below the URL of the server
    :param keep: maximum number of lines to store
    """

    def __init__(self, server: Transport, path: str, keep: int) -> None:
        self._server, self._path = server, path
        self._lines: deque[bytes] = deque(maxlen=keep)
        self._keep, self._partial, self._offset = keep, b"", 0
        self.error: ToolchainError | None = None

    def read(self, patience: float | None = None) -> None:
        """Read the lines that the build has added. An error is stored in `error`, not raised.

        :param patience: maximum seconds to wait for the server
        """
        self._read("logText/progressiveText", {"start": self._offset}, patience)

    def read_to_end(self) -> None:
        """Read the remaining lines of a finished build.

        If the server rejects `progressiveText`, read the whole log from `consoleText`.
        """
        self.read()
        if self.error is not None and self.error.status is not None:
            self._start_again()
            self._read("consoleText", {})

    def lines(self) -> list[str]:
        found = [*self._lines, self._partial] if self._partial else list(self._lines)
        last = found[-self._keep :]
        return [line.decode("utf-8", errors="replace").rstrip("\r") for line in last]

    def last_words(self) -> str:
        """Return the last line that is neither empty nor `Finished: <result>`, or ""."""
        lines = (line.strip() for line in reversed(self.lines()))
        return next((line for line in lines if line and not line.startswith("Finished: ")), "")

    def _read(self, name: str, query: dict[str, int], patience: float | None = None) -> None:
        before, self.error = (self._lines.copy(), self._partial), None
        try:
            self._stream(f"{self._path}/{name}", query, patience)
        except ToolchainError as error:
            (self._lines, self._partial), self.error = before, error  # the offset is unchanged

    def _stream(self, path: str, query: dict[str, int], patience: float | None) -> None:
        purpose = "reading the console log"
        with self._server.stream(purpose, path, query=query, patience=patience) as response:
            size = response.headers.get("X-Text-Size", "")
            following = max(0, number_of(size) or 0)
            if 0 < following == self._offset:
                return  # the log has not grown
            if self._offset == 0 or following < self._offset:
                self._start_again()
            for block in response.iter_content():
                self._append(block)
            self._offset = following

    def _start_again(self) -> None:
        self._lines.clear()
        self._partial, self._offset = b"", 0

    def _append(self, block: bytes) -> None:
        *lines, rest = (self._partial + block).split(b"\n")
        self._lines.extend(lines)
        if len(rest) > _LONGEST_LINE:  # mask before cutting: half a secret would not be found
            text = hidden.mask(rest.decode("utf-8", "surrogateescape"))
            rest = text.encode("utf-8", "surrogateescape")[-_LONGEST_LINE:]
        self._partial = rest
