# SPDX-License-Identifier: GPL-3.0-or-later
"""Refresh `tools/times.json` from the reports of a run of all tests.

    python -m tools.times OUT     OUT: the folder with the reports `*.xml` of pytest

`seconds` is the processor time of a test file, of the functions of an expensive file, and of a
contract case. `played` names the cheapest tests that run a file of a playbook or role.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tools import tree

FILE = tree.ROOT / "tools" / "times.json"
CASE_FOLDER, CONTRACT = "tests/contract/cases/", "tests/contract/test_contract.py"
#: A file that takes more seconds lists its functions.
_EXPENSIVE = 10
#: Tests that are kept for a file of a playbook or role.
_KEPT = 3
#: Of a scenario of Molecule, with the sandbox that it starts.
_SCENARIO = 20.0
#: Of a file that no run has measured.
_UNKNOWN = 5.0


@dataclass(frozen=True)
class Times:
    """The content of the file. A key of `seconds` is a path, or `path::function`."""

    played: dict[str, list[str]]
    seconds: dict[str, float]


@cache
def load() -> Times:
    """Return the content of the file."""
    return Times(**json.loads(FILE.read_text(encoding="utf-8")))


@cache
def cost(test: str) -> float:
    """Return the seconds of a test. If they are unknown, its file or functions give an average."""
    if test.startswith("molecule-"):
        return _SCENARIO
    seconds = load().seconds
    path, _, function = test.partition("::")
    if test in seconds or function:
        return seconds.get(test) or cost(path) / max(len(functions(path)), 1)
    known = [seconds[part] for name in functions(path) if (part := f"{path}::{name}") in seconds]
    return statistics.mean(known) * len(functions(path)) if known else _UNKNOWN


@cache
def functions(path: str) -> list[str]:
    """Return the test functions of a file of the checkout, in order."""
    file = tree.ROOT / path
    text = file.read_text(encoding="utf-8") if file.suffix == ".py" and file.exists() else ""
    return re.findall(r"^def (test_\w+)", text, re.MULTILINE)


@cache
def exists(test: str) -> bool:
    """Return whether the checkout has a test: a file, function, contract case or scenario."""
    path, _, function = test.partition("::")
    if function:
        return function in functions(path)
    return test.startswith("molecule-") or (tree.ROOT / path).exists()


def merged(old: Times, out: Path) -> Times:
    """Return the times after a run. Files of which only some tests ran keep their seconds.

    :param out: folder with the reports of the run
    """
    found: dict[str, float] = defaultdict(float)
    played: dict[str, set[str]] = defaultdict(set)
    for report in out.glob("*.xml"):
        for case in ET.parse(report).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                continue
            measured = {each.get("name"): each.get("value", "") for each in case.iter("property")}
            file = case.get("classname", "").replace(".", "/") + ".py"
            function, _, parameters = case.get("name", "").partition("[")
            tests = [file, f"{file}::{function}"]
            if file == CONTRACT:
                tests.append(f"{CASE_FOLDER}{re.split('[]-]', parameters)[0]}.yml")
            for test in tests:
                # without /proc the wall time
                found[test] += float(measured.get("processor") or 0) or float(case.get("time", 0))
            for path in measured.get("played", "").split():
                played[path].add(tests[1])
    ran = (each for each in found if all(f"{each}::{name}" in found for name in functions(each)))
    seconds = {**old.seconds, **{test: max(float(f"{found[test]:.2g}"), 0.1) for test in ran}}
    kept = {
        path: sorted(filter(exists, tests), key=lambda test: (seconds.get(test, 0), test))[:_KEPT]
        for path, tests in {**old.played, **played}.items()
        if (tree.ROOT / path).exists() and any(map(exists, tests))
    }
    named = {test for tests in kept.values() for test in tests}
    listed = {
        test: seconds[test]
        for test in filter(exists, sorted(seconds))
        if "::" not in test or test in named or seconds.get(test.split("::")[0], 0) > _EXPENSIVE
    }
    return Times(dict(sorted(kept.items())), listed)


if __name__ == "__main__":
    content = json.dumps(asdict(merged(load(), Path(sys.argv[1]))), indent=1)
    FILE.write_text(f"{content}\n", encoding="utf-8")
