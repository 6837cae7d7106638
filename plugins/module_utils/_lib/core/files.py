# SPDX-License-Identifier: GPL-3.0-or-later
"""Write files atomically, and read files that a user specifies."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from .errors import ToolchainError, invalid, rejected, shorten

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
            parent = os.path.realpath(os.path.dirname(path))
            if parent != home and not parent.startswith(f"{home.rstrip('/')}/"):
                raise _rejected(name, f"a symbolic link in {path} leads out of {home}")
            seen.add(os.path.dirname(path))
        if os.path.isdir(path) and not os.path.islink(path):
            raise invalid(f"{path} is a folder, but must be a file")
        found[name] = path
    paths = {path: name for name, path in found.items()}
    nested = first_nested(paths)
    if nested is not None:
        folder, name = (paths[path] for path in nested)
        raise _rejected(name, f"'{_shortened(folder)}' is a file, not a folder")
    return found


def first_nested(paths: Collection[str]) -> tuple[str, str] | None:
    """Return a path that would be a folder of another one, and that one; `None` without such a
    path. Each folder is looked up once.
    """
    known = {"", "/", "."}
    for path in paths:
        above = os.path.dirname(path)
        while above not in known:
            if above in paths:
                return above, path
            known.add(above)
            above = os.path.dirname(above)
    return None


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


def _rejected(name: str, reason: str) -> ToolchainError:
    return rejected(f"the file name '{_shortened(name)}' from the server is not safe: {reason}")


def _shortened(name: str) -> str:
    return shorten(name.encode("utf-8", "backslashreplace").decode(), _SHOWN)


# O_NOFOLLOW: if a link with the temporary name exists, it is not followed.
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.part")
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def atomic_write(path: str, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` if the block succeeds, and is deleted otherwise.

    The temporary file is in the folder of `path`, because a rename cannot cross file systems. It
    gets the owner of the replaced file if permitted. Raises `failed` for an error of the file
    system.

    :param mode: permissions, regardless of the umask. `None` means those of the replaced file, or
        those that the umask allows for a new file
    """
    temporary = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}.part")
    try:
        file = os.fdopen(os.open(temporary, _NEW_FILE, 0o666 if mode is None else 0o600), "wb")
        try:
            with file:
                _lock(file.fileno())
                _copy_owner_and_mode(path, file.fileno(), mode)
                yield file
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        if error.errno is None:  # an error of `requests`, which is a subclass of OSError
            raise
        raise ToolchainError("failed", f"cannot write {path}: {error.strerror or error}") from None


def _lock(descriptor: int) -> bool:
    """Lock a file until it is closed. Return whether that was possible."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another process has the lock, or the file system has no locks
        return False
    return True


def remove_leftovers(folder: str) -> None:
    """Remove the temporary files of `atomic_write` below a folder, if their process has ended."""
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for path in (os.path.join(above, name) for name in names if _TEMPORARY.fullmatch(name)):
            with suppress(OSError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if _lock(descriptor):
                        os.unlink(path)
                finally:
                    os.close(descriptor)


def _copy_owner_and_mode(path: str, descriptor: int, mode: int | None) -> None:
    before = None
    with suppress(FileNotFoundError):
        before = os.lstat(path)
    if before is not None and stat.S_ISREG(before.st_mode):
        with suppress(PermissionError):
            os.fchown(descriptor, before.st_uid, before.st_gid)
        mode = before.st_mode & 0o777 if mode is None else mode
    if mode is not None:
        os.fchmod(descriptor, mode)


def require_replaceable(path: str, found: os.stat_result) -> None:
    """Raise `invalid` unless `path` is a regular file or a link, which a new file may replace.

    :param found: result of `os.lstat(path)`
    """
    if stat.S_ISDIR(found.st_mode):
        raise invalid(f"{path} is a folder, but must be a file")
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise invalid(f"{path} is a device, a pipe or a socket, but must be a file")


def open_regular(path: str, flags: int) -> int:
    """Open a regular file. Use this function as the `opener` of `open`.

    Raises OSError for other types of files, because a read from a pipe may block, and a device may
    return data without end.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is a device, a pipe or a socket")


def read_text(path: str, label: str) -> str:
    """Return the content of a UTF-8 file. Raises `invalid` if it cannot be read or decoded.

    :param label: description of the file for the message, such as "the script"
    """
    try:
        # universal newlines, as in text mode
        return re.sub("\r\n?", "\n", read_bytes(path, label).decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid(f"{label} {os.path.abspath(path)} is not UTF-8 text") from None


def read_bytes(path: str, label: str) -> bytes:
    """Return the content of a file as bytes. Raises `invalid` if it cannot be read.

    :param label: see :func:`read_text`
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read()
    except OSError as error:
        absolute = os.path.abspath(path)
        raise invalid(f"cannot read {label} {absolute}: {error.strerror}") from None
    except ValueError as error:
        raise invalid(f"cannot read {label} {path!r}: {error}") from None


def make_folders(path: str) -> list[str]:
    """Create a folder and its missing parents; return the new folders, the deepest first."""
    if os.path.isdir(path):
        return []
    missing = []
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise ToolchainError(
            "failed", f"cannot create the folder {path}: {error.strerror or error}"
        ) from None
    return missing
