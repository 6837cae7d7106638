# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the files of a report atomically [C9]."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .. import collection
from . import page, texts
from .contents import Contents

#: Maximum number of runs in `history.json`.
MAX_RUNS = 365
_HISTORY = "history.json"
_PLAN = "plan.json"
#: In the folder while a run is under way. It stays there if the run is interrupted.
RUNNING = "running"
_PLAYBOOKS = collection.ROOT / "playbooks"


def resolved(path: str, variables: Mapping[str, Any]) -> Path:
    """Return the absolute path for a path.

    Relative paths start in the folder of the playbook, or in the working directory for a playbook
    of the collection [C1.6].

    :param variables: variables of the task, with `playbook_dir`
    """
    playbooks = Path(str(variables.get("playbook_dir", "."))).resolve()
    start = Path.cwd() if playbooks == _PLAYBOOKS else playbooks
    return start / Path(path).expanduser()


def is_path(value: Any) -> bool:
    """Return whether the value of a variable can be a path: a string or a number."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def is_in_collection(folder: Path) -> bool:
    """Return whether a folder is in the installed collection, or in `playbooks` of a checkout.

    `playbook_dir` is such a folder in a playbook that imports a playbook of the collection.
    """
    installed = _PLAYBOOKS.parent if (_PLAYBOOKS.parent / "MANIFEST.json").exists() else _PLAYBOOKS
    return folder.resolve().is_relative_to(installed)


def problem(folder: Path) -> str:
    """Create the folder of a report. Return an error message if it is not writable, else ""."""
    if is_in_collection(folder):
        return (
            f"Cannot write the report to {folder}: it is in the installed collection. Use a folder"
            " of your own: in an imported playbook use inventory_dir instead of playbook_dir."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return (
            f"Cannot write the report to {folder}: {error.strerror}. Use a folder that this"
            " account can write to."
        )


def write(
    folder: Path,
    contents: Contents,
    plan: Mapping[str, Any] | None = None,
    commands: Mapping[str, str] | None = None,
) -> list[str]:
    """Write all files of a report, and return warnings. Raises OSError for a failed write.

    :param contents: result of `Contents.since`
    :param plan: sealed plan of the run
    :param commands: the commands that the page shows
    """
    if is_in_collection(folder):
        raise OSError(errno.EPERM, "it is in the installed collection")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        history, warnings = _history(folder)
        run = contents.as_json()
        history.append({key: run[key] for key in ("finished", "playbook", "check", "counts")})
        history = history[-MAX_RUNS:]
        _replace(folder / "report.json", _chunks(run))
        _replace(folder / "report.xml", texts.junit(contents))
        _replace(folder / "report.md", texts.markdown(contents))
        _replace(folder / "report.html", page.html(contents, history, commands))
        _replace(folder / _HISTORY, _json(history))
        if plan is not None:
            _replace(folder / _PLAN, _json(plan))
        (folder / RUNNING).unlink(missing_ok=True)
    return warnings


def begin(folder: Path, *, seals: bool = False) -> None:
    """Mark the report of an earlier run as outdated, because this run may end before it writes one.

    :param seals: this run makes a sealed plan, so that of an earlier run is removed
    """
    _replace(folder / RUNNING, "")
    if seals:
        (folder / _PLAN).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder, because concurrent runs would overwrite each other's history."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _history(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the previous runs, and warnings. An invalid history file is renamed."""
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
    return [], [
        f"{file} is not a history of reports: it was renamed to {aside}, and a new file was created"
    ]


def _is_run(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("counts"), dict):
        return False
    numbers = (entry["counts"].get(name) for name in ("ok", "drift", "failed"))
    return isinstance(entry.get("finished"), str) and all(
        isinstance(number, int) for number in numbers
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1, default=str) + "\n"


def _chunks(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report as JSON in parts, with a line for each finding.

    The whole text of many findings would take as much memory as the findings.
    """
    for number, (key, value) in enumerate(report.items()):
        yield f"{',' if number else '{'}\n {json.dumps(key)}: "
        if not isinstance(value, list):
            yield _line(value)
            continue
        yield "["
        for place, item in enumerate(value):
            yield f"{',' if place else ''}\n  {_line(item)}"
        yield "\n ]" if value else "]"
    yield "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _replace(file: Path, text: str | Iterable[str]) -> None:
    """Replace a file atomically, with the default permissions of the umask.

    :param text: the content, or its parts
    """
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with open(handle, "w", encoding="utf-8", errors="replace") as stream:
            stream.writelines([text] if isinstance(text, str) else text)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0o077)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, file)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
