# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the last lines of a build's console log in chunks while it grows."""

from __future__ import annotations

from collections import deque

from ...core.errors import ToolchainError
from ...core.http.transport import Transport
from ...core.secret import hidden
from .records import number_of

#: Maximum length of a kept line in bytes: a log without line breaks must not fill the memory.
_LONGEST_LINE = 1 << 16


class BuildLog:
    """The last `keep` lines of the log of the build at `path`.

    Server facts [ci-13]: `progressiveText` returns the next offset in `X-Text-Size`. Offsets count
    bytes of the raw log, and an offset beyond the end restarts at 0.
    """

    def __init__(self, server: Transport, path: str, keep: int) -> None:
        self._server, self._path = server, path
        self._lines: deque[bytes] = deque(maxlen=keep)
        self._keep, self._rest, self._offset = keep, b"", 0
        self.error: ToolchainError | None = None

    def read(self, patience: float | None = None) -> None:
        """Read new lines; the reason for a failure is kept in `error`.

        :param patience: maximum seconds to wait for the server
        """
        query = {"start": self._offset}
        try:
            self._take_from("logText/progressiveText", query, patience)
        except ToolchainError as error:
            self.error = error
        else:
            self.error = None

    def read_to_end(self) -> None:
        """Read the rest of the log of a finished build; the whole log if chunks cannot be read."""
        self.read()
        if self.error is not None and self.error.status is not None:
            self._start_again()
            try:
                self._take_from("consoleText", {})
            except ToolchainError as error:
                self.error = error
            else:
                self.error = None

    def lines(self) -> list[str]:
        found = [*self._lines, self._rest] if self._rest else list(self._lines)
        last = found[-self._keep :]
        return [line.decode("utf-8", errors="replace").rstrip("\r") for line in last]

    def last_words(self) -> str:
        """Return the last line that is not empty or the result; "" if there is none."""
        lines = (line.strip() for line in reversed(self.lines()))
        return next((line for line in lines if line and not line.startswith("Finished: ")), "")

    def _take_from(self, name: str, query: dict[str, int], patience: float | None = None) -> None:
        before = self._lines.copy(), self._rest
        try:
            self._stream(f"{self._path}/{name}", query, patience)
        except ToolchainError:
            self._lines, self._rest = before  # the offset has not moved: this chunk is read again
            raise

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
                self._take(block)
            self._offset = following

    def _start_again(self) -> None:
        self._lines.clear()
        self._rest, self._offset = b"", 0

    def _take(self, block: bytes) -> None:
        *lines, rest = (self._rest + block).split(b"\n")
        self._lines.extend(lines)
        if len(rest) > _LONGEST_LINE:  # mask first: half of a secret at the cut would remain
            text = hidden.mask(rest.decode("utf-8", "surrogateescape"))
            rest = text.encode("utf-8", "surrogateescape")[-_LONGEST_LINE:]
        self._rest = rest
