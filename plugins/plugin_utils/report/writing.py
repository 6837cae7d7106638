# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a report: each is whole or not there, whoever reads the folder meanwhile [C9]."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import page, texts
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report.contents import Contents

#: So many runs C(history.json) remembers.
MOST_RUNS = 365
_HISTORY = "history.json"


def write(folder: Path, contents: Contents) -> list[str]:
    """Write all files of a report; what has to be said about it, in sentences."""
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        history, warnings = _history(folder)
        run = contents.as_json()
        history.append({key: run[key] for key in ("finished", "playbook", "check", "counts")})
        history = history[-MOST_RUNS:]
        _replace(folder / "report.json", _json(run))
        _replace(folder / "report.xml", texts.junit(contents))
        _replace(folder / "report.md", texts.markdown(contents))
        _replace(folder / "report.html", page.html(contents, history))
        _replace(folder / _HISTORY, _json(history))
    return warnings


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Two runs that end at once write one after the other, so that the history has both."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _history(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The runs so far. A file that cannot be read is put aside, not written over."""
    file = folder / _HISTORY
    try:
        history = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return [], []
    except ValueError:
        history = None
    if isinstance(history, list) and all(map(_is_run, history)):
        return history, []
    aside = folder / f"{_HISTORY}.unreadable"
    file.replace(aside)
    return [], [f"{file} is no history of reports: it is now {aside}, and a new one begins"]


def _is_run(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("counts"), dict):
        return False
    numbers = (entry["counts"].get(name) for name in ("ok", "drift", "failed"))
    return isinstance(entry.get("finished"), str) and all(isinstance(one, int) for one in numbers)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str) + "\n"


def _replace(file: Path, text: str) -> None:
    """Write a file beside its place and move it there, readable as the user's other new files."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, file)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
