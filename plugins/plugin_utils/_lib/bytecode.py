# SPDX-License-Identifier: GPL-3.0-or-later
"""Add bytecode to the payload of a module, so that the process of the module compiles nothing.

Ansible packs the sources of a module as a zip file, and a new process compiles all of them again.
Python takes the bytecode of its own version from a zip file, and compiles the source otherwise.
The bytecode names its file without the path of the zip file, which is not known yet. So Ansible
does not say which release removes a deprecated feature that such a process uses.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.util
import io
import marshal
import os
import re
import zipfile

from ansible import constants

from ...module_utils._lib.core.errors import ToolchainError
from ...module_utils._lib.core.files import atomic_write

# The payload has a line of its own. The arguments are one line too, and thus never match.
# ansible-core 2.16.0 has three quotes.
_PAYLOAD = re.compile(
    rb"""^ *(?:zip_data=|ZIPDATA = )['"]+([A-Za-z0-9+/=]+)['"]+,?$""", re.MULTILINE
)
#: Header of bytecode that Python uses without a look at its source (PEP 552).
_HEADER = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)


def with_bytecode(program: bytes) -> bytes:
    """Return the program that Ansible sends, with bytecode beside each source of its payload.

    A program of another form is returned unchanged.
    """
    found = _PAYLOAD.search(program)
    if found is None:
        return program
    return program[: found.start(1)] + _compiled(found[1]) + program[found.end(1) :]


@functools.lru_cache(maxsize=4)
def _compiled(packed: bytes) -> bytes:
    """Return a payload with bytecode. All workers of a run share it in a temporary file."""
    folder = os.path.join(constants.DEFAULT_LOCAL_TMP, "toolchain-bytecode")
    path = os.path.join(folder, hashlib.sha256(packed).hexdigest())
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    try:
        compiled = _compile(packed)
    except (ValueError, SyntaxError, zipfile.BadZipFile):
        return packed
    with contextlib.suppress(OSError, ToolchainError):  # e.g. a full disk
        os.makedirs(folder, exist_ok=True)
        with atomic_write(path, 0o600) as file:
            file.write(compiled)
    return compiled


def _compile(packed: bytes) -> bytes:
    payload = io.BytesIO(base64.b64decode(packed))
    with zipfile.ZipFile(payload) as archive:  # raises BadZipFile, unlike the mode "a"
        sources = [one for one in archive.infolist() if one.filename.endswith(".py")]
        codes = [
            # without the `__future__` imports of this file
            compile(archive.read(one), one.filename, "exec", dont_inherit=True)
            for one in sources
        ]
    with zipfile.ZipFile(payload, "a") as archive:
        for source, code in zip(sources, codes, strict=True):
            bytecode = zipfile.ZipInfo(f"{source.filename}c", source.date_time)
            # uncompressed like the source, if the Python of a host has no zlib
            archive.writestr(bytecode, _HEADER + marshal.dumps(code), source.compress_type)
    return base64.b64encode(payload.getvalue())
