# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the report page in Chromium: open, filter, unfold; both colour schemes, narrow and wide."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report import page
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.contents import (
    Contents,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.since import (
    Last,
    finding_id,
)
from tests.helpers import drift_page, installed
from tests.helpers.browser import PROGRAM, Browser, browser

pytestmark = pytest.mark.skipif(
    installed.program(PROGRAM) is None,
    reason="no Chromium on this machine: the page of a report was not opened",
)
ANALYSIS, REPO = "https://analysis.example.com", "https://repo.example.com/artifactory"
EVIL = "</script><img src=http://127.0.0.1:9/x onerror=\"document.title='taken'\">\u2028<!--"
#: The page must stay responsive with this number of findings.
MANY = 4_990
COMMANDS = {"enforce": "ansible-playbook a -e 'b c'", "adopt": "ansible-playbook d", "secrets": ""}
#: Number of findings on paper.
PRINTED = 300


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as driven:
        yield driven


@pytest.fixture(autouse=True)
def _nothing_noted(chromium: Browser) -> None:
    chromium.console.clear()
    chromium.requests.clear()


def _contents(many: int = 0) -> Contents:
    contents = Contents("delivery.toolchain.drift", check=True, finished="2026-11-22T04:00:00Z")
    contents.hosts = ["production"]

    def add(service: str, server: str, kind: str, name: str, **rest: Any) -> None:
        values = {"host": "production", "task": "Hold it", "status": "drift", **rest}
        values.setdefault("text", f"{kind} {name}: differs")
        contents.add(service=service, server=server, kind=kind, name=name, **values)

    add("analysis", ANALYSIS, "role", "fine", action="none", status="ok")
    users = {"before": {"users": ["alice"]}, "after": {"users": ["alice", "bob"]}}
    add("analysis", ANALYSIS, "group", "quality", action="update", **users)
    add("analysis", ANALYSIS, "group", EVIL, action="create", after={"name": EVIL})
    text = "".join(f"line {number}\n" for number in range(40))
    other = text.replace("line 20\n", "another\n")
    add("wiki", "https://wiki", "page", "REL/Notes", action="update", before=text, after=other)
    add("repo", REPO, "task", "Clean", action="none", status="failed", text=f"task Clean: {EVIL}")
    for number in range(many):
        name = f"libs/agent/{number // 100}/agent-{number}.jar"
        add("repo", REPO, "item", name, action="delete", before={"size": number})
    return contents


def _history(contents: Contents) -> list[dict[str, Any]]:
    run = {key: contents.as_json()[key] for key in ("finished", "playbook", "check", "counts")}
    return [{**run, "counts": {"ok": 1, "drift": number, "failed": 0}} for number in range(9)]


def _open(chromium: Browser, folder: Path, contents: Contents, **view: Any) -> None:
    file = folder / "report.html"
    file.write_text(page.html(contents, _history(contents), COMMANDS), encoding="utf-8")
    chromium.open(file, **view)


def _names(chromium: Browser) -> list[str]:
    script = "[...document.querySelectorAll('li .name')].map((each) => each.textContent)"
    found: list[str] = chromium.run(script)
    return found


def _unfold(chromium: Browser, name: str) -> str:
    """Unfold an object by name. Return the displayed content."""
    script = f"""(async () => {{
      const name = [...document.querySelectorAll('li .name')].find((each) => each.textContent === {json.dumps(name)});
      const details = name.closest('details');
      const shown = new Promise((done) => details.addEventListener('toggle', done));
      details.querySelector('summary').click();
      await shown;
      return details.querySelector('.body').innerText;
    }})()"""
    found: str = chromium.run(script)
    return found


def _choose(chromium: Browser, name: str, value: str) -> str:
    script = f"""(() => {{
      const field = document.querySelector('[name={name}]');
      field.value = {json.dumps(value)};
      field.dispatchEvent(new Event('input', {{ bubbles: true }}));
      return document.getElementById('shown').textContent;
    }})()"""
    found: str = chromium.run(script)
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_page_is_complete_without_requests_and_fits(
    chromium: Browser, tmp_path: Path, scheme: str, width: int
) -> None:
    _open(chromium, tmp_path, _contents(), scheme=scheme, width=width)
    assert chromium.run("document.querySelector('h1').textContent") == (
        "3 of 5 objects differ on 2 of 3 servers; 1 failed."
    )
    assert _names(chromium) == ["Clean", EVIL, "quality", "REL/Notes"]
    assert chromium.run("document.documentElement.scrollWidth <= innerWidth")
    light = chromium.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light == (scheme == "light")
    assert chromium.run("document.querySelectorAll('figure rect').length") == 8
    assert chromium.console == []
    assert chromium.requests == [(tmp_path / "report.html").as_uri()]


def test_differences_are_expanded_by_field_and_line(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _contents())
    fields = _unfold(chromium, "quality").split()
    assert fields == [
        "Field",
        *("On", "the", "server", "In", "Git"),
        *("users", "1", "equal", "+", "bob"),
        *fields[11:],
    ]
    lines = _unfold(chromium, "REL/Notes")
    assert lines.startswith("- on the server, + in Git\n")
    assert "- line 20\n+ another\n" in lines
    assert "… 17 equal lines" in lines
    assert "line 30" not in lines
    links = "[...document.querySelectorAll('.body a[target]')].map((each) => each.href)"
    assert chromium.run(links) == [f"{ANALYSIS}/", "https://wiki/display/REL/Notes"]


def test_names_are_escaped(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _contents())
    assert EVIL.split("\u2028", maxsplit=1)[0] in _unfold(chromium, EVIL)
    _unfold(chromium, "Clean")
    assert chromium.run("document.querySelectorAll('img').length") == 0
    assert "taken" not in chromium.run("document.title")
    assert len(chromium.requests) == 1
    assert chromium.console == []


def test_filters_select_findings(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _contents())
    assert _choose(chromium, "service", "analysis") == "2 of 4 shown"
    assert _choose(chromium, "what", "different") == "1 of 4 shown"
    assert _names(chromium) == ["quality"]
    assert _choose(chromium, "kind", "page") == "0 of 4 shown"
    chromium.run("document.querySelector('button[type=reset]').click()")
    chromium.run("new Promise((done) => setTimeout(done))")
    assert len(_names(chromium)) == 4
    assert _choose(chromium, "server", REPO) == "1 of 4 shown"


def test_screen_reader_finds_names_for_everything(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _contents())
    unnamed = """[...document.querySelectorAll('a, button, select, input, summary, svg')]
      .filter((each) => !(each.textContent.trim() || each.getAttribute('aria-label')
        || (each.labels && each.labels.length))).length"""
    assert chromium.run(unnamed) == 0
    assert chromium.run("document.documentElement.lang") == "en"
    assert chromium.run("document.querySelectorAll('h1').length") == 1
    tree = chromium.call("Accessibility.getFullAXTree")["nodes"]
    roles = {node["role"]["value"] for node in tree if "role" in node}
    assert {"heading", "search", "radio", "DisclosureTriangle"} <= roles
    named = [
        node["name"]["value"]
        for node in tree
        if node.get("role", {}).get("value") == "DisclosureTriangle"
    ]
    assert "Different: group quality users only in Git: bob" in named


def test_only_visible_findings_are_rendered(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _contents(MANY))
    assert len(_names(chromium)) < 1000
    assert _choose(chromium, "name", "agent-4321") == f"1 of {MANY + 4:,} shown"
    assert _names(chromium) == ["libs/agent/43/agent-4321.jar"]
    assert _choose(chromium, "name", "agent jar") == f"{MANY:,} of {MANY + 4:,} shown"
    before = len(_names(chromium))
    chromium.run("document.querySelector('details:not([hidden]) > .more').click()")
    assert len(_names(chromium)) >= before + 100
    chromium.run("dispatchEvent(new Event('beforeprint'))")
    assert len(_names(chromium)) == PRINTED
    assert chromium.run("document.getElementById('rest').textContent") == (
        f"{MANY - PRINTED:,} more findings: report.json lists all."
    )
    assert chromium.console == []


def _many(findings: int, servers: int) -> Contents:
    contents = Contents("delivery.toolchain.drift", check=True, finished="2026-11-22T04:00:00Z")
    contents.hosts = [f"host{number}" for number in range(servers)]
    for number in range(findings + servers):
        place = number % servers
        contents.add(
            host=f"host{place}",
            service="ci",
            server=f"https://ci{place}.example.com",
            kind="job",
            name=f"{'long-name-' * (number % 12)}.{number}",
            action="update" if number < findings else "none",
            text="differs",
            status=("failed" if number == 7 else "drift") if number < findings else "ok",
        )
    return contents.since()


@pytest.mark.parametrize("view", [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")])
@pytest.mark.parametrize(("findings", "servers"), [(0, 1), (1, 1), (30, 40), (2000, 40)])
def test_page_fits_every_size(
    chromium: Browser, tmp_path: Path, findings: int, servers: int, view: tuple[int, str]
) -> None:
    width, scheme = view
    _open(chromium, tmp_path, _many(findings, servers), width=width, scheme=scheme)
    assert chromium.run("document.documentElement.scrollWidth <= innerWidth")
    assert chromium.run("document.documentElement.scrollHeight") <= 20_000
    assert chromium.run("document.querySelector('figcaption').offsetHeight") < 40
    assert chromium.console == []
    if findings > 7:
        first = chromium.run("document.querySelector('#list .group h3').textContent")
        assert first == "host7 · ci · https://ci7.example.com"
        order = """document.getElementById('objects').compareDocumentPosition(
          document.getElementById('servers-title')) & Node.DOCUMENT_POSITION_FOLLOWING"""
        assert chromium.run(order)


def _night(findings: int, servers: int) -> Contents:
    """Return the report of a night: two failures, then new and older findings on each server."""
    contents = Contents("delivery.toolchain.drift", check=True, finished="2026-11-22T04:00:00Z")
    contents.hosts = ["production"]
    contents.files["ci", "job", "app-1"] = "ci/jobs.yml"
    last: dict[str, dict[str, Any]] = {}
    for number in range(findings):
        server = f"https://ci{number % servers}.example.com"
        values: dict[str, Any] = {"kind": "job", "name": f"app-{number}", "action": "update"}
        sides = {"before": {"enabled": True, "date": "2026-05-31"}, "after": {"enabled": True}}
        finding = {**values, **sides, "host": "production", "service": "ci", "server": server}
        contents.add(**finding, text=f"job app-{number}: differs in: date", status="drift")
        if number % 2:
            key = finding_id(finding)
            last[key] = {**finding, "id": key, "first_seen": "2026-11-10T04:00:00Z"}
    contents.add_refused(("production", "wiki", "https://wiki"), "connection refused", 21, "Read")
    return contents.since(Last(last, "2026-11-21T04:00:00Z"))


def test_new_findings_come_first_and_show_their_change(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _night(4, 1))
    rows = "[...document.querySelectorAll('#list li > details > summary')].map((each) => each.textContent)"
    assert chromium.run(rows) == [
        "new !Failed: server https://wiki connection refused; 21 objects not compared",
        "new ~Different: job app-0 date Server: 2026-05-31, Git: none",
        "new ~Different: job app-2 date Server: 2026-05-31, Git: none",
        "for 12 days ~Different: job app-1 date Server: 2026-05-31, Git: none",
        "for 12 days ~Different: job app-3 date Server: 2026-05-31, Git: none",
    ]
    assert chromium.run("document.querySelectorAll('#list h3').length") == 1
    assert "ci/jobs.yml" in _unfold(chromium, "app-1")
    steps = chromium.run("[...document.querySelectorAll('.copy')].map((each) => each.textContent)")
    own = chromium.run("document.querySelector('.ways a:last-child').getAttribute('href').slice(1)")
    assert steps[0].startswith(f"- id: {own}  # job app-1\n")
    assert steps[1] == f"{COMMANDS['enforce']} -e enforce_only={own}"
    assert steps[2] == f"{COMMANDS['adopt']} -e adopt_findings={own}"


def test_chips_are_the_filters(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _night(8, 2))
    chips = "[...document.querySelectorAll('.chip')].map((each) => each.textContent.trim())"
    assert chromium.run(chips) == [*("9 findings", "1 failed", "8 to update", "4 new", "4 still")]
    assert chromium.run("document.getElementById('more-filters').hidden")
    chromium.run("document.querySelector('.chip-still').click()")
    assert _names(chromium) == ["app-1", "app-3", "app-5", "app-7"]
    assert chromium.run("location.hash") == "#show=still"


_SUMMARIES = """[...document.querySelectorAll('#list li > details > summary')]
  .map((each) => each.textContent.slice(1))"""


def _changes(check: bool, *rows: tuple[str, str, str, Any, Any], by: str = "") -> Contents:
    """Return a report with a finding of each row: name, action, text, and both sides."""
    contents = Contents(check=check, hosts=["one"], finished="2026-11-22T04:00:00Z")
    for name, action, text, before, after in rows:
        place = {"host": "one", "service": "ci", "server": "https://ci", "kind": "node"}
        sides = {"before": before, "after": after, "changed_by": by, "status": "drift"}
        contents.add(**place, **sides, name=name, action=action, text=f"node {name}: {text}")
    return contents.since()


def test_changes_name_their_sides(chromium: Browser, tmp_path: Path) -> None:
    several = {"executors": 2, "labels": ["arm", "x"], "description": "a" * 300}
    other = {"executors": 4, "labels": ["x", "new"], "description": "b" * 300}
    rows: tuple[tuple[str, str, str, Any, Any], ...] = (
        ("a", "update", "differs in executors", {"executors": 2}, {"executors": None}),
        ("b", "update", "differs in executors, labels, description", several, other),
        ("c", "update", "differs in executors; refused", {"executors": 2}, {"executors": 1}),
        ("d", "update", "differs in description", {"description": "a\n"}, {"description": "b\n"}),
        ("e", "delete", "not wanted, too old", {"size": 1}, None),
        ("f", "create", "missing", None, {"size": 1}),
    )
    _open(chromium, tmp_path, _changes(True, *rows, by="bob"))
    assert chromium.run(_SUMMARIES) == [
        "Different: node a executors Server: 2 (set by bob), Git: none",
        (
            "Different: node b executors Server: 2, Git: 4; labels only on the server: arm; only in Git: new;"
            " also differs in description; last changed by bob"
        ),
        "Different: node c executors Server: 2 (set by bob), Git: 1; refused",
        "Different: node d differs in description; last changed by bob",
        "Not in Git: node e Delete on the server: too old; last changed by bob",
        "Missing: node f missing on the server; last changed by bob",
    ]
    deletion = _unfold(chromium, "e")
    assert "Accept, adopt, or delete it on the server" in deletion
    red = """(() => {
      const row = [...document.querySelectorAll('li')].find((each) => each.textContent.includes('Delete on'));
      return [...row.querySelectorAll('.failed')].map((each) => each.textContent);
    })()"""
    assert chromium.run(red) == [
        "Delete on the server",
        "delete it on the server",
        "Delete it on the server, and change nothing else.",
    ]
    assert "epair" not in chromium.run("document.body.innerText")
    _open(chromium, tmp_path, _changes(False, *rows, by="bob"))
    assert chromium.run(_SUMMARIES) == [
        "Different: node a executors Before: 2, After: none",
        (
            "Different: node b executors Before: 2, After: 4; labels removed: arm; added: new;"
            " also updated description"
        ),
        "Different: node c executors Before: 2, After: 1; refused",
        "Different: node d updated description",
        "Not in Git: node e Deleted on the server: too old",
        "Missing: node f created",
    ]


def test_totals_and_legend_are_above_the_findings(chromium: Browser, tmp_path: Path) -> None:
    rows = [(str(number), "update", "differs", {"a": 1}, {"a": 2}) for number in range(2)]
    for check, totals in (
        (True, "Plan: 0 to create, 2 to update, 1 to delete."),
        (False, "Applied: 0 created, 2 updated, 1 deleted; failed: 0, skipped: 0."),
    ):
        _open(chromium, tmp_path, _changes(check, *rows, ("c", "delete", "not wanted", 1, None)))
        assert chromium.run("document.querySelector('h1 + p').textContent") == totals
        assert chromium.run("document.getElementById('legend').checkVisibility()")
        chromium.run("document.querySelector('.chip-delete').click()")
        assert _names(chromium) == ["c"]
        assert chromium.run("location.hash") == "#show=delete"
        assert chromium.run("document.querySelectorAll('details[open] > .body').length") == 0


def test_pictures_show_the_present_page(chromium: Browser, tmp_path: Path) -> None:
    text = drift_page.shown(chromium, drift_page.write_page(tmp_path), "light")
    kept = Path(__file__).resolve().parents[3] / "docs/pictures/drift.txt"
    assert kept.read_text("utf-8") == f"{text}\n", "run make pictures"


def test_single_finding_is_open(chromium: Browser, tmp_path: Path) -> None:
    row = ("a", "update", "differs in executors", {"executors": 2}, {"executors": 1})
    _open(chromium, tmp_path, _changes(True, row))
    assert "On the server" in chromium.run("document.querySelector('li .body').innerText")


def test_narrow_screen_cuts_nothing_off(chromium: Browser, tmp_path: Path) -> None:
    contents = _night(4, 2)
    contents.add(
        host="h", service="ci", server="https://ci", kind="job", name="x", status="unknown"
    )
    _open(chromium, tmp_path, contents, width=390)
    cut = """[...document.querySelectorAll('body *')].filter((each) => each.checkVisibility()
      && !each.closest('.skip') && each.getBoundingClientRect().right > innerWidth).length"""
    assert chromium.run(cut) == 0
    # the mark of a new finding stands in the first line of its row
    beside = """[...document.querySelectorAll('li .since')].every((each) => {
      const kind = each.parentNode.querySelector('.kind').getBoundingClientRect();
      const mark = each.getBoundingClientRect();
      return mark.top < kind.bottom && mark.left > kind.right;
    })"""
    assert chromium.run(beside)
    notes = "[...document.querySelectorAll('.chip-notes')].map((each) => each.textContent.trim())"
    assert chromium.run(notes) == ["1 note"]


@pytest.mark.parametrize(("findings", "servers"), [(6, 3), (40, 20), (2000, 20)])
def test_first_finding_is_visible_and_near(
    chromium: Browser, tmp_path: Path, findings: int, servers: int
) -> None:
    _open(chromium, tmp_path, _night(findings, servers), width=1440)
    assert chromium.run("document.querySelector('li').getBoundingClientRect().bottom") < 900
    stops = """(() => {
      const focusable = 'a[href], button, select, input, summary, [tabindex="0"]';
      const first = document.querySelector('li summary');
      const before = [...document.querySelectorAll(focusable)].filter((each) => each.checkVisibility()
        && each.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_FOLLOWING);
      // the buttons of a group are a single stop
      return before.filter((each) => each.type !== 'radio' || each.checked).length;
    })()"""
    assert chromium.run(stops) <= 5


def test_paper_has_few_pages(chromium: Browser, tmp_path: Path) -> None:
    _open(chromium, tmp_path, _night(2000, 40))
    paper = chromium.call("Page.printToPDF")["data"]
    pages = base64.b64decode(paper).count(b"/Type /Page\n")
    assert 2 <= pages <= 10
    chromium.call("Emulation.setEmulatedMedia", media="print")
    assert "Compared lines: - on the server, + in Git" in chromium.run(
        "document.getElementById('legend').innerText"
    )
    assert chromium.run("document.getElementById('age').innerText") == (
        "Checked 2026-11-22 04:00 UTC"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_bars_have_contrast(chromium: Browser, tmp_path: Path, scheme: str) -> None:
    _open(chromium, tmp_path, _contents(), scheme=scheme)
    colours = """[getComputedStyle(document.body).backgroundColor,
      ...[...document.querySelectorAll('rect')].map((each) => getComputedStyle(each).fill)]"""
    back, *bars = [_luminance(each) for each in chromium.run(colours)]
    assert bars
    for bar in bars:
        assert (max(bar, back) + 0.05) / (min(bar, back) + 0.05) >= 3


def _luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as "rgb(255, 255, 255)" (WCAG 2)."""
    parts = [int(part) / 255 for part in colour[4:-1].split(", ")]
    red, green, blue = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_names_are_sorted_naturally_and_hosts_can_be_filtered(
    chromium: Browser, tmp_path: Path
) -> None:
    contents = Contents(check=True, hosts=["one", "two"], finished="2026-11-22T04:00:00Z")
    for host, name in (("one", "a.10"), ("one", "a.2"), ("two", "a.1")):
        place = {"host": host, "service": "ci", "server": "https://ci", "kind": "job"}
        contents.add(**place, name=name, action="update", text="differs", status="drift")
    _open(chromium, tmp_path, contents.since())
    assert _names(chromium) == ["a.2", "a.10", "a.1"]
    assert _choose(chromium, "host", "two") == "1 of 3 shown"
    assert chromium.run("location.hash") == "#host=two"
    assert _choose(chromium, "name", "nowhere") == "0 of 3 shown"
    assert chromium.run("document.getElementById('none').hidden") is False


def test_url_restores_a_selection_or_finding(chromium: Browser, tmp_path: Path) -> None:
    contents = _contents().since()
    own = next(finding["id"] for finding in contents.findings if finding["name"] == "quality")
    _open(chromium, tmp_path, contents)
    for address, names in (("kind=page", ["REL/Notes"]), ("name=notes", ["REL/Notes"])):
        chromium.run(f"location.hash = '{address}'")
        chromium.call("Page.reload")
        chromium.run("new Promise((done) => setTimeout(done, 300))")
        assert _names(chromium) == names
    chromium.run(f"location.hash = '{own}'")
    chromium.call("Page.reload")
    chromium.run("new Promise((done) => setTimeout(done, 300))")
    assert chromium.run(f"document.getElementById('{own}').open")
    assert chromium.run("location.hash") == f"#{own}"


def test_page_without_differences_reports_that(chromium: Browser, tmp_path: Path) -> None:
    contents = Contents("delivery.toolchain.drift", check=True, finished="2026-11-22T04:00:00Z")
    contents.add(host="h", service="ci", server="", kind="plugin", name="git", status="ok")
    _open(chromium, tmp_path, contents)
    assert chromium.run("document.querySelector('h1.fine').textContent") == (
        "1 object on 1 server is in sync."
    )
    assert chromium.run("document.getElementById('list').textContent") == "Nothing differs."
    assert chromium.run("document.getElementById('filters').hidden")
    assert chromium.console == []
