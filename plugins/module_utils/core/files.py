# SPDX-License-Identifier: GPL-3.0-or-later
"""Atomic writes, and files that a user names."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from .errors import ToolchainError, invalid

# O_NOFOLLOW: a link under the temporary name is not followed.
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def atomic_write(path: str, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` if the block succeeds, and is deleted otherwise.

    It is in the folder of `path`, so that both are on the same file system, and it keeps the owner
    of the replaced file if that is permitted. Raises `failed` for an error of the file system.

    :param mode: permissions from the start, regardless of the umask; `None`: those of the replaced
        file, or those that the umask leaves
    """
    temporary = os.path.join(os.path.dirname(path), f".{secrets.token_hex(8)}.part")
    try:
        file = os.fdopen(os.open(temporary, _NEW_FILE, 0o666 if mode is None else 0o600), "wb")
        try:
            with file:
                _take_after(path, file.fileno(), mode)
                yield file
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        if error.errno is None:  # an error of the HTTP library has the same base class
            raise
        raise ToolchainError("failed", f"writing {path}: {error.strerror or error}") from None


def _take_after(path: str, descriptor: int, mode: int | None) -> None:
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
    """Raise `invalid` if a file must not replace `path`, such as a folder or `/dev/null`.

    :param found: status of the path itself, links not followed
    """
    if stat.S_ISDIR(found.st_mode):
        raise invalid(f"{path} is a folder, but must be a file")
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise invalid(f"{path} is a device, a pipe or a socket, but must be a file")


def open_regular(path: str, flags: int) -> int:
    """Open a regular file, as `opener` of `open`.

    Raises OSError for anything else: reading a pipe may block, and a device may have no end.
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
    """Return the content of a UTF-8 file that the user names.

    :param label: name of the file in the error `invalid`, such as "the script"
    """
    try:
        # like a file in text mode: `\r\n` and `\r` become `\n`
        return re.sub("\r\n?", "\n", read_bytes(path, label).decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid(f"{label} {os.path.abspath(path)} is not UTF-8 text") from None


def read_bytes(path: str, label: str) -> bytes:
    """Return the content of a file that the user names; see :func:`read_text`."""
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
            "failed", f"creating the folder {path}: {error.strerror or error}"
        ) from None
    return missing
