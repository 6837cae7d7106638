# SPDX-License-Identifier: GPL-3.0-or-later
"""Test names of files: inside the folder and unique, regardless of the server's response."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.tracker_attachment import (
    safe_names,
)


def one(name: str) -> str:
    return safe_names({"7": name})["7"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("server log.txt", "server log.txt"),
        ("größe & maß.csv", "größe & maß.csv"),
        ("日本語.tar.gz", "日本語.tar.gz"),
        ('what? "a" <b>: c*|d.txt', 'what? "a" <b>: c*|d.txt'),
        ("../../etc/passwd", "_._.._etc_passwd"),
        ("..\\..\\boot.ini", "_._.._boot.ini"),
        ("/etc/passwd", "_etc_passwd"),
        ("..", "_."),
        (".", "_"),
        ("", "attachment"),
        ("  ", "attachment"),
        (".bashrc", "_bashrc"),
        ("a\x00b\r\n\x1b[31mc\x7f\x85.txt", "a_b___[31mc__.txt"),
        ("exe\u202etxt.doc", "exe_txt.doc"),
        ("half \ud83d pair.txt", "half _ pair.txt"),
        ("CON", "_CON"),
        ("nul.txt", "_nul.txt"),
        ("console.txt", "console.txt"),
        (" padded.txt ", "padded.txt"),
    ],
)
def test_name_is_made_safe(name: str, expected: str) -> None:
    assert one(name) == expected


def test_long_name_keeps_its_extension() -> None:
    name = one("日" * 200 + ".txt")
    assert name.endswith("日.txt")
    assert len(name.encode()) <= 255
    assert len(one("a" * 300).encode()) == 255
    assert len(one("a." + "b" * 300).encode()) == 255


def test_equal_names_are_made_unique() -> None:
    assert safe_names({"501": "log.txt", "502": "log.txt", "503": "other.txt"}) == {
        "501": "log-501.txt",
        "502": "log-502.txt",
        "503": "other.txt",
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [("Log.TXT", "log.txt"), ("a/b", "a_b"), ("straße", "STRASSE"), ("u\u0308", "ü")],
)
def test_names_equal_for_a_file_system_are_made_unique(first: str, second: str) -> None:
    names = safe_names({"1": first, "2": second})
    assert {name.rpartition("-")[2].partition(".")[0] for name in names.values()} == {"1", "2"}


def test_name_with_an_id_suffix_is_made_unique() -> None:
    names = safe_names({"1": "a.txt", "2": "a.txt", "3": "a-1.txt"})
    assert names == {"1": "a-1.txt", "2": "a-2.txt", "3": "a-1-3.txt"}


def test_long_equal_names_are_made_unique() -> None:
    names = safe_names({"1": "x" * 300 + "a", "2": "x" * 300 + "b"})
    assert len(set(names.values())) == 2
    assert all(len(name.encode()) <= 255 for name in names.values())


@given(
    st.dictionaries(
        st.integers(1, 9999).map(str),
        st.text(max_size=12) | st.sampled_from(["a.txt", "A.txt", "..", "a-1.txt", "/", ".a"]),
        max_size=8,
    )
)
def test_every_name_is_a_single_file_of_the_folder(filenames: dict[str, str]) -> None:
    names = safe_names(filenames)
    assert names.keys() == filenames.keys()
    assert len({name.casefold() for name in names.values()}) == len(names)
    for name in names.values():
        assert name not in ("", ".", "..")
        assert not name.startswith(".")
        assert os.path.basename(name) == name
        assert len(name.encode()) <= 255
        assert all(ord(letter) >= 32 for letter in name)


def test_safe_name_can_be_written(tmp_path: Path) -> None:
    hostile = ["../x", "a/b", "\x00", "\ud800", "日" * 200, ".", "-rf", "~", "$HOME"]
    for name in safe_names({str(n): name for n, name in enumerate(hostile)}).values():
        (tmp_path / name).write_bytes(b"")
    assert len(list(tmp_path.iterdir())) == len(hostile)
