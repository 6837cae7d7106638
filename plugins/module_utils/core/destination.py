# SPDX-License-Identifier: GPL-3.0-or-later
"""Where files go that a server names: below a folder of the user, and nowhere else [C8]."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from .errors import ToolchainError, invalid, shorten

#: The longest name of the usual file systems, in bytes.
_LONGEST = 255
_SHOWN = 200


def places(folder: str, names: Iterable[str], *, flat: bool = False) -> dict[str, str]:
    """The path of each file below C(folder), by the name that the server gives it.

    C(rejected) for a name that leads out of the folder, by itself or over a link that is there, or
    that no file can have; C(invalid) for two names that would be one file.

    :param names: relative paths with C(/)
    :param flat: the last segment alone is the name of the file
    """
    found: dict[str, str] = {}
    taken: dict[str, str] = {}
    home, seen = os.path.realpath(folder), set[str]()
    for name in names:
        segments = _segments(name)
        path = os.path.join(folder, *(segments[-1:] if flat else segments))
        if taken.setdefault(path, name) != name:
            raise invalid(
                f"flat: '{_shown(taken[path])}' and '{_shown(name)}' would be the same file {path}"
            )
        if os.path.dirname(path) not in seen:
            _require_below(home, path, name)
            seen.add(os.path.dirname(path))
        if os.path.isdir(path) and not os.path.islink(path):
            raise invalid(f"{path} is a folder, where a file shall be")
        found[name] = path
    _refuse_nested(found)
    return found


def _segments(name: str) -> list[str]:
    segments = name.split("/")
    for segment in segments:
        if segment in ("", ".", ".."):
            raise _refused(name, "it has an empty, '.' or '..' segment")
        try:
            encoded = os.fsencode(segment)
        except UnicodeEncodeError:
            raise _refused(name, "it cannot be encoded") from None
        if b"\0" in encoded or len(encoded) > _LONGEST:
            raise _refused(name, f"it has a null character or more than {_LONGEST} bytes")
    return segments


def _require_below(home: str, path: str, name: str) -> None:
    """The folders on the way may be links of the user, but not to another place."""
    parent = os.path.realpath(os.path.dirname(path))
    if parent != home and not parent.startswith(f"{home.rstrip('/')}/"):
        raise _refused(name, f"a link on the way to {path} leads out of {home}")


def _refuse_nested(found: Mapping[str, str]) -> None:
    """A file cannot be the folder of another one."""
    paths = {path: name for name, path in found.items()}
    seen = {"", "/", "."}
    for name, path in found.items():
        above = os.path.dirname(path)
        while above not in seen:
            if above in paths:
                raise _refused(name, f"'{_shown(paths[above])}' is a file, and not a folder")
            seen.add(above)
            above = os.path.dirname(above)


def _refused(name: str, reason: str) -> ToolchainError:
    return ToolchainError(
        "rejected", f"the server names a file '{_shown(name)}', which is not written: {reason}"
    )


def _shown(name: str) -> str:
    return shorten(name.encode("utf-8", "backslashreplace").decode(), _SHOWN)
