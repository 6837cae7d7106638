# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that every citation in the code names a heading of the documents, in the only allowed
format.

A citation is the first word of a heading in square brackets: C1.4 of the contract, W4.1 of the
written interface, repo-15 of the server facts; several are separated by commas.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.descriptors import DESCRIPTORS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
INTERFACES = DOCS / "interfaces"
FOLDERS = ("docs", "extensions", "playbooks", "plugins", "roles", "sandbox", "tests", "tools")
KINDS = {".groovy", ".j2", ".md", ".py", ".yaml", ".yml"}
#: Page to the prefixes (services or parts) of its numbered headings.
BOOKS = {
    DOCS / "contract.md": ("C",),
    INTERFACES / "common.md": ("W",),
    INTERFACES / "repository.md": ("W", "repo-"),
    INTERFACES / "tracker.md": ("W", "tracker-"),
    INTERFACES / "wiki.md": ("W", "wiki-"),
    INTERFACES / "ci.md": ("W", "ci-"),
    INTERFACES / "analysis.md": ("W", "analysis-"),
}

_REF = r"(?:[CW]\d+(?:\.\d+)*|(?:repo|tracker|wiki|ci|analysis)-\d+)"
_HEADING = re.compile(rf"^#+ ({_REF})(?= |$)", re.MULTILINE)
#: White space, including a line break in a comment.
_GAP = r"\s+(?:#:? )?\s*"
_CITATION = re.compile(rf"\[({_REF}(?:,{_GAP}{_REF})*)\]")
_LINKED = re.compile(rf"\[({_REF})\]\(([^)]+)\)")
#: Malformed citations.
_MISSPELT = (
    re.compile(r"\[(?:R-)?(?:[CW]|repo|tracker|wiki|ci|CI|analysis)[ -]?\d[^\]\n]*\]"),
    re.compile(rf"(?:written{_GAP}interface|\bcontract|server{_GAP}facts?),?{_GAP}\(?\d", re.I),
    re.compile(rf"server{_GAP}facts?,?{_GAP}\(?(?:repo|tracker|wiki|ci|analysis|writes)\b", re.I),
)
#: A server fact without a number in brackets; sentences about facts in general do not match.
_UNNUMBERED = re.compile(rf"server{_GAP}facts?(?:\)|:|{_GAP}\((?!\[))", re.I)


class Place(NamedTuple):
    """Position and text of a match."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


def files() -> Iterator[Path]:
    """Yield all files that may cite, except this file, whose patterns look like citations."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            ours = "__pycache__" not in path.parts and path != Path(__file__).resolve()
            if ours and path.suffix in KINDS and not path.is_symlink():
                yield path


def matches(pattern: re.Pattern[str], path: Path) -> Iterator[tuple[Place, re.Match[str]]]:
    text = path.read_text(encoding="utf-8")
    for found in pattern.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield (
            Place(str(path.relative_to(ROOT)), line, " ".join(found[0].split())),
            found,
        )


def headings() -> list[tuple[str, Path]]:
    return [
        (found[1], book)
        for book in BOOKS
        for found in _HEADING.finditer(book.read_text(encoding="utf-8"))
    ]


def cited() -> Iterator[tuple[Place, str]]:
    for path in files():
        for place, found in matches(_CITATION, path):
            for ref in re.findall(_REF, found[1]):
                yield place, ref


def test_every_citation_names_a_heading() -> None:
    known = {ref for ref, _book in headings()}
    unknown = [f"{place}: no heading {ref}" for place, ref in cited() if ref not in known]
    assert not unknown, "\n".join(unknown)


def test_citations_have_one_format() -> None:
    wrong = [
        f"{place.file}:{place.line}: '{place.text}': cite a heading, as [{example}]"
        for path in files()
        for pattern, example in (*((one, "C1.4") for one in _MISSPELT), (_UNNUMBERED, "repo-15"))
        for place, found in matches(pattern, path)
        if not _CITATION.fullmatch(found[0])
    ]
    assert not wrong, "\n".join(wrong)


def test_numbers_are_unique_and_on_their_own_page() -> None:
    given = headings()
    twice = [ref for ref, count in Counter(ref for ref, _book in given).items() if count > 1]
    strangers = [f"{ref} in {book.name}" for ref, book in given if not ref.startswith(BOOKS[book])]
    assert (twice, strangers) == ([], [])


def test_every_book_has_headings_and_is_cited_by_code() -> None:
    books = {re.sub(r"\d.*", "", ref) for ref, _book in headings()}
    code = {re.sub(r"\d.*", "", ref) for place, ref in cited() if not place.file.startswith("docs")}
    assert books == {start for starts in BOOKS.values() for start in starts}
    assert code == books


def test_every_page_of_interfaces_is_searched() -> None:
    names = ("README.md", "documents.md", "recordings.md", "repository_settings.md", "witnesses.md")
    without_facts = {INTERFACES / name for name in names}
    assert set(INTERFACES.glob("*.md")) == {*without_facts, *BOOKS} - {DOCS / "contract.md"}


def test_link_to_a_heading_leads_to_its_page() -> None:
    home = dict(headings())
    astray = [
        str(place)
        for path in DOCS.rglob("*.md")
        for place, found in matches(_LINKED, path)
        if (path.parent / found[2]).resolve() != home.get(found[1])
    ]
    assert not astray, "\n".join(astray)


def test_every_sandbox_service_cites_its_facts() -> None:
    by_service = {
        (place.file.split("/")[1], ref.split("-")[0])
        for place, ref in cited()
        if place.file.startswith("sandbox/") and "-" in ref
    }
    assert {(name, name) for name in ("repo", "tracker", "wiki", "ci", "analysis")} <= by_service


def test_every_operation_of_the_ci_server_names_its_source() -> None:
    page = (INTERFACES / "ci.md").read_text("utf-8")
    rows = re.findall(r"^\| `(ci_\w+)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    operations = [
        (module, name)
        for module, descriptor in DESCRIPTORS.items()
        if descriptor.service_name == "ci"
        for name in descriptor.operations
    ]
    assert sorted((module, name) for module, name, _methods in rows) == sorted(operations)
    classes = {name for *_cells, cell in rows for name in re.findall(r"`(\w+)\.\w+`", cell)}
    files = page.partition("| repository | folder | files |")[2]
    assert classes == set(re.findall(r"`(\w+)`(?=,| \|$)", files, re.MULTILINE))


def test_misspelt_citations_are_detected() -> None:
    """Test the patterns with lines that are misspelt in different forms."""
    lines = ("[repo 15]", "(written interface, 4.1)", "(contract, 1.3)", "server fact (CI 2.2)")
    for line in lines:
        assert any(pattern.search(line) for pattern in _MISSPELT), line
    for line in (
        "Server fact: an empty list",
        "longer than that (server fact).",
        "server fact (x)",
    ):
        assert _UNNUMBERED.search(line), line
    for line in ("Server fact [repo-15]: 200", "as the contract has it", "[W4.1, repo-15]"):
        assert not any(
            found and not _CITATION.fullmatch(found[0])
            for pattern in (*_MISSPELT, _UNNUMBERED)
            for found in [pattern.search(line)]
        ), line
