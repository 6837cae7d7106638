# SPDX-License-Identifier: GPL-3.0-or-later
"""Add bytecode to the payload of a module, so that the process of the module compiles nothing.

Ansible packs the sources of a module as a zip file, and a new process compiles all of them again.
Python takes the bytecode of its own version from a zip file, and compiles the source otherwise.
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
import tempfile
import zipfile

from ansible import constants

# The payload has a line of its own. The arguments are one line too, and thus never match.
_PAYLOAD = re.compile(rb"^ *(?:zip_data=|ZIPDATA = )'([A-Za-z0-9+/=]+)',?$", re.MULTILINE)
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
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as part:
        part.write(compiled)
    os.replace(part.name, path)
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
    with zipfile.ZipFile(payload, "a", zipfile.ZIP_DEFLATED) as archive:
        for source, code in zip(sources, codes, strict=True):
            bytecode = zipfile.ZipInfo(f"{source.filename}c", source.date_time)
            archive.writestr(bytecode, _HEADER + marshal.dumps(code), zipfile.ZIP_DEFLATED)
    return base64.b64encode(payload.getvalue())
