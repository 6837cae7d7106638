# SPDX-License-Identifier: GPL-3.0-or-later
"""Test forms with files: the request, and that no file is held in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.multipart import (
    FilePart,
    MultipartForm,
)


def _body(form: MultipartForm) -> bytes:
    with form.open() as stream:
        return b"".join(iter(lambda: stream.read(17), b""))


def test_form_is_read_from_disk_in_chunks(tmp_path: Path) -> None:
    source = tmp_path / "big"
    source.write_bytes(b"0123456789" * 1000)
    file = FilePart("file", "ä.png", str(source), 5000)
    form = MultipartForm([("comment", "ä")], [file], boundary="b0")
    body = _body(form)
    assert len(body) == form.size
    assert body.startswith(
        b'--b0\r\nContent-Disposition: form-data; name="comment"\r\n'
        b"Content-Type: text/plain; charset=UTF-8\r\n\r\n\xc3\xa4\r\n"
        b'--b0\r\nContent-Disposition: form-data; name="file"; filename="\xc3\xa4.png"\r\n'
        b"Content-Type: image/png\r\n\r\n0123456789"
    )
    assert body.endswith(b"9\r\n--b0--\r\n")
    assert form.content_type == "multipart/form-data; boundary=b0"


def test_form_may_repeat_field_names(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"A")
    (tmp_path / "empty").write_bytes(b"")
    files = [
        FilePart("one", "a", str(tmp_path / "a"), 1),
        FilePart("two", "b", str(tmp_path / "empty"), 0),
    ]
    form = MultipartForm([("x", "1"), ("x", "2")], files, boundary="b0")
    body = _body(form)
    assert body.count(b'name="x"') == 2
    assert body.index(b"\r\n\r\nA\r\n--b0\r\n") < body.index(b'name="two"')
    assert len(body) == form.size
    assert _body(form) == body


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\r\nContent-Type: x"])
def test_ambiguous_file_name_is_rejected(name: str) -> None:
    with pytest.raises(ToolchainError, match="cannot be sent in a form"):
        len(str(MultipartForm([(name, "1")], []).size))
