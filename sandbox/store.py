# SPDX-License-Identifier: GPL-3.0-or-later
"""State of the sandbox: documents and counters in SQLite, contents (blobs) in a folder."""

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
    """A stored content: hex digests and size in bytes."""

    sha256: str
    sha1: str
    md5: str
    size: int


class _Digests:
    """The three digests that the servers show, computed in a single pass."""

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
    """Contents by their SHA-256, as files; equal contents are stored only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Return the path of the content's file, which exists only if the content was stored."""
        return self._folder / sha256[:2] / sha256

    def read(self, sha256: str) -> bytes:
        return self.path(sha256).read_bytes()

    def put(self, data: bytes) -> Blob:
        """Store a content that is in memory."""
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
        """Store a content of any size chunk by chunk; an interrupted stream leaves nothing."""
        digests = _Digests()
        with self._incoming() as incoming:
            async for chunk in chunks:
                digests.update(chunk)
                incoming.write(chunk)
            return self._keep(incoming, digests.blob())

    @contextlib.contextmanager
    def _incoming(self) -> Iterator[IO[bytes]]:
        """Provide a temporary file that is deleted unless it was stored."""
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
    """Snapshot of a store: rows of its tables, and the SHA-256 of its contents."""

    documents: list[tuple[str, str, str]]
    counters: list[tuple[str, int]]
    contents: frozenset[str]


NOTHING = Snapshot([], [], frozenset())


class Store:
    """Documents by (kind, key), persistent counters and blobs.

    `kind` has the format `service.kind`, for example `ci.build`. Documents are JSON objects.
    Reading returns a new copy; a change is stored by `put`. With a path, the state survives a
    restart.
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
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS documents"
            " (kind TEXT, key TEXT, doc TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID"
        )
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER)"
        )

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Group changes into a transaction (all or nothing, and faster).

        Transactions may be nested, but must not span an `await`.
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
        """Delete a document; return true if it existed."""
        return (
            self._db.execute("DELETE FROM documents WHERE kind=? AND key=?", (kind, key)).rowcount
            > 0
        )

    def keys(self, kind: str, prefix: str = "") -> list[str]:
        """Return the keys in order (by code point)."""
        rows = self._db.execute(
            "SELECT key FROM documents WHERE kind=? AND key>=? AND key<? ORDER BY key",
            (kind, prefix, prefix + _LAST_CHARACTER),
        )
        return [row[0] for row in rows]

    def items(self, kind: str, prefix: str = "") -> list[tuple[str, dict[str, Any]]]:
        """Return (key, document) pairs in the order of the keys (by code point)."""
        rows = self._db.execute(
            "SELECT key, doc FROM documents WHERE kind=? AND key>=? AND key<? ORDER BY key",
            (kind, prefix, prefix + _LAST_CHARACTER),
        )
        return [(row[0], _load(row[1])) for row in rows]

    def values(self, kind: str, prefix: str = "") -> list[dict[str, Any]]:
        """Return documents in the order of their keys (by code point)."""
        return [doc for _key, doc in self.items(kind, prefix)]

    def mentioning(self, kind: str, text: str) -> list[tuple[str, dict[str, Any]]]:
        """Return (key, document) pairs whose documents contain a string as a whole value or name.

        Other documents are not parsed.
        """
        rows = self._db.execute(
            "SELECT key, doc FROM documents WHERE kind=? AND instr(doc, ?) > 0 ORDER BY key",
            (kind, json.dumps(text)),
        )
        return [(row[0], _load(row[1])) for row in rows]

    def next_id(self, name: str) -> int:
        """Return 1, 2, 3, ... per name; the counter survives a restart."""
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
        self.restore(NOTHING)

    def snapshot(self) -> Snapshot:
        """Return a snapshot for `restore`, valid for this store while it still has the contents."""
        documents = self._db.execute("SELECT kind, key, doc FROM documents").fetchall()
        counters = self._db.execute("SELECT name, value FROM counters").fetchall()
        return Snapshot(documents, counters, self.blobs.names())

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the state of the snapshot."""
        with self.transaction():
            self._db.execute("DELETE FROM documents")
            self._db.execute("DELETE FROM counters")
            self._db.executemany("INSERT INTO documents VALUES (?, ?, ?)", snapshot.documents)
            self._db.executemany("INSERT INTO counters VALUES (?, ?)", snapshot.counters)
        self.blobs.keep(snapshot.contents)

    def close(self) -> None:
        self._db.close()
        if self._temporary is not None:
            self._temporary.cleanup()


def _load(text: str) -> dict[str, Any]:
    doc: dict[str, Any] = json.loads(text)
    return doc
