# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the modules and the sandbox with OpenAPI documents of the vendors.

    python -m tools.specs FOLDER

The contract cases of the tracker and the wiki run against the sandbox. Differences between their
requests and the documents are about the modules, those of the responses are about the sandbox. See
docs/interfaces/documents.md for the documents.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.helpers import openapi
from tools.tree import ROOT


class Lines:
    """Plugin of pytest that collects the differences."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.found |= {str(line) for name, line in report.user_properties if name == "difference"}


def main(arguments: Sequence[str]) -> int:
    """Print the differences. Return 1 if the modules have some, or if no case ran."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        raise SystemExit("name the folder of the documents: make specs FOLDER=specs")
    folder = Path(arguments[0]).resolve()
    documents = openapi.load(folder)
    for edition, found in documents.editions.items():
        named = ", ".join(f"{each.title} {each.version}" for each in found)
        print(f"{edition}: {named or 'no document'}")
    judged = [edition for edition, found in documents.editions.items() if found]
    if not judged:
        raise SystemExit(f"no file *.json in {folder} has the title of a document")
    lines = Lines()
    chosen = f"follow_the_documents and ({' or '.join(judged)})"
    command = ["-q", "--no-header", "--tb=line", "--specs", str(folder), "-k", chosen]
    status = pytest.main([*command, str(ROOT / "tests" / "contract")], plugins=[lines])
    responses = sorted(line for line in lines.found if openapi.is_about_sandbox(line))
    requests = sorted(lines.found.difference(responses))
    for who, each in (("modules", requests), ("sandbox", responses)):
        print(f"\nDifferences of the {who}: {len(each)}", *each, sep="\n  ")
    return 0 if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) and not requests else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
