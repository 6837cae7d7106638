# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit the files of a desired state: all edits are computed before the first file is written."""

from __future__ import annotations

import copy
import functools
import os
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...module_utils._lib.core.errors import ToolchainError, conflict
from ...module_utils._lib.core.files import (
    atomic_write,
    make_folders,
    open_regular,
    remove_leftovers,
    safe_paths,
)
from . import yaml_edits
from .desired_schema import KEY, schema_of, violations_of
from .desired_state import ENVIRONMENTS, files_in, overlay
from .masked_patch import patch

_MAX_NAMED = 10
_GIT = ("git", "-c", "core.fsmonitor=false")


@dataclass
class EditedFile:
    """A YAML file of a service.

    :param of_environment: whether the file has the differences of the environment
    :param values: values of the file, with the edits so far
    """

    path: Path
    service: str
    of_environment: bool
    text: str
    values: dict[str, Any]


@dataclass
class EntryPlace:
    """An entry of a list in a file."""

    file: EditedFile
    kind: str
    index: int

    @property
    def entry(self) -> dict[str, Any]:
        found: dict[str, Any] = self.file.values[self.kind][self.index]
        return found


@dataclass
class FolderEdits:
    """The files of a folder with the edits that are to be written.

    :param environment: name of the environment, or `None`
    :param into_environment: write new entries and differences into the environment
    :param others: text of other files by path, `None` for a file to remove; the path of a file
        to copy
    :param touched: files of the edits since `begin`
    """

    folder: Path
    environment: str | None
    into_environment: bool
    files: list[EditedFile] = field(default_factory=list)
    others: dict[Path, Path | str | None] = field(default_factory=dict)
    touched: dict[Path, None] = field(default_factory=dict)
    _saved: list[tuple[Any, Any]] = field(default_factory=list)

    @classmethod
    def read(
        cls, folder: Path, environment: str | None, *, into_environment: bool = False
    ) -> FolderEdits:
        """Read all files of a folder. Raises `ToolchainError`."""
        if not folder.is_dir():
            raise ToolchainError("invalid", f"desired_state_folder: {folder} is not a folder")
        folder = folder.resolve()
        found = cls(folder, environment, into_environment)
        errors: list[str] = []
        places = [(folder, False)]
        if environment is not None:
            places.append((overlay(folder, environment), True))
        for place, of_environment in places:
            for path, service in files_in(folder, place, errors):
                found._add(path, service, of_environment, errors)
        if errors:
            raise ToolchainError("invalid", "; ".join(errors))
        return found

    def _add(self, path: Path, service: str, of_environment: bool, errors: list[str]) -> None:
        shown = path.relative_to(self.folder)
        try:
            text = self.text_of(path) or ""
            wrong = violations_of(text, service)
            values = {} if wrong else yaml_edits.load(text)
        except (yaml_edits.EditError, ToolchainError) as error:
            wrong = [f": {error}"]
        errors += [f"{shown}{each}" for each in wrong]
        if not wrong:
            self.files.append(
                EditedFile(path, service, of_environment, text, copy.deepcopy(values))
            )

    def text_of(self, path: Path) -> str | None:
        """Return the text of a file with the edits so far, or `None` if there is no such file."""
        edited = self.others.get(path)
        if path in self.others and not isinstance(edited, Path):
            return edited
        self._require_inside(path)
        try:
            with open(path, "rb", opener=open_regular) as stream:
                return stream.read().decode("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise ToolchainError("failed", f"cannot read {path}: {reason}") from None

    @functools.cached_property
    def texts_of_others(self) -> list[str]:
        """The texts of the YAML files of other environments, which are not edited."""
        above = self.folder / ENVIRONMENTS
        others = [path for path in above.iterdir() if path.is_dir()] if above.is_dir() else []
        return [
            file.read_bytes().decode("utf-8", "replace")
            for place in others
            if place.name != self.environment
            for file, _service in files_in(self.folder, place, [])
        ]

    def _require_inside(self, path: Path) -> None:
        home, real = os.path.realpath(self.folder), os.path.realpath(path)
        if os.path.normpath(path) != str(path) or not real.startswith(f"{home}{os.sep}"):
            raise ToolchainError("invalid", f"{path} is outside of {home}: change it by hand")
        if path.is_symlink():
            raise ToolchainError("invalid", f"{path} is a symbolic link: change its target by hand")

    def places(self, service: str, kind: str) -> Iterator[EntryPlace]:
        """Yield the entries of a list, those of all environments first."""
        for file in self.files:
            if file.service == service:
                entries = file.values.get(kind)
                for index in range(len(entries) if isinstance(entries, list) else 0):
                    yield EntryPlace(file, kind, index)

    def file_for(self, service: str, kind: str) -> EditedFile:
        """Return the file for a new entry."""
        of_environment = self.into_environment
        own = [
            file
            for file in self.files
            if file.service == service and file.of_environment == of_environment
        ]
        with_list = [file for file in own if isinstance(file.values.get(kind), list)]
        if with_list or own:
            return (with_list or own)[-1]
        home = self.folder
        if self.environment is not None and of_environment:
            home = overlay(self.folder, self.environment)
        file = EditedFile(home / f"{service}.yml", service, of_environment, "---\n", {})
        self.files.append(file)
        return file

    def is_of_environment(self, path: Path) -> bool:
        """Return whether a file is in the folder of the environment."""
        above = self.folder / ENVIRONMENTS / str(self.environment)
        return self.environment is not None and path.is_relative_to(above)

    def shown(self, path: Path) -> str:
        """Return the path of a file below the folder."""
        return path.relative_to(self.folder).as_posix()

    # -- edits

    def begin(self) -> None:
        """Begin the edits of an object."""
        self.touched.clear()
        self._saved.clear()

    def undo(self) -> None:
        """Take back the edits since `begin`."""
        while self._saved:
            container, before = self._saved.pop()
            container.clear()
            container.extend(before) if isinstance(container, list) else container.update(before)

    def _save(self, container: Any) -> None:
        self._saved.append((container, copy.copy(container)))

    def save(self, place: EntryPlace) -> None:
        """Remember an entry before it changes."""
        self._save(place.entry)
        self.touched[place.file.path] = None

    def set(self, place: EntryPlace, option: str, value: Any) -> None:
        """Set an option of an entry."""
        self.save(place)
        place.entry[option] = value

    def add(self, file: EditedFile, kind: str, entry: dict[str, Any]) -> EntryPlace:
        """Append an entry to a list."""
        self.touched[file.path] = None
        self._save(file.values)
        if not isinstance(file.values.get(kind), list):
            file.values[kind] = []
        self._save(file.values[kind])
        file.values[kind].append(entry)
        return EntryPlace(file, kind, len(file.values[kind]) - 1)

    def remove(self, place: EntryPlace) -> None:
        """Remove an entry from its list."""
        self.touched[place.file.path] = None
        self._save(place.file.values[place.kind])
        del place.file.values[place.kind][place.index]

    def put(self, path: Path, text: str | None) -> None:
        """Set the text of another file, or remove it."""
        self.touched[path] = None
        self._save(self.others)
        self.others[path] = text

    def copy(self, path: Path, content: Path) -> None:
        """Copy a file to a new path. Raises `invalid` for a path outside of the folder."""
        self._require_inside(path)
        self.touched[path] = None
        self._save(self.others)
        self.others[path] = content

    # -- results

    def texts(self, paths: Collection[Path] | None = None) -> dict[Path, Path | str | None]:
        """Return the text of each file that changes, or the path of a file to copy.

        Raises `ToolchainError`.

        :param paths: the files to compute, by default all
        """
        found: dict[Path, Path | str | None] = {}
        for file in self.files:
            if paths is not None and file.path not in paths:
                continue
            try:
                text = yaml_edits.edited(file.text, file.values, _keys(file.service))
            except yaml_edits.EditError as error:
                raise ToolchainError("failed", f"cannot edit {file.path}: {error}") from None
            wrong = violations_of(text, file.service)
            if wrong:
                shown = "; ".join(f"{file.path.name}{each}" for each in wrong[:_MAX_NAMED])
                raise ToolchainError("failed", f"the server's state violates the schema: {shown}")
            if text != file.text:
                found[file.path] = text
        others = {
            path: text
            for path, text in self.others.items()
            if isinstance(text, Path) or text != _read(path)
        }
        return {**found, **others}

    def patch(self, texts: Mapping[Path, Path | str | None]) -> str:
        """Return a patch of the folder with masked secrets. Git can apply it without secrets and
        copied files, of which it has only the names.
        """
        return "".join(
            f"Binary files /dev/null and b/{self.shown(path)} differ\n"
            if isinstance(text, Path)
            else patch(self.shown(path), _read(path), text)
            for path, text in texts.items()
        )

    def write(self, texts: Mapping[Path, Path | str | None]) -> None:
        """Write the files, each atomically, with the permissions of the replaced file.

        Temporary files of a run that was killed are removed.
        """
        remove_leftovers(str(self.folder))
        names = [*map(self.shown, texts)]
        at = safe_paths(str(self.folder), names)
        for name, text in zip(names, texts.values(), strict=True):
            if text is None:
                os.unlink(at[name])
                continue
            make_folders(os.path.dirname(at[name]))
            with atomic_write(at[name]) as stream:
                if isinstance(text, Path):
                    with open(text, "rb") as source:
                        shutil.copyfileobj(source, stream)
                else:
                    stream.write(text.encode("utf-8"))


def _keys(service: str) -> set[str]:
    lists = schema_of(service)["properties"].values()
    return {option for properties in lists for option in properties.get(KEY, ())}


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def require_restorable(folder: Path, paths: Collection[Path]) -> None:
    """Raise `conflict` for files that Git could not restore after they are written.

    These are files with changes that are not committed, files that Git ignores, and files whose
    changes Git does not look for. Without a repository of Git there are none.
    """
    if not any(
        (above / ".git").exists() for above in (folder.resolve(), *folder.resolve().parents)
    ):
        return
    there = [str(path) for path in paths if os.path.lexists(path)]
    if not there:
        return
    options = ("--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--")
    status = [(row[:2], row[3:]) for row in _git(folder, "status", *options, *there)]
    # a lower-case letter is assume-unchanged, S is skip-worktree
    watched = _git(folder, "ls-files", "-v", "-z", "--", *there)
    hidden = [row[2:] for row in watched if row[0].islower() or row[0] == "S"]
    _refuse(
        folder,
        "has uncommitted changes in",
        [name for kind, name in status if kind != "!!"],
        "commit them",
    )
    _refuse(
        folder,
        "has files that Git ignores:",
        [name for kind, name in status if kind == "!!"],
        "add them to Git",
    )
    _refuse(
        folder,
        "has files whose changes Git does not show:",
        hidden,
        "reset skip-worktree and assume-unchanged with git update-index",
    )


def _refuse(folder: Path, problem: str, names: Sequence[str], cure: str) -> None:
    if names:
        shown = ", ".join(names[:_MAX_NAMED])
        raise conflict(f"{folder} {problem} {shown}: {cure}, or set adopt_force: true")


def _git(folder: Path, *arguments: str) -> list[str]:
    """Return the rows that a command of Git prints. Raises `ToolchainError`."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            [*_GIT, "-C", str(folder), *arguments], capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ToolchainError("failed", f"cannot run git: {error.strerror}") from None
    if done.returncode:
        reason = " ".join(done.stderr.split())
        raise ToolchainError("failed", f"git cannot read the state of {folder}: {reason}")
    return [row for row in done.stdout.split("\0") if row]
