# SPDX-License-Identifier: GPL-3.0-or-later
"""State of the sandbox: documents and counters in SQLite, file contents (blobs) in a folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

_CHUNK = 1024 * 1024
_LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True)
class Blob:
    """A stored content: digests in hex, and size in bytes."""

    sha256: str
    sha1: str
    md5: str
    size: int


class _Digests:
    """Compute the three digests that servers report, in a single pass."""

    def __init__(self) -> None:
        self._sha256 = hashlib.sha256()
        self._sha1 = hashlib.sha1(usedforsecurity=False)
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._size = 0

    def update(self, data: bytes) -> None:
        self._sha256.update(data)
        self._sha1.update(data)
        self._md5.update(data)
        self._size += len(data)

    def blob(self) -> Blob:
        return Blob(
            self._sha256.hexdigest(), self._sha1.hexdigest(), self._md5.hexdigest(), self._size
        )


class Blobs:
    """File contents by their SHA-256. Equal contents are stored once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Return the path for a content. The file exists if the content has been stored."""
        return self._folder / sha256[:2] / sha256

    def read(self, sha256: str) -> bytes:
        return self.path(sha256).read_bytes()

    def put(self, data: bytes) -> Blob:
        """Store bytes."""
        digests = _Digests()
        digests.update(data)
        blob = digests.blob()
        target = self.path(blob.sha256)
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
        return blob

    def put_file(self, file: IO[bytes]) -> Blob:
        """Store the rest of an open file."""
        digests = _Digests()
        with self._incoming() as incoming:
            while chunk := file.read(_CHUNK):
                digests.update(chunk)
                incoming.write(chunk)
            return self._keep(incoming, digests.blob())

    async def put_stream(self, chunks: AsyncIterator[bytes]) -> Blob:
        """Store the chunks of a stream. An interrupted stream leaves nothing behind."""
        digests = _Digests()
        with self._incoming() as incoming:
            async for chunk in chunks:
                digests.update(chunk)
                incoming.write(chunk)
            return self._keep(incoming, digests.blob())

    @contextlib.contextmanager
    def _incoming(self) -> Iterator[IO[bytes]]:
        """Create a temporary file. It is deleted at the end unless `_keep()` has moved it."""
        with tempfile.NamedTemporaryFile(
            dir=self._folder, prefix="incoming-", delete=False
        ) as file:
            try:
                yield file
            finally:
                Path(file.name).unlink(missing_ok=True)

    def _keep(self, incoming: IO[bytes], blob: Blob) -> Blob:
        incoming.flush()
        target = self.path(blob.sha256)
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            os.replace(incoming.name, target)
        return blob

    def names(self) -> frozenset[str]:
        """Return the SHA-256 of all contents."""
        return frozenset(path.name for path in self._folder.glob("*/*"))

    def keep(self, names: frozenset[str]) -> None:
        """Remove all contents except `names`."""
        for name in self.names() - names:
            self.path(name).unlink()
        for entry in self._folder.iterdir():
            if not entry.is_dir():
                entry.unlink()


@dataclass(frozen=True)
class Snapshot:
    """Snapshot of a store: a copy of its database, and the SHA-256 digests of its blobs."""

    database: sqlite3.Connection
    contents: frozenset[str]


class Store:
    """Documents, counters and blobs.

    A document is a JSON object with a kind, such as `ci.build`, and a key. Reads return copies;
    store changes with `put()`.

    :param path: file of the database, whose state survives a restart; None means in memory
    """

    def __init__(self, path: str | None) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if path is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="sandbox-")
            folder = Path(self._temporary.name)
        else:
            folder = Path(path + ".blobs")
        self.blobs = Blobs(folder)
        self._depth = 0
        self._db = sqlite3.connect(
            path or ":memory:", isolation_level=None, check_same_thread=False
        )
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        _create_tables(self._db)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Group changes into a transaction, which is rolled back after an exception.

        Transactions may be nested, but must not contain an `await`.
        """
        if self._depth == 0:
            self._db.execute("BEGIN")
        self._depth += 1
        try:
            yield
        except BaseException:
            self._depth -= 1
            if self._depth == 0:
                self._db.execute("ROLLBACK")
            raise
        self._depth -= 1
        if self._depth == 0:
            self._db.execute("COMMIT")

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        row = self._db.execute(
            "SELECT doc FROM documents WHERE kind=? AND key=?", (kind, key)
        ).fetchone()
        return None if row is None else _load(row[0])

    def put(self, kind: str, key: str, doc: dict[str, Any]) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", (kind, key, json.dumps(doc))
        )

    def delete(self, kind: str, key: str) -> bool:
        """Delete a document. Return whether it existed."""
        return (
            self._db.execute("DELETE FROM documents WHERE kind=? AND key=?", (kind, key)).rowcount
            > 0
        )

    def keys(self, kind: str, prefix: str = "") -> list[str]:
        """Return the keys that begin with `prefix`, sorted by code point."""
        rows = self._db.execute(
            "SELECT key FROM documents WHERE kind=? AND key>=? AND key<? ORDER BY key",
            (kind, prefix, prefix + _LAST_CHARACTER),
        )
        return [row[0] for row in rows]

    def items(self, kind: str, prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
        """Return pairs of key and document, sorted by key."""
        rows = self._db.execute(
            "SELECT key, doc FROM documents WHERE kind=? AND key>=? AND key<? ORDER BY key",
            (kind, prefix, prefix + _LAST_CHARACTER),
        )
        return [(row[0], _load(row[1])) for row in rows]

    def values(self, kind: str, prefix: str = "") -> list[dict[str, Any]]:
        """Return documents, sorted by key."""
        return [doc for _key, doc in self.items(kind, prefix)]

    def mentioning(self, kind: str, text: str) -> list[tuple[str, dict[str, Any]]]:
        """Return pairs of key and document for documents that contain a string.

        The string must be a complete value or member name. Other documents are not parsed.
        """
        rows = self._db.execute(
            "SELECT key, doc FROM documents WHERE kind=? AND instr(doc, ?) > 0 ORDER BY key",
            (kind, json.dumps(text)),
        )
        return [(row[0], _load(row[1])) for row in rows]

    def next_id(self, name: str) -> int:
        """Return the next number of a named counter, beginning with 1."""
        row = self._db.execute(
            "INSERT INTO counters VALUES (?, 1)"
            " ON CONFLICT(name) DO UPDATE SET value=value+1 RETURNING value",
            (name,),
        ).fetchone()
        return int(row[0])

    def is_empty(self) -> bool:
        return self._db.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None

    def clear(self) -> None:
        """Delete all documents, counters and blobs."""
        with self.transaction():
            self._db.execute("DELETE FROM documents")
            self._db.execute("DELETE FROM counters")
        self.blobs.keep(frozenset())

    def snapshot(self) -> Snapshot:
        """Return a snapshot for `restore()`. It contains no blobs, so this store must keep them."""
        database = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.backup(database)
        return Snapshot(database, self.blobs.names())

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot. Blobs that it does not contain are deleted."""
        snapshot.database.backup(self._db)  # copies pages, which is faster than to insert rows
        self.blobs.keep(snapshot.contents)

    def close(self) -> None:
        self._db.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def _create_tables(database: sqlite3.Connection) -> None:
    database.execute(
        "CREATE TABLE IF NOT EXISTS documents"
        " (kind TEXT, key TEXT, doc TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID"
    )
    database.execute("CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER)")


def _load(text: str) -> dict[str, Any]:
    doc: dict[str, Any] = json.loads(text)
    return doc
