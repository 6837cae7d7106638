# SPDX-License-Identifier: GPL-3.0-or-later
"""Test imports from an archive and from a folder: every file is compiled once, and all other
behaviour is unchanged.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import os
import subprocess
import sys
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    import_finders,
    runner,
)
from tests.helpers import playbook

FILES = {
    "packed/__init__.py": "",
    "packed/first.py": "from . import inner\nfrom .inner import second\nVALUE = second.VALUE\n",
    "packed/inner/__init__.py": "",
    "packed/inner/second.py": "VALUE = 2\n\ndef fail():\n    raise ValueError('here')\n",
}


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Add an archive to the path of this process, and the finder before all others."""
    place = tmp_path / "module.zip"
    with zipfile.ZipFile(place, "w") as packed:
        for name, text in FILES.items():
            packed.writestr(name, text)
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setattr(sys, "meta_path", [import_finders.ArchiveFinder(), *sys.meta_path])
    yield place
    for name in [name for name in sys.modules if name.partition(".")[0] == "packed"]:
        del sys.modules[name]


@pytest.fixture
def compiled(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often the files of the archive are compiled."""
    found = Counter[str]()
    real = builtins.compile

    def counting(source: Any, filename: Any, *rest: Any, **named: Any) -> Any:
        if str(filename).startswith(str(archive)):
            found[Path(str(filename)).relative_to(archive).as_posix()] += 1
        return real(source, filename, *rest, **named)

    monkeypatch.setattr(builtins, "compile", counting)
    return found


def test_each_file_of_package_is_compiled_once(compiled: Counter[str]) -> None:
    assert importlib.import_module("packed.first").VALUE == 2
    inside = {name: times for name, times in compiled.items() if name != "packed/__init__.py"}
    assert inside == dict.fromkeys(sorted(FILES)[1:], 1)


def test_module_has_the_file_name_of_its_archive_member(archive: Path) -> None:
    second = importlib.import_module("packed.inner.second")
    inner = importlib.import_module("packed.inner")
    assert second.__file__ == f"{archive}/packed/inner/second.py"
    assert second.__package__ == "packed.inner"
    assert list(inner.__path__) == [f"{archive}/packed/inner"]


def test_traceback_shows_the_source_line(archive: Path) -> None:
    second = importlib.import_module("packed.inner.second")
    with pytest.raises(ValueError, match="here") as caught:
        second.fail()
    shown = "".join(traceback.format_exception(caught.value))
    assert f'File "{archive}/packed/inner/second.py", line 4, in fail' in shown
    assert "raise ValueError('here')" in shown


def test_module_missing_in_archive_is_not_found() -> None:
    importlib.import_module("packed")
    with pytest.raises(ModuleNotFoundError, match=r"packed\.third"):
        importlib.import_module("packed.third")


def test_package_in_folder_is_imported_by_python(tmp_path: Path) -> None:
    package = importlib.import_module("packed")
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "first.py").write_text("VALUE = 1\n", encoding="utf-8")
    package.__path__.insert(0, str(tmp_path / "beside"))
    assert importlib.import_module("packed.first").VALUE == 1


def test_finder_is_not_installed_outside_of_an_archive() -> None:
    assert not any(isinstance(finder, import_finders.ArchiveFinder) for finder in sys.meta_path[1:])


def test_runner_imports_the_finder_before_the_rest_of_the_collection() -> None:
    tree = ast.parse(Path(runner.__file__).read_text(encoding="utf-8"))
    own = [
        node
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and (node.level or str(node.module).startswith("ansible_collections"))
    ]
    assert [alias.name for alias in own[0].names] == ["import_finders"]


#: Prints the files of the collection that are compiled, when Ansible's loader imports the runner.
PRINTS_COMPILED = """
import builtins, importlib, importlib.machinery, os, sys
from ansible.plugins.loader import init_plugin_loader

init_plugin_loader([sys.argv[1]])
first = importlib.machinery.BuiltinImporter
sys.meta_path.insert(0, first)
compiled, real = [], builtins.compile

def counting(source, filename, *rest, **named):
    compiled.extend([os.path.basename(filename)] * ("/toolchain/" in str(filename)))
    return real(source, filename, *rest, **named)

builtins.compile = counting
package = "ansible_collections.delivery.toolchain.plugins.module_utils._lib.core"
runner = importlib.import_module(f"{package}.module.runner")
assert sys.meta_path[0] is first  # as ansible-test requires of its own finder
print(*compiled)
"""


def test_second_run_of_ansible_compiles_nothing_again(tmp_path: Path) -> None:
    def compiled() -> list[str]:
        run = subprocess.run(
            [sys.executable, "-c", PRINTS_COMPILED, str(playbook.collections_path())],
            env={"PATH": os.environ["PATH"], "PYTHONPYCACHEPREFIX": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout.split()

    assert {"runner.py", "errors.py"} < set(compiled())
    assert compiled() == ["runner.py", "import_finders.py"]
