# SPDX-License-Identifier: GPL-3.0-or-later
"""What lookups asked is kept while a play runs, so that a question costs once, whatever tasks and
hosts ask it [C9].

Ansible runs each task in a process of its own; what they share is the folder that it makes for a
run, which only its user can read, and which it removes at the end.
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


def kept(question: Mapping[str, Any], answer: Callable[[], Sequence[Any]]) -> list[Any]:
    """The answer to a question, asked where it is not known yet. Who asks the same meanwhile waits.

    :param question: all that makes it another question: service, address, login, options
    """
    text = json.dumps(question, sort_keys=True, default=str)
    file = _folder() / hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    with _locked(file.with_suffix(".lock")) as is_valid:
        with suppress(FileNotFoundError):
            known: list[Any] = json.loads(file.read_text("utf-8"))
            return known
        found = list(answer())
        if is_valid():
            _store(file, json.dumps(found))
    return found


def forget() -> None:
    """Forget all that was asked: a module wrote to a service, which may show in others, too."""
    shutil.rmtree(_folder(), ignore_errors=True)


def _folder() -> Path:
    return Path(constants.DEFAULT_LOCAL_TMP) / "toolchain-lookups"


@contextmanager
def _locked(file: Path) -> Iterator[Callable[[], bool]]:
    """Wait until nobody else asks. What it gives tells whether an answer may be kept: not where the
    question was forgotten meanwhile.
    """
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield lambda: file.exists() and file.stat().st_ino == os.fstat(handle).st_ino
    finally:
        os.close(handle)


def _store(file: Path, text: str) -> None:
    """Keep an answer; where its folder has just been forgotten, it is not kept."""
    with suppress(FileNotFoundError):
        handle, name = tempfile.mkstemp(dir=file.parent)
        with open(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(name, file)
