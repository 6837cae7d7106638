# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that appear whole or not at all, and texts that a user named."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from .errors import ToolchainError, invalid

# A link that somebody put there under the temporary name is not followed.
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


@contextmanager
def atomic_write(path: str, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A new file that takes the place of C(path) when the block ends well; else nothing is left.

    It lies in the folder of C(path) from the beginning, so that no other file system comes between,
    and keeps the owner of the file that it replaces where that is allowed. C(failed) where the disk
    refuses.

    :param mode: its permissions from the first moment on, whatever the umask; C(None): those of the
        file that it replaces, else what the umask leaves
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
        if error.errno is None:  # an error of the HTTP library, which has the same base class
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
    """C(invalid) where a file cannot take the place of what is there, or must not: C(/dev/null) is
    no file afterwards.

    :param found: of the path itself, a link not followed
    """
    if stat.S_ISDIR(found.st_mode):
        raise invalid(f"{path} is a folder, where a file shall be")
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode)):
        raise invalid(f"{path} is a device, a pipe or a socket, where a file shall be")


def open_regular(path: str, flags: int) -> int:
    """The C(opener) of a file that the user named: a pipe may never begin, and a device never end,
    so that neither is read.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is a device, a pipe or a socket")


def read_text(path: str, what: str) -> str:
    """The text of a UTF-8 file that the user named; C(invalid), which says C(what) it is, where it
    cannot be read.
    """
    whole = os.path.abspath(path)
    try:
        with open(path, encoding="utf-8", opener=open_regular) as file:
            return file.read()
    except OSError as error:
        raise invalid(f"{what} {whole} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise invalid(f"{what} {whole} is not UTF-8 text") from None
    except ValueError as error:
        raise invalid(f"{what} {path!r} cannot be read: {error}") from None


def make_folders(path: str) -> list[str]:
    """Make a folder and those above it that are missing; the new ones, the deepest first."""
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
            "failed", f"making the folder {path}: {error.strerror or error}"
        ) from None
    return missing
