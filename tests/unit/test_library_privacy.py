# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that no private part of the HTTP libraries is used: they may rename it in any release."""

from __future__ import annotations

import ast
import builtins
import functools
import http.client
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
import urllib3

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
LIBRARIES = ("requests", "requests_oauthlib", "urllib3", "http")
FILES = sorted(PLUGINS.rglob("*.py"))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _own_names(tree: ast.AST) -> set[str]:
    """Return the private names that a file defines: functions, attributes of classes
    and of `self`.
    """
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= {node.attr} if getattr(node.value, "id", "") == "self" else set()
    return found


@functools.cache
def _library_names() -> frozenset[str]:
    """Return the private names of attributes in the sources of the libraries."""
    sources = [Path(http.client.__file__ or "")]
    for package in (requests, urllib3):
        sources += Path(package.__path__[0]).rglob("*.py")
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sources]
    found = set[str]().union(*map(_own_names, trees))
    return frozenset(name for name in found if _is_private(name))


def violations(path: Path) -> list[str]:
    """Return the private parts of the libraries that a file uses."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = [name for name in _imports(tree) if name.partition(".")[0] in LIBRARIES]
    found = [name for name in used if any(map(_is_private, name.split(".")))]
    if not used:
        return found
    own = _own_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in own:
            found.append(node.attr)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in vars(builtins):
            strings = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            found += [
                string for string in strings if isinstance(string, str) and _is_private(string)
            ]
    return found


def _files(pattern: str) -> list[Path]:
    """Return the files that may contain something, because a full parse of all takes long."""
    wanted = re.compile(pattern, re.MULTILINE)
    found = [path for path in FILES if wanted.search(path.read_text(encoding="utf-8"))]
    assert len(FILES) > len(found)
    return found


def test_no_private_part_of_a_library_is_used() -> None:
    users = _files(rf"^ *(from|import) .*\b({'|'.join(LIBRARIES)})\b")
    assert len(users) > 10
    assert {str(path): found for path in users if (found := violations(path))} == {}


def test_nothing_is_imported_that_ansible_core_removes() -> None:
    """2.24 removes `six` and `_text`, 2.25 `remove_values` and `sanitize_keys`."""
    removed = re.compile(r"ansible\.module_utils\.(six|_text)\b|\.(remove_values|sanitize_keys)$")
    assert [
        f"{path}: {name}"
        for path in _files(r"\b(six|_text|remove_values|sanitize_keys)\b")
        for name in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if removed.search(name)
    ] == []


def test_subclass_hides_no_private_part_of_its_library() -> None:
    """Verify that the private names of the collection's subclasses do not occur in the libraries."""
    path = PLUGINS / "module_utils/_lib/core/http/connections.py"
    own = {name for name in _own_names(ast.parse(path.read_text())) if _is_private(name)}
    assert own
    assert own & _library_names() == set()


@pytest.mark.parametrize(
    "source",
    [
        "import urllib3\nurllib3.PoolManager()._new_pool",
        "from requests._types import Data",
        "from http.client import HTTPResponse\ngetattr(HTTPResponse, '_method')",
        "def late():\n    import requests\n    requests.Session()._x = 1",
    ],
)
def test_private_part_is_detected(source: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(source)
    assert violations(tmp_path / "x.py")
