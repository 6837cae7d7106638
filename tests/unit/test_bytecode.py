# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytecode in the program that Ansible sends. Real programs: `test_separate_processes.py`."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible import constants

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import bytecode

ARGUMENT = "zip_data='UEsDBAoAAAAAAA=='"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bytecode._compiled.cache_clear()
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))


def packed(files: dict[str, str], compression: int = zipfile.ZIP_DEFLATED) -> str:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return base64.b64encode(data.getvalue()).decode()


def program(payload: str) -> str:
    return f"_main(\nparams={ARGUMENT!r},\nzip_data={payload!r},\n)\n"


def payload_of(changed: str) -> bytes:
    found = re.search(r"^zip_data='(.+)',$", changed, re.MULTILINE)
    assert found is not None
    return base64.b64decode(found[1])


def printed(changed: str, folder: Path) -> str:
    """Return the file of the code of a module, as Python imports it from a payload."""
    (folder / "payload.zip").write_bytes(payload_of(changed))
    code = "import pack.one; print(pack.one.value.__code__.co_filename, pack.one.value())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(folder / "payload.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip()


#: Its annotations are types, not texts, unless the `__future__` imports of another file apply.
ONE = "def value(one: int = 42):\n    return value.__annotations__['one'](one)\n"
PACKAGE = {"pack/__init__.py": "", "pack/one.py": ONE}


def test_python_imports_the_bytecode(tmp_path: Path) -> None:
    changed = bytecode.with_bytecode(program(packed(PACKAGE)).encode()).decode()
    assert f"params={ARGUMENT!r},\n" in changed
    assert printed(changed, tmp_path) == "pack/one.py 42"


def test_other_python_compiles_the_source(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bytecode, "_HEADER", b"abc\n" + bytecode._HEADER[4:])
    changed = bytecode.with_bytecode(program(packed(PACKAGE)).encode()).decode()
    assert printed(changed, tmp_path) == f"{tmp_path / 'payload.zip'}/pack/one.py 42"


def test_workers_of_a_run_compile_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = program(packed(PACKAGE)).encode()
    first = bytecode.with_bytecode(sent)
    bytecode._compiled.cache_clear()
    monkeypatch.delattr(bytecode, "_compile")
    assert bytecode.with_bytecode(sent) == first != sent


def test_payload_in_three_quotes_gets_bytecode() -> None:
    sent = f'    ZIPDATA = """{packed(PACKAGE)}"""\n'.encode()
    assert len(bytecode.with_bytecode(sent)) > len(sent)


def test_bytecode_is_compressed_like_its_source() -> None:
    sent = program(packed(PACKAGE, zipfile.ZIP_STORED))
    payload = payload_of(bytecode.with_bytecode(sent.encode()).decode())
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        assert {one.compress_type for one in archive.infolist()} == {zipfile.ZIP_STORED}
        assert "pack/one.pyc" in archive.namelist()


def test_bytecode_is_sent_even_if_it_cannot_be_stored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "file"))
    sent = program(packed(PACKAGE)).encode()
    assert len(bytecode.with_bytecode(sent)) > len(sent)


@pytest.mark.parametrize(
    "sent",
    [
        "#!/usr/bin/python\nprint('old style')\n",
        f"_main(\nparams={ARGUMENT!r},\n)\n",
        program("AAAA"),
        program(packed({"pack/one.py": "def value(:\n"})),
        program(packed(PACKAGE)[:-40]),
    ],
    ids=["no payload", "only in an argument", "no zip file", "no Python", "cut short"],
)
def test_other_program_is_not_changed(sent: str) -> None:
    assert bytecode.with_bytecode(sent.encode()) == sent.encode()
