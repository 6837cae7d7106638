# SPDX-License-Identifier: GPL-3.0-or-later
"""Safe local paths for files with names from a server: always below a folder of the user [C8]."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from .errors import ToolchainError, invalid, shorten

#: Maximum length of a file name in bytes, on the usual file systems.
_LONGEST = 255
_SHOWN = 200


def safe_paths(folder: str, names: Iterable[str], *, flat: bool = False) -> dict[str, str]:
    """Return the local path below `folder` for each file name from the server.

    Raises `rejected` for a name that leads out of the folder, directly or through a link, or that
    is not a valid file name. Raises `invalid` if two names have the same path.

    :param names: relative paths with `/`
    :param flat: use only the last segment of each name
    """
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    home, seen = os.path.realpath(folder), set[str]()
    for name in names:
        segments = _segments(name)
        path = os.path.join(folder, *(segments[-1:] if flat else segments))
        if taken.setdefault(path, name) != name:
            raise invalid(
                f"with flat, '{_shortened(taken[path])}' and '{_shortened(name)}' would be the"
                f" same file {path}: set flat to false"
            )
        if os.path.dirname(path) not in seen:
            _require_below(home, path, name)
            seen.add(os.path.dirname(path))
        if os.path.isdir(path) and not os.path.islink(path):
            raise invalid(f"{path} is a folder, but must be a file")
        found[name] = path
    _reject_nested(found)
    return found


def _segments(name: str) -> list[str]:
    segments = name.split("/")
    for segment in segments:
        if segment in ("", ".", ".."):
            raise _rejected(name, "it contains an empty, '.' or '..' segment")
        try:
            encoded = os.fsencode(segment)
        except UnicodeEncodeError:
            raise _rejected(name, "it cannot be encoded") from None
        if b"\0" in encoded or len(encoded) > _LONGEST:
            raise _rejected(name, f"it contains a null character or has more than {_LONGEST} bytes")
    return segments


def _require_below(home: str, path: str, name: str) -> None:
    """Raise `rejected` if a symbolic link in `path` leads out of the folder `home`."""
    parent = os.path.realpath(os.path.dirname(path))
    if parent != home and not parent.startswith(f"{home.rstrip('/')}/"):
        raise _rejected(name, f"a symbolic link in {path} leads out of {home}")


def _reject_nested(found: Mapping[str, str]) -> None:
    """Raise `rejected` if a file would also be the parent folder of another file."""
    paths = {path: name for name, path in found.items()}
    seen = {"", "/", "."}
    for name, path in found.items():
        above = os.path.dirname(path)
        while above not in seen:
            if above in paths:
                raise _rejected(name, f"'{_shortened(paths[above])}' is a file, not a folder")
            seen.add(above)
            above = os.path.dirname(above)


def _rejected(name: str, reason: str) -> ToolchainError:
    return ToolchainError(
        "rejected", f"the file name '{_shortened(name)}' from the server is not safe: {reason}"
    )


def _shortened(name: str) -> str:
    return shorten(name.encode("utf-8", "backslashreplace").decode(), _SHOWN)
