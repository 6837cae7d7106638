# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that careless input is rejected, inside the process and in separate processes.

A separate process runs the same module with the same arguments: one input that the module rejects,
and one that Ansible rejects, show that it gets them. Such input used to change another object or to show a secret.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers import playbook

#: Nothing listens here: a request would fail with another kind of error.
URL = "http://127.0.0.1:1/base"
LOGIN = {"username": "canary-user", "password": "canary-password"}
CI = {"url": URL, **LOGIN}
ANALYSIS = {"url": URL, "username": "admin", "ltoken": "canary-ltoken"}
TOKEN = {"url": URL, "token": "canary-token"}
NUMBER = "the number 1.1: expected a string; YAML reads 1.10 as 1.1, so put it into quotes"
PASSWORD = {"name": "bob", "password": "canary-of-bob"}
PARAMETERS = {"db_pwd": "canary-db", "passphrase": "pw1", "PRIVATE_KEY": "canary-key", "N": "can1"}
#: Maps a name to the module, its arguments, and the start of the message.
SLIPS: dict[str, tuple[str, dict[str, Any], str]] = {
    "promotes another build": (
        "build_promote",
        {**TOKEN, "build_name": "agent", "build_number": 1.10, "status": "released"},
        f"build_number is {NUMBER}",
    ),
    "deletes another build": (
        "build_record",
        {**TOKEN, "build_name": "agent", "build_numbers": [1.10]},
        f"build_numbers[0] is {NUMBER}",
    ),
    "opens a page by a variable without a value": (
        "wiki_restriction",
        {**TOKEN, "page_id": "1002", "read": {"users": None}},
        "read has only null values: set one of them, or omit read",
    ),
    "opens a new page by a variable without a value": (
        "wiki_page",
        {
            **TOKEN,
            "space": "REL",
            "title": "Secret",
            "body": "<p>s</p>",
            "restrictions": {"read": {"users": None, "groups": None}},
        },
        "restrictions.read has only null values",
    ),
    "keeps another build": (
        "build_retention",
        {**TOKEN, "build_name": "agent", "count": 1, "keep": ["1.9", 1.10]},
        f"keep[1] is {NUMBER}",
    ),
    "builds another version": (
        "ci_job_build",
        {**CI, "job": "release", "parameters": {**PARAMETERS, "VERSION": 1.10}},
        f"parameters.VERSION is {NUMBER}",
    ),
    "builds another version among many": (
        "ci_job_build",
        {**CI, "builds": [{"job": "a"}, {"job": "b", "parameters": {"VERSION": ["1", 1.10]}}]},
        f"builds[1].parameters.VERSION[1] is {NUMBER}",
    ),
    "builds a version that is a mapping": (
        "ci_job_build",
        {**CI, "job": "release", "parameters": {"VERSION": {"major": 1}}},
        "parameters.VERSION is a mapping: expected a string",
    ),
    "a secret that is a number": (
        "ci_job_build",
        {**CI, "job": "release", "parameters": {"API_TOKEN": 47.11}},
        "parameters.API_TOKEN is a number: expected a string",
    ),
    "writes another page": (
        "wiki_page",
        {**TOKEN, "space": "DOCS", "title": 1.10, "body": "<p/>"},
        f"title is {NUMBER}",
    ),
    "makes another user": (
        "analysis_user",
        {**ANALYSIS, "name": 1.10, "password": "canary-of-bob"},
        f"name is {NUMBER}",
    ),
    "sets another property": (
        "artifact_properties",
        {**TOKEN, "repo": "generic", "path": "a.txt", "properties": {"version": 1.10}},
        f"properties.version is {NUMBER}",
    ),
    "texts for attachments": (
        "wiki_page",
        {**TOKEN, "page_id": "1002", "attachments": ["a.txt"]},
        "attachments[0] is a string: expected a mapping of src, name, comment",
    ),
    "texts for users": (
        "analysis_config",
        {**ANALYSIS, "users": [PASSWORD, "alice:canary-of-alice"]},
        "users[1] is a string: expected a mapping of name, password",
    ),
    "an empty text for thresholds": (
        "analysis_issue_info",
        {**ANALYSIS, "project": "toolchain", "thresholds": ""},
        "thresholds is a string: expected a list of mappings",
    ),
    "no thresholds": (
        "analysis_issue_info",
        {**ANALYSIS, "project": "toolchain", "thresholds": []},
        "thresholds is empty",
    ),
    "a wrong option beside parameters": (
        "ci_job_build",
        {**CI, "job": "release", "parameters": PARAMETERS, "delay": "soon"},
        "delay is the string 'soon': expected an integer",
    ),
    "a number that the system cannot hold": (
        "ci_job_build",
        {**CI, "job": "release", "console_lines": 10**19},
        f"console_lines is the number {10**19}: expected a smaller number",
    ),
    "an unknown option beside arguments": (
        "ci_script",
        {**CI, "script": "1", "arguments": PARAMETERS, "pasword": "canary-mistyped"},
        "Unsupported parameters for",
    ),
    "a string beside arguments that should be a list": (
        "ci_script",
        {**CI, "script": ["1"], "arguments": PARAMETERS},
        "script is a list: expected a string",
    ),
    "every issue": ("jql_search", {**TOKEN, "jql": " "}, "jql is empty"),
}
#: The input that also goes to separate processes.
SEPARATE = ("opens a page by a variable without a value", "an unknown option beside arguments")
RUNS = [(what, "inside") for what in SLIPS] + [(what, "outside") for what in SEPARATE]
CANARIES = (
    *("canary-password", "canary-ltoken", "canary-token", "canary-of", "canary-mistyped"),
    *("canary-db", "pw1", "canary-key", "can1", "47.11"),
)
#: Maps a name to an expression with a lookup or a filter, and to words of its error message.
EXPRESSIONS: dict[str, tuple[str, str]] = {
    "an empty query": ("{} | delivery.toolchain.jql", "every issue"),
    "another version": ("{'fixVersion': 1.10} | delivery.toolchain.jql", f"fixVersion is {NUMBER}"),
    "another value": ("1.10 | delivery.toolchain.jql_quote", f"the value to quote is {NUMBER}"),
    "nothing to search": ("{} | delivery.toolchain.analysis_query", "every issue"),
    "an empty term": ("query('delivery.toolchain.jql_search', ' ', url=url)", "_terms[0] is empty"),
    "another page": (
        "query('delivery.toolchain.wiki_page', space='DOCS', title=1.10, url=url)",
        f"title is {NUMBER}",
    ),
    "another tag": (
        "query('delivery.toolchain.docker_tags', 1.10, repo='docker', url=url)",
        f"_terms[0] is {NUMBER}",
    ),
}


