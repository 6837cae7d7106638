# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the role `release_notes`, and the lookup for custom templates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import requests

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

Fresh = Callable[[str], Sandbox]
#: Cells of fields that cannot be shown, or that do not exist.
_NO = (None, None)


def published(sandbox: Sandbox, title: str) -> str:
    """Return the body of a page in the space REL."""
    response = requests.get(
        f"{sandbox.urls['wiki']}/rest/api/content",
        params={"spaceKey": "REL", "title": title, "expand": "body.storage"},
        headers={"Authorization": f"Bearer {connections.LOGINS['wiki']['token']}"},
        timeout=5,
    )
    (page,) = response.json()["results"]
    body: str = page["body"]["storage"]["value"]
    return body


#: Reads the page after a refusal.
READ = playbook.task("wiki_page_info", {"space": "REL", "title": "Notes"}, "Read the page")


def notes(title: str, jql: str) -> dict[str, Any]:
    return {
        "name": f"Publish {title}",
        "ansible.builtin.import_role": {"name": "delivery.toolchain.release_notes"},
        "vars": {
            "release_notes_space": "REL",
            "release_notes_title": title,
            "release_notes_jql": jql,
        },
    }


def test_two_notes_of_one_play_list_their_own_issues(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    tasks = [notes("First", "key = REL-1"), notes("Second", "key = REL-2")]
    tasks[0]["vars"]["release_notes_browse_url"] = "https://tracker.example.com/browse"
    tasks[1]["vars"]["release_notes_browse_url"] = "https://tracker.example.com/?issue="
    defaults = connections.module_defaults(sandbox.urls)
    run = playbook.run(tmp_path, [playbook.play(tasks, module_defaults=defaults)])
    assert run.code == 0, run.output
    first, second = published(sandbox, "First"), published(sandbox, "Second")
    assert ("REL-1<" in first, "REL-2<" in first) == (True, False)
    assert ("REL-1<" in second, "REL-2<" in second) == (False, True)
    assert 'href="https://tracker.example.com/browse/REL-1"' in first
    assert 'href="https://tracker.example.com/?issue=REL-2"' in second


def test_people_are_shown_by_display_name(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    task = notes("People", "key in (REL-1, REL-22)")
    fields = ("assignee", "status", "created", "comment", "asignee")
    columns = [{"title": field, "field": field} for field in fields]
    task["vars"]["release_notes_columns"] = columns
    defaults = connections.module_defaults(sandbox.urls)
    run = playbook.run(tmp_path, [playbook.play([task], module_defaults=defaults)])
    assert run.code == 0, run.output
    table = ElementTree.fromstring(published(sandbox, "People"))
    cells = [cell.text for cell in table.iter("td")]
    times = cells.pop(3), cells.pop(8)
    assert times[0] == "2026-01-03T09:07:00+00:00"
    assert cells == ["REL-1", "Alice Example", "Done", *_NO, "REL-22", None, "Open", *_NO]
    assert "a value of the field comment cannot be shown" in " ".join(run.output.split())
    assert "no issue in the result has asignee" in " ".join(run.output.split())


def test_issue_text_is_escaped(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    summary = "<b>R&D</b> said \"x\" ]]> 'y' &nbsp; <br> {{ 7 * 7 }} \x01"
    issue = {"key": "REL-90", "summary": summary, "type": "Story", "status": "Done"}
    sandbox.seed({"tracker": {"issues": [issue]}})
    defaults = connections.module_defaults(sandbox.urls)
    tasks = [notes("Odd", "key = REL-90"), notes("Odd", "key = REL-90")]
    run = playbook.run(tmp_path, [playbook.play(tasks, module_defaults=defaults)])
    assert run.code == 0, run.output
    body = published(sandbox, "Odd")
    table = ElementTree.fromstring(f"<x xmlns:ac='a' xmlns:ri='r'>{body}</x>")
    cells = ["".join(cell.itertext()) for cell in table.iter("td")]
    assert summary.removesuffix("\x01") in cells
    pages = [event for event in run.events if event.task.endswith("Publish the page")]
    assert [event.result["changed"] for event in pages] == [True, False]


@pytest.mark.parametrize("section", ["", "Changes"])
def test_no_issues_never_replace_issues(fresh: Fresh, tmp_path: Path, section: str) -> None:
    sandbox = fresh("real")
    if section:
        page = {"id": "1900", "space": "REL", "title": "Notes", "body": "<h1>Changes</h1><p>-</p>"}
        sandbox.seed({"wiki": {"pages": [page]}})
    #: The query, whether in check mode, and further variables.
    none, some = "summary ~ nothing", "key = REL-1"
    calls: list[tuple[str, bool, dict[str, Any]]] = [
        (none, False, {}),
        (none, False, {}),
        (some, False, {}),
        (none, True, {}),
        (none, False, {}),
        (none, False, {"release_notes_allow_empty": True}),
    ]
    tasks = []
    for jql, check, further in calls:
        call = notes("Notes", jql)
        call["vars"] |= {"release_notes_section": section, **further}
        tasks.append({"block": [call], "rescue": [READ], "check_mode": check})
    defaults = connections.module_defaults(sandbox.urls)
    run = playbook.run(tmp_path, [playbook.play(tasks, module_defaults=defaults)])
    assert run.code == 0, run.output
    empty, again, filled, *refused, wanted = (
        event.result for event in run.events if event.task.endswith("Publish the page")
    )
    assert empty["changed"]
    assert "nothing that must_keep matches" in empty["warnings"][0]
    assert not again["changed"]
    assert filled["changed"]
    for one in refused:
        assert one["error"]["kind"] == "conflict"
        assert "contains REL-1, but the new body does not" in one["msg"]
        assert "set release_notes_allow_empty" in one["msg"]
    kept = [event for event in run.events if event.task == READ["name"]]
    assert len(kept) == len(refused) == 2
    assert all("REL-1<" in event.result["page"]["body"] for event in kept)
    assert (wanted["changed"], wanted.get("warnings", [])) == (True, [])
    assert "No issues." in published(sandbox, "Notes")


def test_lookup_converts_booleans_like_the_module(fresh: Fresh, tmp_path: Path) -> None:
    sandbox = fresh("real")
    found = (
        "{{ query('delivery.toolchain.jql_search', 'key = REL-1', validate_query=true,"
        " **connection) | map(attribute='key') }}"
    )
    asked = {"name": "Ask", "ansible.builtin.set_fact": {"found": found}}
    connection = connections.connection("tracker", sandbox.urls["tracker"])
    run = playbook.run(tmp_path, [playbook.play([asked], vars={"connection": connection})])
    assert run.code == 0, run.output
    assert run.event("Ask").result["ansible_facts"] == {"found": ["REL-1"]}
