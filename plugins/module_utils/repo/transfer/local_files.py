# SPDX-License-Identifier: GPL-3.0-or-later
"""Find and delete surplus local files for the option `sync` [C8.1]."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import ToolchainError, invalid, shorten


def surplus_files(folders: Iterable[str], desired: Iterable[str], limit: int) -> dict[str, int]:
    """Return the surplus regular files below the folders, with their sizes in bytes.

    Symbolic links are neither followed nor returned.

    :param desired: paths of the files to keep
    :param limit: maximum number of surplus files; raises `invalid` if there are more
    """
    known = {os.path.abspath(path) for path in desired}
    found: dict[str, int] = {}
    for folder in sorted(set(folders)):
        if os.path.islink(folder.rstrip("/")):
            raise invalid(
                f"dest: '{folder}' is a symbolic link, which sync does not follow: use its target"
            )
        for parent, _folders, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                state = os.lstat(path)
                if stat.S_ISREG(state.st_mode) and os.path.abspath(path) not in known:
                    found[path] = state.st_size
    if len(found) > limit:
        named = shorten(", ".join(sorted(found)), 300)
        raise invalid(
            f"sync would delete {len(found)} files, more than max_deletions ({limit}), so nothing"
            f" was changed: {named}",
        )
    return found


def delete_files(files: Mapping[str, Any]) -> None:
    """Delete local files. Raises `failed`."""
    for number, path in enumerate(files):
        try:
            os.remove(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ToolchainError(
                "failed",
                f"deleting '{path}': {error.strerror or error}",
                result={"changed": number > 0},
            ) from None
