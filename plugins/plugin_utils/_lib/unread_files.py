# SPDX-License-Identifier: GPL-3.0-or-later
"""Find files of a desired state that nobody reads, such as `ci.YML` or `ci.yml.j2`.

Compared with a previous folder, such a file would look as if everything in it had been removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from .desired_state import ENVIRONMENTS, YAML_ENDINGS

#: Endings of a file that looks like one of the desired state, without the dot.
_LOOKS_READ = {"yml", "yaml"}
_TEMPLATES = {"j2", "jinja", "jinja2"}
#: Endings of the copies that editors keep beside a file.
_BACKUPS = ("~", ".bak", ".orig", ".swo", ".swp")


def unread(folder: Path, previous: Path, names: Collection[str]) -> list[str]:
    """Return a sentence for each file that is ignored or empty.

    :param folder: the present folder
    :param previous: the folder as it was applied last
    :param names: services with files in the previous folder
    """
    read = {_place(path) for path in _files(folder) if _is_read(path)}
    before = {path for path in _files(previous) if _is_read(path)}
    gone = {_stem(path) for path in before if _place(path) not in read}
    found = []
    for path in _files(folder):
        if _service(path) not in names:
            continue
        if _is_read(path):
            if _is_empty(folder / path):
                found.append(f"{path} is empty: write the lists that are to be empty, or delete it")
        elif _looks_read(path, read) or (_stem(path) in gone and not (previous / path).exists()):
            found.append(f"{path} is not read: end its name in .yml, or move it elsewhere")
    return found


def _files(folder: Path) -> Iterator[Path]:
    """Yield the paths of all files below the folder."""
    for path in sorted(folder.rglob("*")):
        if not path.is_dir():
            yield path.relative_to(folder)


def _is_read(path: Path) -> bool:
    return path.suffix in YAML_ENDINGS and not any(part.startswith(".") for part in path.parts)


def _place(path: Path) -> str:
    """Return the path in a comparable spelling: hidden files beside the others."""
    return "/".join(part.lstrip(".") for part in path.parts).casefold()


def _service(path: Path) -> str:
    """Return the service that a file would belong to."""
    parts = _place(path).split("/")
    own = parts[2:] if parts[0] == ENVIRONMENTS else parts
    return own[0].partition(".")[0] if own else ""


def _stem(path: Path) -> str:
    folder, slash, name = _place(path).rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def _looks_read(path: Path, read: Collection[str]) -> bool:
    place = _place(path)
    for ending in _BACKUPS:
        if place.endswith(ending) and place.removesuffix(ending) in read:
            return False
    name = place.rpartition("/")[2]
    endings = {ending.rstrip("~") for ending in name.split(".")[1:]}
    of_service = name.partition(".")[0] == _service(path)
    return bool(endings & (_LOOKS_READ | (_TEMPLATES | {"json"} if of_service else set())))


def _is_empty(file: Path) -> bool:
    """Return whether a YAML file has no value, only comments and markers."""
    lines = map(bytes.strip, file.read_bytes().splitlines())
    return all(not line or line in (b"---", b"...") or line[:1] in b"#%" for line in lines)
