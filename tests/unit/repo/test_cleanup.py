# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a cleanup deletes the items named by its rules, once, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import progress
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import aql
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup import (
    artifact_cleanup,
    rules,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_cleanup import (
    ArtifactCleanupOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.image_parts import (
    ImageParts,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.rules import (
    CleanupVerdict,
)
from tests.helpers.options import build
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

QUERY = "POST /api/search/aql"
#: Query of a read that the server does not count as a download.
UNCOUNTED = "?skipUpdateStats=true"
DATE = "Fri, 01 Mar 2030 00:00:00 GMT"
NOW = datetime(2030, 3, 1, tzinfo=timezone.utc)


def params(*given: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    return {"rules": [{"repo": "r", **one} for one in given], "parallel": 2, **options}


def row(path: str, days: float = 100, **fields: Any) -> dict[str, Any]:
    folder, _slash, name = path.rpartition("/")
    created = (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    values = {"type": "file", "size": 10, "created": created, "modified": created}
    return {"repo": "r", "path": folder or ".", "name": name, **values, **fields}


def rows(*found: Mapping[str, Any], date: str = DATE, **span: Any) -> Reply:
    body = {"results": list(found), "range": {"total": len(found), **span}}
    return Reply(body="\n" + json.dumps(body), headers={"Date": date})


def paths(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["path"] for entry in entries]


def criteria(server: Server, number: int = 0) -> dict[str, Any]:
    """Return the criteria of the query."""
    queries = [seen for seen in server.stub.seen if server.name(seen) == QUERY]
    text = queries[number].body.decode()
    found: dict[str, Any] = json.JSONDecoder().raw_decode(text.removeprefix("items.find("))[0]
    return found


REPOSITORIES = "GET /api/repositories"


@pytest.fixture(autouse=True)
def repository(server: Server) -> None:
    """Let the server list the repository that most rules name."""
    server.on[REPOSITORIES] = Reply(body=json.dumps([{"key": "r", "type": "LOCAL"}]))


@pytest.fixture
def deleting(server: Server) -> Server:
    """Return a server that carries out every deletion."""
    response = server.response
    server.stub.response = lambda seen: (
        Reply(204)
        if seen.method == "DELETE" and server.name(seen) not in server.on
        else response(seen)
    )
    return server


def test_cleanup_sends_two_queries_and_one_request_per_item(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1.jar"), row("a/ü #2.jar"), row("3.jar"))
    plan, values = deleting.run(ArtifactCleanupOperation, params({"created_before": "4w"}))
    asked = deleting.asked
    # the second query finds the other files of the same versions
    assert asked[:2] == [QUERY, QUERY]
    assert criteria(deleting, 1) == {
        "repo": "r",
        "type": "file",
        "$or": [{"path": "."}, {"path": "a"}],
    }
    assert sorted(asked[2:]) == ["DELETE /r/3.jar", "DELETE /r/a/1.jar", "DELETE /r/a/ü #2.jar"]
    assert paths(values["deleted"]) == ["3.jar", "a/1.jar", "a/ü #2.jar"]
    assert values["deleted"][0] == {
        "repo": "r",
        "path": "3.jar",
        "size": 10,
        "created": "2029-11-21T00:00:00.000Z",
        "reason": "rule 1: older than 4w",
    }
    assert values["reclaimed_bytes"] == 30
    assert values["changed"] is True
    assert list(plan.before) == ["r/3.jar", "r/a/1.jar", "r/a/ü #2.jar"]
    assert plan.after == {}


def test_check_mode_lists_the_items_to_delete(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"), row("a/2", days=50), row("a/3", days=1))
    options = params({"path": "a", "keep_last": 2, "created_before": "1d"})
    plan, predicted = deleting.run(ArtifactCleanupOperation, options, check=True)
    assert deleting.asked == [QUERY]
    run_plan, done = deleting.run(ArtifactCleanupOperation, options)
    assert predicted == done
    assert (plan.before, plan.after) == (run_plan.before, run_plan.after)


@pytest.mark.parametrize(
    ("age", "sent"),
    [("4w", "4w"), ("28d", "4w"), ("30d", "30d"), ("12h", "720minutes"), ("48h", "2d")],
)
def test_ages_are_sent_in_units_of_the_query_language(
    deleting: Server, age: str, sent: str
) -> None:
    deleting.on[QUERY] = rows()
    deleting.run(ArtifactCleanupOperation, params({"created_before": age}))
    assert criteria(deleting)["created"] == {"$before": sent}


def test_rule_becomes_the_query(deleting: Server) -> None:
    deleting.on[QUERY] = rows()
    given = {"path": "/a/b*/", "name": 'x"y', "depth": 3, "properties": {"k": ["v", "w*"]}}
    deleting.run(ArtifactCleanupOperation, params(given))
    assert criteria(deleting) == {
        "repo": "r",
        "type": "file",
        "path": {"$match": "a/b*"},
        "name": 'x"y',
        "depth": 3,
        "$and": [{"@k": "v"}, {"@k": {"$match": "w*"}}],
    }
    text = deleting.stub.seen[0].body.decode()
    fields = '"repo", "path", "name", "type", "size", "created", "modified", "property"'
    assert text.endswith(f".include({fields})")


# --- deleted and kept items -----------------------------------------------------------------------


def judged(given: Mapping[str, Any], *found: Mapping[str, Any]) -> list[CleanupVerdict]:
    (one,) = rules.rules_of([build(rules.RuleOptions, repo="r", **given)], force=True)
    parts = ImageParts()
    known = artifact_cleanup.items_of(one, found, parts)
    selected = parts.selectable(
        item for item in known.values() if artifact_cleanup.matches_rule(one, item)
    )
    found_versions = rules.versions_of(one, known, selected)
    return artifact_cleanup.verdicts(one, found_versions, NOW, parts)


def verdicts(given: Mapping[str, Any], *found: Mapping[str, Any]) -> dict[str, bool]:
    """Map paths to whether they are deleted."""
    return {each.item.path: each.goes for each in judged(given, *found)}


def reasons(given: Mapping[str, Any], *found: Mapping[str, Any]) -> dict[str, str]:
    return {each.item.path: each.reason for each in judged(given, *found)}


def test_newest_of_each_folder_are_kept_regardless_of_age() -> None:
    found = [row("a/1", 40), row("a/2", 50), row("a/3", 1), row("b/1", 60), row("a/c/1", 70)]
    given = {"keep_last": 2, "created_before": "30d"}
    # the recent item counts, but is not a candidate
    assert verdicts(given, *found) == {"a/1": False, "a/2": True, "b/1": False, "a/c/1": False}
    assert reasons(given, *found)["a/1"] == "rule 1: among the newest 2 of 'a'"
    assert reasons(given, *found)["a/2"] == "rule 1: older than 30d, not among the newest 2 of 'a'"


def test_excluded_items_do_not_count_as_newest() -> None:
    found = [row("a/latest", 1), row("a/1", 2), row("a/2", 3)]
    given = {"keep_last": 1, "exclude": ["*/latest"]}
    assert verdicts(given, *found) == {"a/latest": False, "a/1": False, "a/2": True}


@pytest.mark.parametrize("glob", ["a/**", "/a/*/x", "r/a/**", "**x", "a/b/?", "a/", "/a/b/"])
def test_exclusions_are_globs_on_the_full_path(glob: str) -> None:
    assert verdicts({"exclude": [glob]}, row("a/b/x"), row("y")) == {"a/b/x": False, "y": True}


@pytest.mark.parametrize("found", [["x/a.log", "x/y/b.log"], ["x/y/b.log"]])
@pytest.mark.parametrize("glob", ["x/*.log", "r/x/*.log", "/x/*"])
def test_exclusion_in_one_folder_is_legal(deleting: Server, glob: str, found: list[str]) -> None:
    deleting.on[QUERY] = rows(*map(row, found))
    options = params({"exclude": [glob], "created_before": "1d"})
    _plan, values = deleting.run(ArtifactCleanupOperation, options, check=True)
    assert [item["path"] for item in values["deleted"]] == ["x/y/b.log"]
    assert "x/y/b.log': * does not match slashes" in deleting.warnings[0]


@pytest.mark.parametrize("glob", ["*x", "r/*x"])
def test_exclusion_possibly_meant_across_folders_is_rejected(deleting: Server, glob: str) -> None:
    deleting.on[QUERY] = rows(row("a/b/x"), row("y"))
    options = params({"exclude": [glob], "created_before": "1d"})
    error = deleting.fails(ArtifactCleanupOperation, options)
    assert (error.kind, set(deleting.asked)) == ("invalid", {QUERY})
    assert f"rule 1: exclude: '{glob}' does not match" in error.message
    assert "* does not match slashes, write '" in error.message


@pytest.mark.parametrize(
    ("glob", "found"), [("*.keep", "b/c/x.keep"), ("r/*.keep", "b/x.keep"), ("*old", "b/c/old/x")]
)
def test_exclusion_possibly_meant_for_folder_content_is_rejected(
    deleting: Server, glob: str, found: str
) -> None:
    deleting.on[QUERY] = rows(row("b", **FOLDER), row(found))
    options = params({"type": "folder", "name": "b", "exclude": [glob]})
    error = deleting.fails(ArtifactCleanupOperation, options)
    assert (error.kind, deleting.asked) == ("invalid", [QUERY])
    assert f"rule 1: exclude: '{glob}' does not match" in error.message


def test_folder_pattern_possibly_meant_across_folders_gives_a_warning(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/b/c/x"))
    plan, _values = deleting.run(ArtifactCleanupOperation, params({"path": "a/*"}))
    assert not plan.changed
    assert "rule 1: path: 'a/*' does not match 'a/b/c'" in " ".join(deleting.warnings)


def test_age_is_measured_by_the_clock_of_the_server(deleting: Server) -> None:
    """Verify this with a server clock in 2030: by the local clock, all items lie in the future."""
    deleting.on[QUERY] = rows(row("a/old", 31), row("a/young", 29))
    _plan, values = deleting.run(
        ArtifactCleanupOperation, params({"created_before": "30d", "keep_last": 1})
    )
    assert paths(values["deleted"]) == ["a/old"]
    assert values["kept"] == []


def test_missing_date_of_server_is_an_error(deleting: Server) -> None:
    reply = rows(row("a/old", 31))
    deleting.on[QUERY] = Reply(body=reply.body)
    error = deleting.fails(
        ArtifactCleanupOperation, params({"created_before": "30d", "keep_last": 1})
    )
    assert error.kind == "protocol"
    assert "Date" in error.message
    # without keep_last the server itself selects the old items
    _plan, values = deleting.run(ArtifactCleanupOperation, params({"created_before": "30d"}))
    assert paths(values["deleted"]) == ["a/old"]


IGNORED = [
    {"path": "a"},
    {"name": "*.jar"},
    {"depth": 2},
    {"created_before": "200d"},
    {"properties": {"k": "v"}},
]


@pytest.mark.parametrize("given", IGNORED)
def test_items_outside_of_the_query_are_kept(deleting: Server, given: dict[str, Any]) -> None:
    others = [row("b/c/1.zip"), row("b/c/2.zip", repo="other"), row("b/c", type="folder")]
    has = {"properties": [{"key": "k", "value": "w"}]}
    deleting.on[QUERY] = rows(*others, {**row("b/c/3.zip"), **has})
    _plan, values = deleting.run(ArtifactCleanupOperation, params(given))
    assert (values["deleted"], values["kept"]) == ([], [])
    assert deleting.asked == [QUERY]


def test_properties_in_several_rows_are_combined() -> None:
    one = {**row("a/1"), "properties": [{"key": "k", "value": "v"}]}
    other = {**row("a/1"), "properties": [{"key": "k", "value": "w"}]}
    assert verdicts({"properties": {"k": ["v", "w"]}}, one, other) == {"a/1": True}
    assert verdicts({"properties": {"k": ["v", "x"]}}, one, other) == {}
    assert verdicts({"properties": {"k": "?"}}, one) == {"a/1": True}


FOLDER: dict[str, Any] = {"type": "folder", "size": 0}


def test_folder_is_deleted_with_its_content(deleting: Server) -> None:
    deleting.on[QUERY] = rows(
        row("a/1", **FOLDER), row("a/1/x"), row("a/1/b/y"), row("a/2", **FOLDER), row(".", **FOLDER)
    )
    _plan, values = deleting.run(ArtifactCleanupOperation, params({"path": "a", "type": "folder"}))
    sizes = {entry["path"]: entry["size"] for entry in values["deleted"]}
    assert sizes == {"a/1": 20, "a/2": 0}
    assert criteria(deleting) == {
        "repo": "r",
        "type": "any",
        "$or": [{"type": "folder", "path": "a"}, {"type": "file", "path": {"$match": "a*"}}],
    }


def test_folder_with_a_kept_item_is_kept() -> None:
    found = [
        row("a", **FOLDER),
        row("a/x", 1),
        row("b", **FOLDER),
        row("b/keep"),
        row("c", **FOLDER),
        row("c/x"),
    ]
    given = {"type": "folder", "created_before": "30d", "exclude": ["*/keep"]}
    assert verdicts(given, *found) == {"a": False, "b": False, "c": True}
    assert reasons(given, *found)["a"] == "rule 1: contains 'a/x', younger than 30d"
    assert reasons(given, *found)["b"] == "rule 1: contains 'b/keep', excluded by '*/keep'"


def test_excluded_nested_folder_keeps_its_parent() -> None:
    found = [row("a", **FOLDER), row("a/keep/x"), row("b", **FOLDER), row("b/x")]
    given = {"path": ".", "type": "folder", "exclude": ["a/keep", "b"]}
    assert verdicts(given, *found) == {"a": False, "b": False}
    given["exclude"] = ["keep"]
    assert verdicts(given, *found) == {"a": True, "b": True}


def test_folder_with_a_kept_folder_is_kept() -> None:
    found = [row("a", 90, **FOLDER), row("b", 10, **FOLDER), row("a/c", 90, **FOLDER)]
    given = {"type": "folder", "keep_last": 1}
    assert verdicts(given, *found) == {"a": False, "b": False, "a/c": False}


def image(tag: str, days: float, **fields: Any) -> list[dict[str, Any]]:
    manifest = row(f"{tag}/manifest.json", days, **fields)
    return [row(f"{tag}/sha256__1", 500, size=1000), manifest]


def test_tags_are_counted_by_image_and_deleted_as_one_item(deleting: Server) -> None:
    found = [
        *image("team/app/1", 90),
        *image("team/app/2", 80),
        *image("team/app/3", 1),
        *image("team/other/1", 90),
        *image("team/app/sha256__abc", 90),
        row("team/app/_uploads/x"),
        row("manifest.json"),
    ]
    deleting.on[QUERY] = rows(*found)
    given = {"keep_last": 2, "keep_last_by": "image", "created_before": "30d"}
    _plan, values = deleting.run(ArtifactCleanupOperation, params(given))
    read = [f"GET /r/team/app/{tag}/manifest.json{UNCOUNTED}" for tag in ("1", "2", "3")]
    read.append(f"GET /r/team/app/sha256__abc/manifest.json{UNCOUNTED}")
    assert sorted(deleting.asked[1:-1]) == read
    assert (deleting.asked[0], deleting.asked[-1]) == (QUERY, "DELETE /r/team/app/1")
    assert values["deleted"][0]["size"] == 1010
    assert paths(values["kept"]) == ["team/app/2", "team/other/1"]
    assert criteria(deleting) == {"repo": "r", "type": "file"}


def test_age_of_a_tag_is_its_last_push() -> None:
    given = {"created_before": "30d", "keep_last_by": "image", "path": "app", "name": "l*"}
    pushed = row("x", 1)["created"]
    found = [*image("app/latest", 90, modified=pushed), *image("app/last", 90), *image("app/1", 90)]
    assert verdicts(given, *found) == {"app/last": True}


def test_overlapping_rules_delete_each_item_once(deleting: Server) -> None:
    first = rows(row("a/1"), row("a/2", 50), row("b/1"))
    second = rows(row("a", **FOLDER), row("a/1"), row("a/2", 50), row("c", **FOLDER))
    deleting.on[QUERY] = [first, second]
    given = params({"name": "*", "keep_last": 1}, {"type": "folder", "created_before": "1d"})
    _plan, values = deleting.run(ArtifactCleanupOperation, given)
    assert paths(values["deleted"]) == ["a", "c"]
    assert sorted(deleting.asked[2:]) == ["DELETE /r/a", "DELETE /r/c"]
    # an item is not reported as kept if another rule deletes its folder
    assert paths(values["kept"]) == ["b/1"]


def test_long_cleanup_reports_progress(deleting: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    deleting.on[QUERY] = [rows(row("a")), rows(row("b"))]
    reported: list[str] = []
    with progress.progress_to(reported.append):
        deleting.run(
            ArtifactCleanupOperation, {**params({"name": "a"}, {"name": "b"}), "parallel": 1}
        )
    assert reported == [
        *(f"searching for items that match the rules: {done} of 2" for done in (1, 2)),
        *(f"deleting items: {done} of 2" for done in (1, 2)),
    ]


NAMES = st.text("ab/.*?+[", min_size=1, max_size=6)


@given(NAMES, NAMES)
def test_query_matches_at_least_the_glob(glob: str, text: str) -> None:
    """In the query language `*` and `?` match slashes, too [repo-17]."""
    rule = rules.CleanupRule(1, "r", "file", path=glob)
    wanted = json.loads(rule.query().removeprefix("items.find(").partition(").include")[0])["path"]
    sent = wanted["$match"] if isinstance(wanted, dict) else wanted

    def like(glob: str, text: str) -> bool:
        if glob == "":
            return text == ""
        if glob[0] == "*":
            return any(like(glob[1:], text[start:]) for start in range(len(text) + 1))
        return text != "" and glob[0] in ("?", text[0]) and like(glob[1:], text[1:])

    assert like(sent, text) or not rules.matches(glob, text)


@given(st.integers(1, 10_000), st.sampled_from("wdhm"))
def test_age_is_converted_without_loss(number: int, unit: str) -> None:
    names = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes"}
    time = timedelta(**{names[unit]: number})
    text = aql.age(time)
    value = int(text.rstrip("abcdefghijklmnopqrstuvwxyz"))
    units = {"w": "weeks", "d": "days", "minutes": "minutes"}
    assert timedelta(**{units[text.lstrip("0123456789")]: value}) == time


# --- safety limits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "force"),
        ({"path": "*"}, "force"),
        ({"path": "/", "created_before": "30d"}, "path is '/': use . for the root"),
        ({"path": "../x"}, "path is '../x'"),
        ({"name": "a/*.jar"}, "name is 'a/*.jar': set path to the folder"),
        ({"type": "folder"}, "force"),
        ({"type": "folder", "path": "."}, "force"),
        ({"type": "any", "path": "/.", "name": "*"}, "force"),
        ({"type": "any", "depth": 1}, "force"),
        ({"exclude": ["a"]}, "force"),
        ({"repo": "*", "name": "x"}, "wildcards"),
        ({"repo": "a/b", "name": "x"}, "repo"),
        ({"keep_last": 0}, "keep_last is 0: set it to 1 or more"),
        ({"depth": 0}, "depth"),
        ({"created_before": "0d"}, "created_before"),
        ({"created_before": "soon"}, "created_before"),
        ({"name": "x", "exclude": ["/"]}, "exclude"),
        ({"name": "x", "properties": {"stage": None}}, "properties.stage"),
        ({"properties": {"stage": []}}, "properties.stage"),
        ({"name": "x", "type": "file", "keep_last_by": "image"}, "keep_last_by"),
        ({"name": "1.0+7", "keep_last_by": "image"}, "Helm stores this version as '1.0_7'"),
        ({"name": "a/b"}, "name is 'a/b': set path to the folder"),
    ],
)
def test_dangerous_rule_is_rejected_before_any_request(
    server: Server, given: dict[str, Any], words: str
) -> None:
    error = server.fails(ArtifactCleanupOperation, params({"name": "fine"}, given))
    assert error.kind == "invalid"
    assert error.message.startswith(("rule 2", "rules[1]: "))
    assert words in error.message
    assert server.asked == []


@pytest.mark.parametrize(
    "given", [{"path": "."}, {"depth": 1}, {"type": "folder", "path": ".", "keep_last": 3}]
)
def test_limited_rule_needs_no_force(server: Server, given: dict[str, Any]) -> None:
    server.on[QUERY] = rows()
    assert not server.run(ArtifactCleanupOperation, params(given))[0].changed


@pytest.mark.parametrize("field", ["repo", "path", "name"])
def test_items_with_unknown_location_are_a_protocol_error(server: Server, field: str) -> None:
    server.on[QUERY] = rows(row("a/1"), {**row("a/2"), field: None})
    error = server.fails(ArtifactCleanupOperation, params({"name": "*.jar"}))
    assert error.kind == "protocol"
    assert "does not report repo, path, name of each item" in error.message


@pytest.mark.parametrize("odd", [5, "x", [5, None, {"key": "a"}], {"key": "a"}])
def test_malformed_properties_count_as_none(deleting: Server, odd: Any) -> None:
    deleting.on[QUERY] = rows(row("a/1", properties=odd, size=None, created=7))
    _plan, values = deleting.run(ArtifactCleanupOperation, params({"name": "1"}))
    assert values["deleted"][0]["size"] == 0


def test_force_allows_a_whole_repository(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"))
    _plan, values = deleting.run(ArtifactCleanupOperation, params({}, force=True))
    assert paths(values["deleted"]) == ["a/1"]
    assert criteria(deleting) == {"repo": "r", "type": "file"}


@pytest.mark.parametrize("check", [False, True])
def test_exceeding_max_deletions_is_rejected_before_any_deletion(
    deleting: Server, check: bool
) -> None:
    deleting.on[QUERY] = rows(row("a/1"), row("a/2"), row("a/3"))
    with pytest.raises(ToolchainError, match=r"3 items, more than max_deletions \(2\)") as caught:
        deleting.run(ArtifactCleanupOperation, params({"path": "a"}, max_deletions=2), check=check)
    assert caught.value.kind == "invalid"
    assert deleting.asked == [QUERY]


def test_trimmed_query_result_is_a_protocol_error(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"), notification="results are trimmed")
    error = deleting.fails(ArtifactCleanupOperation, params({"path": "a"}))
    assert error.kind == "protocol"
    assert "results are trimmed" in error.message
    assert deleting.asked == [QUERY]


# --- errors ---------------------------------------------------------------------------------------


def listing(*names: str) -> Reply:
    return Reply(body={"files": [{"uri": f"/{name}", "folder": False} for name in names]})


LISTING = "GET /api/storage/r/a?list&listFolders=1"


def test_failed_deletion_does_not_stop_the_others(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"), row("a/2"), row("a/3"))
    deleting.on["DELETE /r/a/2"] = Reply(403, "needs DELETE permission")
    error = deleting.fails(ArtifactCleanupOperation, params({"path": "a"}))
    assert error.kind == "permission"
    assert error.message.startswith("1 of 3 deletions failed, the first: deleting 'r/a/2'")
    assert paths(error.result["deleted"]) == ["a/1", "a/3"]
    assert error.result["failed_deletions"][0]["path"] == "a/2"
    assert "403" in error.result["failed_deletions"][0]["reason"]
    assert error.result["reclaimed_bytes"] == 20
    assert error.result["changed"] is True


def test_item_deleted_by_another_client_is_returned_as_gone(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"), row("a/2"))
    deleting.on["DELETE /r/a/1"] = Reply(404, "Nothing to delete")
    deleting.on[LISTING] = listing("2")
    _plan, values = deleting.run(ArtifactCleanupOperation, params({"path": "a"}))
    assert paths(values["gone"]) == ["a/1"]
    assert paths(values["deleted"]) == ["a/2"]
    deleting.on[QUERY] = rows(row("a/1"))
    _plan, values = deleting.run(ArtifactCleanupOperation, params({"path": "a"}))
    assert (values["changed"], values["deleted"]) == (False, [])


def test_item_that_no_read_shows_is_returned_as_gone(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"))
    deleting.on["DELETE /r/a/1"] = Reply(404)
    deleting.on[LISTING] = Reply(405)
    deleting.on["HEAD /r/a/1"] = Reply(405)
    _plan, values = deleting.run(ArtifactCleanupOperation, params({"path": "a"}))
    assert paths(values["gone"]) == ["a/1"]


def test_hidden_item_is_not_returned_as_gone(deleting: Server) -> None:
    """Server fact [repo-22]: an item without delete permission may get a 404."""
    deleting.on[QUERY] = rows(row("a/1"))
    deleting.on["DELETE /r/a/1"] = Reply(404)
    deleting.on[LISTING] = listing("1")
    error = deleting.fails(ArtifactCleanupOperation, params({"path": "a"}))
    assert error.kind == "not_found"
    assert "lacks the permission to delete it" in error.message


@pytest.mark.parametrize(("left", "done"), [((), True), (("1",), False)])
def test_lost_response_is_verified(deleting: Server, left: tuple[str, ...], done: bool) -> None:
    deleting.on[QUERY] = rows(row("a/1"))
    deleting.on["DELETE /r/a/1"] = Reply(cut=True)
    deleting.on[LISTING] = listing(*left)
    if done:
        _plan, values = deleting.run(ArtifactCleanupOperation, params({"path": "a"}))
        assert paths(values["deleted"]) == ["a/1"]
    else:
        error = deleting.fails(ArtifactCleanupOperation, params({"path": "a"}))
        assert error.outcome_unknown
        assert error.result["deleted"] == []
    assert deleting.asked.count("DELETE /r/a/1") == 1


def test_rejected_login_stops_the_cleanup(server: Server) -> None:
    server.on[QUERY] = rows(*[row(f"a/{number}") for number in range(20)])
    refused: list[Seen] = []

    def refuse(seen: Seen) -> Reply:
        refused.append(seen)
        return Reply(401, "Bad credentials")

    for number in range(20):
        server.on[f"DELETE /r/a/{number}"] = refuse
    error = server.fails(ArtifactCleanupOperation, params({"path": "a"}))
    assert error.kind == "auth"
    assert len(refused) <= 2
    assert len(error.result["failed_deletions"]) == 20


def test_query_error_of_server_is_shown(server: Server) -> None:
    server.on[QUERY] = Reply(400, "Failed to parse query: no such field")
    error = server.fails(ArtifactCleanupOperation, params({"name": "x"}))
    assert error.kind == "rejected"
    assert "Failed to parse query" in error.message


# --- invalid input --------------------------------------------------------------------------------


def test_unknown_repository_is_not_found(server: Server) -> None:
    server.on[QUERY] = rows()
    error = server.fails(
        ArtifactCleanupOperation, params({"name": "x"}, {"repo": "typo", "name": "x"})
    )
    assert (error.kind, "'typo'" in error.message) == ("not_found", True)
    assert server.asked.count(REPOSITORIES) == 1


@pytest.mark.parametrize(
    ("given", "found", "message"),
    [
        (
            {"repo": "typo", "name": "x"},
            rows(),
            "1 of 3 rules failed, the first: rule 2: repo: reading the repositories: there is no",
        ),
        (
            {"repo": "typo", "name": "x"},
            Reply(400, "no such field"),
            "1 of 3 rules failed, the first: searching for items that match rule 2 in 'typo'",
        ),
        (
            {"path": "a", "released_in": "typo"},
            rows(row("a/1.0-SNAPSHOT/a-1.0-SNAPSHOT.jar")),
            "1 of 3 rules failed, the first: rule 2: released_in: reading the repositories: there",
        ),
    ],
)
def test_failed_rule_does_not_hide_the_deletions_of_others(
    server: Server, given: dict[str, Any], found: Reply, message: str
) -> None:
    server.on[QUERY] = [rows(row("a/1"), row("a/2")), found, rows(row("b/1"))]
    options = params({"path": "a"}, given, {"path": "b"})
    error = server.fails(ArtifactCleanupOperation, options)
    assert error.kind in ("not_found", "rejected")
    assert error.message.startswith(message)
    assert [one.name for one in error.findings if one.action == "delete"] == [
        "r/a/1",
        "r/a/2",
        "r/b/1",
    ]
    assert not any(asked.startswith("DELETE") for asked in server.asked)


def test_unlistable_repositories_are_not_verified(server: Server) -> None:
    server.on[QUERY] = rows()
    server.on[REPOSITORIES] = Reply(403, "no")
    assert not server.run(ArtifactCleanupOperation, params({"name": "x"}))[0].changed
    assert "cannot check whether the repository 'r' exists" in server.warnings[0]


def test_exclusion_without_match_gives_a_warning(deleting: Server) -> None:
    deleting.on[QUERY] = rows(row("a/1"), row("b/keep/2"))
    given = {"path": "*", "created_before": "1d", "exclude": ["b/keep", "b/keep/*", "c/*"]}
    deleting.run(ArtifactCleanupOperation, params(given))
    assert ["'c/*'" in warning for warning in deleting.warnings] == [True]
    assert REPOSITORIES not in deleting.asked
