# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the console log of a build while the build is running."""

from __future__ import annotations

import re
from collections import deque

from ...core.errors import ToolchainError
from ...core.http.transport import Transport
from ...core.secret import hidden
from .records import number_of

#: Maximum length of a stored line in bytes. It limits the memory for a log without line breaks.
_LONGEST_LINE = 1 << 16
#: A note of the server, and the beginning of a note at the end of a chunk [ci-13].
_NOTE = re.compile(rb"\x1b\[8mha:[A-Za-z0-9+/=]*\x1b\[0m")
_OPEN_NOTE = re.compile(rb"\x1b(?:\[8mha:[A-Za-z0-9+/=]*(?:\x1b(?:\[0?)?)?|\[?8?m?h?a?)\Z")
#: Lines that report an error of the server, a build tool or a program.
_ERROR_LINE = re.compile(
    rb"(?:^|[\s\[])(?:ERROR|FATAL)[\]:]|^[\W\dTZ]*(?:ERROR|FATAL)\b|\bBUILD FAIL(?:URE|ED)\b"
    rb"|^(?:[^\s:]*\bException|\w*Error):\s|(?:^|\s)(?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)\b"
)


def without_notes(text: bytes) -> bytes:
    """Return a part of a log without the notes of the server."""
    return _OPEN_NOTE.sub(b"", _NOTE.sub(b"", text))


class BuildLog:
    """The last lines of a build's console log, and the first line that reports an error.

    Server facts [ci-13]: `progressiveText` returns the next offset in `X-Text-Size`. Offsets count
    bytes of the raw log, and an offset beyond the end restarts at 0. The text contains notes.

    :param path: path of the build below the URL of the server
    :param keep: maximum number of lines to store
    """

    def __init__(self, server: Transport, path: str, keep: int) -> None:
        self._server, self._path = server, path
        self._lines: deque[bytes] = deque(maxlen=keep)
        self._keep, self._partial, self._offset = keep, b"", 0
        self._error_line = b""
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
        partial = without_notes(self._partial)
        found = [*self._lines, partial] if partial else list(self._lines)
        return [_text(line) for line in found[-self._keep :]]

    def reason(self) -> str:
        """Return the first line that reports an error, or the last line; "" without lines."""
        return _text(self._error_line).strip() or self.last_words()

    def last_words(self) -> str:
        """Return the last line that is neither empty nor `Finished: <result>`, or ""."""
        lines = (line.strip() for line in reversed(self.lines()))
        return next((line for line in lines if line and not line.startswith("Finished: ")), "")

    def _read(self, name: str, query: dict[str, int], patience: float | None = None) -> None:
        before, self.error = (self._lines.copy(), self._partial, self._error_line), None
        purpose, path = "reading the console log", f"{self._path}/{name}"
        try:
            with self._server.stream(purpose, path, query=query, patience=patience) as response:
                following = max(0, number_of(response.headers.get("X-Text-Size", "")) or 0)
                if 0 < following == self._offset:
                    return  # the log has not grown
                if self._offset == 0 or following < self._offset:
                    self._start_again()
                for block in response.iter_content():
                    self._append(block)
                self._offset = following
        except ToolchainError as error:
            self.error = error  # the offset is unchanged
            self._lines, self._partial, self._error_line = before

    def _start_again(self) -> None:
        self._lines.clear()
        self._partial, self._error_line, self._offset = b"", b"", 0

    def _append(self, block: bytes) -> None:
        *lines, rest = _NOTE.sub(b"", self._partial + block).split(b"\n")
        self._lines.extend(lines)
        if not self._error_line:
            self._error_line = next(filter(_ERROR_LINE.search, lines), b"")
        if len(rest) > _LONGEST_LINE:  # mask before cutting: half a secret would not be found
            text = hidden.mask(rest.decode("utf-8", "surrogateescape"))
            rest = text.encode("utf-8", "surrogateescape")[-_LONGEST_LINE:]
        self._partial = rest


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r")
