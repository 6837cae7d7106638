# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache the results of lookups during a play, for all tasks and hosts [C9].

The cache is in the temporary folder of the run, because Ansible runs each task in a separate
process. Only the user can read the folder, and Ansible removes it at the end.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible import constants


def cached(key: Mapping[str, Any], query: Callable[[], Sequence[Any]]) -> list[Any]:
    """Return the result of a query, from the cache if possible.

    Concurrent calls with the same key wait for the first call.

    :param key: all values that identify the query: service, address, login and options
    :param query: computes the result
    """
    text = json.dumps(key, sort_keys=True, default=str)
    file = _folder() / hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with _locked(file.with_suffix(".lock")) as is_valid:
        with suppress(FileNotFoundError):
            known: list[Any] = json.loads(file.read_text("utf-8"))
            return known
        result = list(query())
        if is_valid():
            _store(file, json.dumps(result))
    return result


def forget() -> None:
    """Clear the whole cache, because a write to a service may change results of other services."""
    shutil.rmtree(_folder(), ignore_errors=True)


def _folder() -> Path:
    return Path(constants.DEFAULT_LOCAL_TMP) / "toolchain-lookups"


@contextmanager
def _locked(file: Path) -> Iterator[Callable[[], bool]]:
    """Lock a query, and yield a function that returns whether its result may be cached.

    The result must not be cached if the cache was cleared during the query.

    :param file: lock file
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield lambda: file.exists() and file.stat().st_ino == os.fstat(handle).st_ino
    finally:
        os.close(handle)


def _store(file: Path, text: str) -> None:
    """Store a result in the cache, unless the cache has been cleared."""
    with suppress(FileNotFoundError):
        handle, name = tempfile.mkstemp(dir=file.parent)
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, file)
