# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the tests that a changed file can break, and how near they are.

A test is a file below `tests`, a function of it as `file::function`, a case of the contract, or a
scenario of Molecule as `molecule-ROLE`. Its distance from a changed file is the number of steps: an
import, a name in its code, or a play of a task.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from tests.helpers.cases import CASES
from tools import times, tree
from tools.times import CASE_FOLDER, CONTRACT

PROGRAMS = Path(sys.executable).parent
SCENARIOS = "extensions/molecule/"
#: It loads all steps. Plays run them: a task of a playbook or role has `step: NAME`.
_STEPS = "plugins/plugin_utils/_lib/bookkeeping.py"
#: Folders with playbooks or parts of them.
_PLAYED = ("examples/", "extensions/", "playbooks/", "roles/")


def tests(path: str) -> Iterator[tuple[int, str]]:
    """Yield pairs of distance and test. A test may come several times."""
    reached = _reached(path)
    for file, distance in reached.items():
        yield from _tests_of(file, distance)
    known = times.load().played
    for file in _played_files(path, reached):
        yield from enumerate(known.get(file, ()), 0 if path.startswith(_PLAYED) else 1)
        if name := re.match(r"(?:playbooks|roles)/(\w+)", file):
            yield from ((2, test) for test in _using(f"delivery.toolchain.{name[1]}"))
    if changed := re.match(rf"(?:roles|{SCENARIOS[:-1]})/(\w+)", path):
        # all scenarios share the files of two folders
        role = "*" if changed[1] in ("default", "inventory") else changed[1]
        for scenario in (tree.ROOT / SCENARIOS).glob(f"{role}/molecule.yml"):
            if scenario.parent.name != "default":
                yield int(path in known), f"molecule-{scenario.parent.name}"
    for distance, folder in enumerate(Path(path).parts[-3:-1] if path[-3:] != ".py" else (), 2):
        yield from ((distance, test) for test in _naming_folder(folder))


def _tests_of(file: str, distance: int) -> Iterator[tuple[int, str]]:
    """Yield the tests of a file whose distance is known."""
    kind, folder, *_ = [*file.split("/"), ""]
    cases: Collection[str] = ()
    if is_test(file) and file != CONTRACT:
        yield distance, file
    elif file == CONTRACT:
        cases = CASES
    elif kind == "plugins" and folder not in ("module_utils", "plugin_utils"):
        name = Path(file).stem
        cases = [case for case, content in CASES.items() if content["module"] == name]
        yield from ((distance + 2, test) for test in _using(name))
        # they find the plugins by themselves
        yield from ((distance + 3, test) for test in _naming_folder(folder))
    elif kind == "sandbox":
        # a file of a service, or a file that all services use
        cases = [case for case, one in CASES.items() if one.get("service") == folder] or CASES
        service = folder if cases is not CASES else ""
        distance = min(distance, 1)
        start = f"tests/integration/sandbox/test_sandbox_{service}"
        yield from ((distance + 1, test) for test in files() if test.startswith(start))
    yield from ((distance + 1, f"{CASE_FOLDER}{case}.yml") for case in cases)


def _reached(path: str) -> dict[str, int]:
    """Map a file, those that name it, and those that import one of them, to their distance."""
    name = path.rpartition("/")[2]
    # a name that several files have counts with its folder
    alike = [file for file in files() if file.endswith(f"/{name}")]
    end = "/".join(path.split("/")[-2:]) if len(alike) > 1 else name
    naming = [file for file in _words().get(name, ()) if file != path and end in text(file)]
    reached: dict[str, int] = {}
    # a test that imports all steps is near one of them only if no other test is
    for stop in (_STEPS, ""):
        reached = {path: 0, **dict.fromkeys(naming, 1)}
        queue = list(reached)
        for file in queue:
            for each in _importers().get(file, ()) if file != stop or file == path else ():
                if each not in reached:
                    reached[each] = reached[file] + 1
                    queue.append(each)
        if any(map(is_test, reached)):
            break
    return reached


def _played_files(path: str, reached: Collection[str]) -> list[str]:
    """Return files of playbooks and roles that use a changed file, and itself."""
    known = times.load().played
    if path in known:
        return [path]
    if path.startswith(_PLAYED):
        # it was not played itself: the files that name it, or those in the nearest folder
        users = [file for file in known if Path(path).name in text(file)]
        for folder in map(str, Path(path).parents[:-2]):
            users = users or [file for file in known if file.startswith(f"{folder}/")]
        return [path, *users]
    steps = [each for each in reached if each.startswith(f"{Path(_STEPS).parent}/steps/")]
    defined = [name for file in steps for name in re.findall(r"^def ([a-z]\w+)", text(file), re.M)]
    run = re.compile(rf"\bstep: (?:{'|'.join(defined)})\b")
    played = [file for file in files() if file.startswith(_PLAYED)] if defined else []
    found = [file for file in played if run.search(text(file))]
    if any("/callback_plugins/" in each for each in reached):
        found += [file for file in known if re.fullmatch(r"playbooks/\w+\.yml", file)]
    return found


def is_test(path: str) -> bool:
    """Return whether a file is a test file or a case of the contract."""
    return bool(re.match(rf"tests/.*/test_\w+\.py|{CASE_FOLDER}", path))


def _using(word: str) -> list[str]:
    """Return the tests whose code contains a word."""
    return [file for file in _words().get(word, ()) if re.match("tests/[fiu].*/test_", file)]


@cache
def _naming_folder(folder: str) -> list[str]:
    pattern = re.compile(rf"""["'/]{re.escape(folder)}["'/]""")
    return [test for test in _using(folder) if pattern.search(text(test))]


@cache
def _words() -> dict[str, list[str]]:
    """Map words, such as names of files and plugins, to the Python files that contain them."""
    found = defaultdict(list)
    for file in files():
        if file.endswith(".py"):
            words = {word.rstrip(".-") for word in re.findall(r"[\w.-]+", text(file))}
            last = {word.rpartition(".")[2] for word in words if word.startswith("delivery.")}
            for word in words | last:
                found[word].append(file)
    return found


@cache
def files() -> list[str]:
    """Return the files of the checkout."""
    return [path for path in tree.sources() if (tree.ROOT / path).is_file()]


@cache
def text(path: str) -> str:
    """Return the content of a file, or "" if it is gone."""
    file = tree.ROOT / path
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


@cache
def _importers() -> dict[str, list[str]]:
    """Map each Python file of the checkout to the files that import it."""
    with tempfile.TemporaryDirectory(prefix="toolchain-imports-") as name:
        root = tree.link_tree(Path(name))
        # the folders of the collection are packages without __init__.py
        folders = [root.parents[1], root.parent, root, *(root / "plugins").rglob("*/")]
        packages = [str(each.relative_to(name)) for each in folders if each.is_dir()]
        command = [str(PROGRAMS / "ruff"), "analyze", "graph", "--preview"]
        command += ["--direction", "dependents", str(tree.COLLECTION)]
        for key, value in {"namespace-packages": packages, "src": [name, str(root)]}.items():
            command += ["--config", f"{key} = {json.dumps(value)}"]
        done = subprocess.run(command, check=True, cwd=name, capture_output=True, text=True)
    found: dict[str, list[str]] = json.loads(done.stdout.replace(f"{tree.COLLECTION}/", ""))
    for file, importers in found.items():
        if Path(file).parent == Path(_STEPS).parent / "steps":
            importers.append(_STEPS)  # by the name of the step
    return found