@pytest.fixture(scope="module")
def slipped(tmp_path_factory: pytest.TempPathFactory) -> playbook.Run:
    """Run all invalid input in both modes, with the maximum verbosity of Ansible."""
    tasks = [
        playbook.task(
            module, arguments, f"{what}, {way}", vars={"toolchain_in_process": way == "inside"}
        )
        for what, way in RUNS
        for module, arguments, _words in [SLIPS[what]]
    ]
    for what, (expression, _words) in EXPRESSIONS.items():
        shown = {"ansible.builtin.debug": {"msg": "{{ " + expression + " }}"}}
        tasks.append({"name": what, **shown, "vars": {"url": URL}, "ignore_errors": True})
    folder = tmp_path_factory.mktemp("slips")
    return playbook.run(folder, [playbook.play(tasks)], arguments=["-vvvv"])


@pytest.mark.parametrize(("what", "way"), RUNS)
def test_invalid_input_is_rejected_before_any_request(
    slipped: playbook.Run, what: str, way: str
) -> None:
    event = slipped.event(f"{what}, {way}")
    assert event.status == "failed"
    assert event.result["msg"].startswith(SLIPS[what][2]), event.result["msg"]
    if "error" in event.result:
        assert event.result["error"]["kind"] == "invalid"
        assert event.result["http"]["requests"] == 0


@pytest.mark.parametrize("what", EXPRESSIONS)
def test_invalid_expression_is_rejected(slipped: playbook.Run, what: str) -> None:
    event = slipped.event(what)
    assert event.status == "failed"
    assert EXPRESSIONS[what][1] in event.result["msg"], event.result["msg"]


def test_rejection_shows_no_secret(slipped: playbook.Run) -> None:
    results = [event.result for event in slipped.events if ", " in event.task]
    assert len(results) == len(RUNS)
    assert all("module_args" in result["invocation"] for result in results)
    shown = str(results)
    assert [canary for canary in CANARIES if canary in shown] == []
