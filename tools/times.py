# SPDX-License-Identifier: GPL-3.0-or-later
"""Refresh `tools/times.json` from the reports of a run of all tests.

    python -m tools.times OUT     OUT: the folder with the reports `*.xml` of pytest

`seconds` is the processor time of a test file, of the functions of an expensive file, and of a
contract case. `played` names the cheapest tests that run a file of a playbook or role. A value
changes only if it differs by a quarter, so that two versions of the file are easy to compare.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tools import tree

_FILE = tree.ROOT / "tools" / "times.json"
_CONTRACT = "tests/contract/test_contract.py"
#: A file that takes more seconds lists its functions.
_EXPENSIVE = 10
#: Tests that are kept for a file of a playbook or role.
_KEPT = 3
#: Of a scenario of Molecule, with the sandbox that it starts.
_SCENARIO = 20.0


@dataclass(frozen=True)
class Measure:
    """Processor seconds of a test, and the files that its plays ran."""

    file: str
    function: str
    parameters: str
    seconds: float
    played: frozenset[str] = frozenset()

    @property
    def node(self) -> str:
        return f"{self.file}::{self.function}"


@dataclass
class Times:
    """The content of the file. A key of `seconds` is a path, or `path::function`."""

    seconds: dict[str, float] = field(default_factory=dict)
    played: dict[str, list[str]] = field(default_factory=dict)

    def save(self) -> None:
        content = {"played": self.played, "seconds": self.seconds}
        _FILE.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    def of(self, test: str) -> float:
        """Return the seconds of a test, or an average of its functions, its file or its folder."""
        if test in self.seconds:
            return self.seconds[test]
        path, _, function = test.partition("::")
        if function:
            return self.of(path) / max(len(functions(path)), 1)
        parts = [f"{path}::{name}" for name in functions(path)]
        if timed := [self.seconds[part] for part in parts if part in self.seconds]:
            return sum(timed) / len(timed) * len(parts)
        for folder in Path(path).parents[:-1]:
            known = [
                seconds
                for each, seconds in self.seconds.items()
                if "::" not in each and each.startswith(f"{folder}/")
            ]
            if known:
                return statistics.median(known)
        return 1.0


@cache
def load() -> Times:
    """Return the content of the file."""
    return Times(**json.loads(_FILE.read_text(encoding="utf-8")))


@cache
def cost(test: str) -> float:
    """Return the processor seconds of a test or of a scenario of Molecule."""
    return _SCENARIO if test.startswith("molecule-") else load().of(test)


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
    if path.startswith("molecule-"):
        return True
    return function in functions(path) if function else (tree.ROOT / path).exists()


def refresh(out: Path) -> None:
    """Write the measures of the reports in a folder into the file."""
    merged(load(), measures(out)).save()


def measures(out: Path) -> Iterator[Measure]:
    """Yield the tests of all reports of a folder that did not fail."""
    for report in sorted(out.glob("*.xml")):
        for case in ET.parse(report).getroot().iter("testcase"):
            found = {each.get("name"): each.get("value", "") for each in case.iter("property")}
            function, _, parameters = case.get("name", "").partition("[")
            if case.find("failure") is None and case.find("error") is None:
                yield Measure(
                    case.get("classname", "").replace(".", "/") + ".py",
                    function,
                    parameters.removesuffix("]"),
                    # without /proc the wall time
                    float(found.get("processor") or 0) or float(case.get("time", 0)),
                    frozenset(found.get("played", "").split()),
                )


def merged(old: Times, run: Iterable[Measure]) -> Times:
    """Return the times after a run. Files of which only some tests ran keep their seconds."""
    found: dict[str, float] = defaultdict(float)
    played: dict[str, set[str]] = defaultdict(set)
    for each in run:
        found[each.file] += each.seconds
        found[each.node] += each.seconds
        if each.file == _CONTRACT:
            found[f"tests/contract/cases/{each.parameters.partition('-')[0]}.yml"] += each.seconds
        for path in each.played:
            played[path].add(each.node)
    seconds = dict(old.seconds)
    for test, cost in found.items():
        if all(f"{test}::{function}" in found for function in functions(test)):
            seconds[test] = _rounded(cost, old.seconds.get(test, 0))
    kept = {
        path: _cheapest(path, old.played.get(path, ()), played[path], found, seconds)
        for path in {*old.played, *played}
        if (tree.ROOT / path).exists()
    }
    kept = {path: tests for path, tests in kept.items() if tests}
    named = {test for tests in kept.values() for test in tests}
    listed = {
        test: cost
        for test, cost in seconds.items()
        if exists(test)
        and ("::" not in test or test in named or seconds.get(test.split("::")[0], 0) > _EXPENSIVE)
    }
    return Times(listed, kept)


def _rounded(new: float, old: float) -> float:
    """Return the new seconds with two digits, or the old ones if the difference is small."""
    if abs(new - old) <= max(old / 4, 0.2) and old:
        return old
    return max(float(f"{new:.2g}"), 0.1) if new < 10 else float(round(new))


def _cheapest(
    path: str,
    old: Iterable[str],
    new: set[str],
    found: Mapping[str, float],
    seconds: Mapping[str, float],
) -> list[str]:
    """Return the cheapest tests that ran a file, and prefer those that were known."""
    known = {test for test in old if exists(test) and (test in new or test not in found)}

    def cost(test: str) -> tuple[float, str]:
        return seconds.get(test, 0) * (0.75 if test in known else 1), test

    return sorted(sorted(known | (new & seconds.keys()), key=cost)[:_KEPT])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    refresh(parser.parse_args().out)
