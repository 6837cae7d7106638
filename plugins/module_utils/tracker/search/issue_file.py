# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the issues of a search to a file as JSON lines or CSV while they are read."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from typing import IO, Any

from ...core.errors import invalid
from ...core.files import atomic_write, make_folders
from ...core.plan import Plan
from ...core.plan import plan as compared
from ..pagination import Issue

_JSON, _CSV = (".jsonl", ".ndjson"), (".csv",)
_BLOCK = 1024 * 1024
#: Maximum size in bytes of a temporary file in memory; larger ones are on disk.
_IN_MEMORY = 8 * 1024 * 1024
#: Members that represent an object in a column, in this order: for people their display name.
_SHOWN = ("displayName", "name", "value", "key", "id")


class IssueFile:
    """A file of issues, which is replaced as a whole. Raises `invalid` for an unsuitable path.

    :param columns: names of the fields in a CSV file, which follow the key
    """

    def __init__(self, path: str, columns: list[str] | None) -> None:
        self.path = path
        self._ending = os.path.splitext(path)[1].lower()
        if self._ending not in (*_JSON, *_CSV):
            raise invalid(f"dest is '{path}': its name must end with .jsonl, .ndjson or .csv")
        if self._ending in _CSV and not _are_columns(columns):
            raise invalid("fields must list each column of a CSV file by name")
        if os.path.lexists(path) and not os.path.isfile(path):
            raise invalid(f"dest is '{path}', which is not a file")
        self._columns = [name for name in columns or [] if name != "key"]
        # The temporary file has no name, so an interrupted task leaves nothing behind.
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
        self._digest = hashlib.sha256()
        if self._ending in _CSV:
            self._write_row(["key", *self._columns])

    def add(self, issue: Issue) -> None:
        """Add a line for an issue."""
        if self._ending in _CSV:
            fields = issue.get("fields")
            fields = fields if isinstance(fields, Mapping) else {}
            cells = [_cell(fields.get(name)) for name in self._columns]
            self._write_row([str(issue.get("key", "")), *cells])
        else:
            self._write(json.dumps(issue, ensure_ascii=False) + "\n")

    def _write_row(self, cells: list[str]) -> None:
        row = io.StringIO()
        csv.writer(row, lineterminator="\n").writerow(cells)
        self._write(row.getvalue())

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._digest.update(data)
        self._spool.write(data)

    def plan(self) -> Plan:
        wanted = {self.path: {"size": self._spool.tell(), "sha256": self._digest.hexdigest()}}
        there = _described(self.path)
        found = compared(None if there is None else {self.path: there}, wanted)
        if not found.changed:
            self._spool.close()
        return found

    def save(self) -> None:
        """Replace the file with the collected content."""
        make_folders(os.path.dirname(self.path) or ".")
        self._spool.seek(0)
        with atomic_write(self.path) as file:
            shutil.copyfileobj(self._spool, file, _BLOCK)
        self._spool.close()


def _are_columns(columns: list[str] | None) -> bool:
    return bool(columns) and not any(name.startswith(("*", "-")) for name in columns or [])


def _described(path: str) -> dict[str, Any] | None:
    """Return size and digest of a file, or None if it does not exist."""
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            digest, size = hashlib.sha256(), 0
            for block in iter(lambda: file.read(_BLOCK), b""):
                digest.update(block)
                size += len(block)
            return {"size": size, "sha256": digest.hexdigest()}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise invalid(f"dest is '{path}', but cannot be read: {error.strerror}") from None


def _cell(value: Any) -> str:
    """Return a value as a CSV cell: objects by name, lists separated by commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        found = next((value[name] for name in _SHOWN if value.get(name) is not None), None)
        return json.dumps(value, ensure_ascii=False) if found is None else _cell(found)
    if isinstance(value, list):
        return ", ".join(_cell(entry) for entry in value)
    return str(value)
