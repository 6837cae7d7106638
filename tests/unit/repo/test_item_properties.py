# SPDX-License-Identifier: GPL-3.0-or-later
"""Test properties of existing items: read, changed if they differ, read again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer.artifact_properties import (
    ArtifactPropertiesOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

READ = "GET /api/storage/r/d/p?properties"
PUT = "PUT /api/storage/r/d/p?properties=a=1&recursive=0"
QUERY = "POST /api/search/aql"
NONE = Reply(404, {"errors": [{"status": 404, "message": "No properties could be found."}]})
LIST, LISTED = "GET /api/repositories", Reply(body='[{"key": "r", "type": "LOCAL"}]')
MISSING = Reply(404, {"errors": [{"status": 404, "message": "Unable to find item"}]})


def params(**given: Any) -> dict[str, Any]:
    return {"repo": "r", "path": "d/p", "properties": {"a": 1}, **given}


def has(**properties: str) -> Reply:
    return Reply(body={"properties": {name: [value] for name, value in properties.items()}})


def below(**items: dict[str, str]) -> Reply:
    rows = [
        {
            "repo": "r",
            "path": "d/p",
            "name": name,
            "properties": [{"key": key, "value": value} for key, value in properties.items()],
        }
        for name, properties in items.items()
    ]
    return Reply(body=json.dumps({"results": rows}))


def test_property_is_set_and_verified(server: Server) -> None:
    server.on[READ] = [has(b="2"), has(a="1", b="2")]
    server.on[PUT] = Reply(204)
    plan, values = server.run(ArtifactPropertiesOperation, params(path="/d/p/"))
    assert server.asked == [READ, PUT, READ]
    after = {"a": ["1"], "b": ["2"]}
    assert values["properties"] == {"before": {"b": ["2"]}, "after": after}
    (item,) = values["artifacts"]
    assert item == {
        "repo": "r",
        "path": "d/p",
        "before": {"b": ["2"]},
        "after": after,
        "action": "updated",
    }
    assert (plan.before, plan.after) == ({"r/d/p": {"b": ["2"]}}, {"r/d/p": after})


@pytest.mark.parametrize("given", [{"a": 1}, {"a": None}, {}])
def test_unchanged_properties_take_one_request(server: Server, given: dict[str, Any]) -> None:
    server.on[READ] = has(a="1", b="2")
    plan, values = server.run(ArtifactPropertiesOperation, params(properties=given))
    assert not plan.changed
    assert server.asked == [READ]
    assert values["properties"]["before"] == values["properties"]["after"]
    assert len(server.warnings) == (0 if given else 1)


def test_dropped_property_is_an_error(server: Server) -> None:
    server.on[READ] = NONE
    server.on[PUT] = Reply(204)
    error = server.fails(ArtifactPropertiesOperation, params())
    assert error.kind == "rejected"
    assert "did not save a" in error.message


@pytest.mark.parametrize(("status", "kind"), [(404, "not_found"), (400, "rejected")])
@pytest.mark.parametrize("dialect", ["generic", "jfrog"])
def test_failures_have_distinct_kinds(server: Server, dialect: str, status: int, kind: str) -> None:
    server.dialect = dialect
    server.on[LIST] = LISTED
    server.on[READ] = NONE if dialect == "jfrog" else Reply(404)
    words = {"errors": [{"status": status, "message": "words of the server"}]}
    server.on[PUT] = server.on["PUT /storage/r/d/p?properties=a=1"] = Reply(status, words)
    error = server.fails(ArtifactPropertiesOperation, params())
    assert (error.kind, error.status) == (kind, status)
    assert "words of the server" in error.message


@pytest.mark.parametrize("after", [has(a="1"), NONE, Reply(400)])
def test_lost_response_is_verified(server: Server, after: Reply) -> None:
    server.on[READ] = [NONE, after]
    server.on[PUT] = Reply(cut=True)
    if after.status == 200:
        server.run(ArtifactPropertiesOperation, params())
    else:
        error = server.fails(ArtifactPropertiesOperation, params())
        assert error.outcome_unknown
        message = "nothing was changed" if after is NONE else "whether it was done is not known"
        assert error.message.endswith(message)
    assert server.asked[:3] == [READ, PUT, READ]
    assert server.asked.count(PUT) == 1


def test_missing_item_is_not_found_before_any_write(server: Server) -> None:
    server.on[READ] = MISSING
    server.on["GET /api/storage/r/d?list&listFolders=1"] = Reply(body={"files": []})
    error = server.fails(ArtifactPropertiesOperation, params())
    assert error.kind == "not_found"
    assert not [name for name in server.asked if name.startswith("PUT")]


def test_unreadable_properties_are_set(server: Server) -> None:
    server.dialect = "generic"
    server.on[LIST] = LISTED
    server.on["PUT /storage/r/d/p?properties=a=1"] = Reply(204)
    plan, values = server.run(ArtifactPropertiesOperation, params())
    assert plan.changed
    assert values["properties"] == {"before": None, "after": {"a": ["1"]}}
    assert server.asked == [READ, LIST, "PUT /storage/r/d/p?properties=a=1"]


def test_check_mode_searches_for_an_item_without_readable_properties(server: Server) -> None:
    server.dialect = "generic"
    server.on |= {LIST: LISTED, "HEAD /r/d/p": [Reply(404), Reply()]}
    operation = server.operation(ArtifactPropertiesOperation, params(), check=True)
    plan = operation.plan()
    with pytest.raises(ToolchainError, match="does not exist"):
        operation.preflight(plan)
    operation.preflight(plan)


@pytest.mark.parametrize("status", [404, 405])
def test_plain_store_is_rejected_before_creating_a_file(server: Server, status: int) -> None:
    server.dialect = "generic"
    server.on[LIST] = Reply(status)
    server.on["PUT /storage/r/d/p?properties=a=1"] = Reply(201)
    error = server.fails(ArtifactPropertiesOperation, params())
    assert (error.kind, "a plain file store" in error.message) == ("rejected", True)
    assert server.asked == [READ, LIST]


def test_recursive_properties_are_set_if_they_cannot_be_read(server: Server) -> None:
    server.dialect = "generic"
    server.on[LIST] = LISTED
    server.on["PUT /storage/r/d/p?properties=a=1&recursive=1"] = Reply(204)
    plan, _values = server.run(ArtifactPropertiesOperation, params(recursive=True))
    assert plan.changed


RECURSIVE = "PUT /api/storage/r/d/p?properties=a=1&recursive=1"


def test_recursive_is_unchanged_only_if_all_items_agree(server: Server) -> None:
    server.on[READ] = has(a="1")
    server.on[QUERY] = below(x={"a": "1"}, y={"a": "1", "b": "2"})
    plan, _values = server.run(ArtifactPropertiesOperation, params(recursive=True))
    assert not plan.changed
    assert server.asked == [READ, QUERY]
    server.on[QUERY] = [below(x={"a": "1"}, y={"b": "2"}), below(x={"a": "1"}, y={"a": "1"})]
    server.on[RECURSIVE] = Reply(204)
    plan, _values = server.run(ArtifactPropertiesOperation, params(recursive=True))
    assert plan.before == {"r/d/p/y": {"b": ["2"]}}
    assert plan.after == {"r/d/p/y": {"b": ["2"], "a": ["1"]}}
    assert server.asked[2:] == [READ, QUERY, RECURSIVE, READ, QUERY]


def test_omitted_item_is_an_error(server: Server) -> None:
    server.on[READ] = has(a="1")
    server.on[QUERY] = below(x={})
    server.on[RECURSIVE] = Reply(204)
    error = server.fails(ArtifactPropertiesOperation, params(recursive=True))
    assert error.kind == "rejected"
    assert "'d/p/x'" in error.message


DELETE = "DELETE /api/storage/r/d/p?properties=a,b&recursive=0"


def test_named_properties_are_removed(server: Server) -> None:
    server.on[READ] = [has(a="1", c="3"), has(c="3")]
    server.on[DELETE] = Reply(204)
    given = params(state="absent", properties={"a": None, "b": ["any", "value"]})
    plan, values = server.run(ArtifactPropertiesOperation, given)
    assert plan.after == {"r/d/p": {"c": ["3"]}}
    assert values["properties"]["after"] == {"c": ["3"]}
    plan, _values = server.run(ArtifactPropertiesOperation, given)
    assert not plan.changed


def test_remaining_property_is_an_error(server: Server) -> None:
    server.on[READ] = has(a="1")
    server.on["DELETE /api/storage/r/d/p?properties=a&recursive=0"] = Reply(204)
    error = server.fails(ArtifactPropertiesOperation, params(state="absent"))
    assert error.kind == "rejected"
    assert "still has a" in error.message


@pytest.mark.parametrize("left", [{"b": "2"}, {"a": "1"}])
def test_lost_response_to_removal_is_verified(server: Server, left: dict[str, str]) -> None:
    server.on[READ] = [has(a="1", b="2"), has(**left)]
    server.on["DELETE /api/storage/r/d/p?properties=a&recursive=0"] = Reply(cut=True)
    if "a" in left:
        assert server.fails(ArtifactPropertiesOperation, params(state="absent")).outcome_unknown
    else:
        server.run(ArtifactPropertiesOperation, params(state="absent"))
    assert len([name for name in server.asked if name.startswith("DELETE")]) == 1


@pytest.mark.parametrize(
    ("dialect", "given", "words"),
    [
        ("generic", {"state": "absent"}, "not remove"),
        ("jfrog", {"path": ""}, "force"),
        ("jfrog", {"path": "/", "recursive": True}, "force"),
        ("jfrog", {"path": "a/../b"}, "'..'"),
        ("jfrog", {"repo": "a/b"}, "repo"),
        ("jfrog", {"properties": {"a,b": None}, "state": "absent"}, "a,b"),
        ("jfrog", {"properties": {"a": []}}, "no value"),
    ],
)
def test_unsupported_change_is_rejected(
    server: Server, dialect: str, given: dict[str, Any], words: str
) -> None:
    server.dialect = dialect
    error = server.fails(ArtifactPropertiesOperation, params(**given))
    assert error.kind == "invalid"
    assert words in error.message
    assert server.asked == []


def test_force_allows_the_root(server: Server) -> None:
    server.on["GET /api/storage/r?properties"] = has(a="1")
    plan, _values = server.run(ArtifactPropertiesOperation, params(path="", force=True))
    assert not plan.changed


# -- patterns and lists ---------------------------------------------------------------------------

FILES = ("d/p/1.txt", "d/p/2.bin", "d/p/c/3.txt")


def listed(server: Server, folder: str, *paths: str) -> None:
    entries = [{"uri": f"/{path[len(folder) + 1 :]}", "size": 1, "sha1": "00"} for path in paths]
    server.on[f"GET /api/storage/r/{folder}?list&deep=1"] = Reply(body={"files": entries})


def chosen(**given: Any) -> dict[str, Any]:
    return {"repo": "r", "properties": {"a": 1}, **given}


def rows(*found: tuple[str, dict[str, str]]) -> Reply:
    return Reply(
        body=json.dumps(
            {
                "results": [
                    {
                        "repo": "r",
                        "path": path.rpartition("/")[0],
                        "name": path.rpartition("/")[2],
                        "properties": [{"key": key, "value": value} for key, value in has.items()],
                    }
                    for path, has in found
                ]
            }
        )
    )


def test_only_different_files_of_a_pattern_are_set(server: Server) -> None:
    listed(server, "d", *FILES)
    server.on[QUERY] = rows((FILES[0], {"a": "1"}), (FILES[1], {}), (FILES[2], {"b": "2"}))
    for path in FILES[1:]:
        server.on[f"PUT /api/storage/r/{path}?properties=a=1&recursive=0"] = Reply(204)
        server.on[f"GET /api/storage/r/{path}?properties"] = has(a="1")
    options = chosen(path="d/**")
    plan, values = server.run(ArtifactPropertiesOperation, options, check=True)
    assert plan.after == {"r/d/p/2.bin": {"a": ["1"]}, "r/d/p/c/3.txt": {"b": ["2"], "a": ["1"]}}
    assert [artifact["action"] for artifact in values["artifacts"]] == [
        "unchanged",
        "updated",
        "updated",
    ]
    assert len(server.asked) <= 2
    assert "properties" not in values
    server.run(ArtifactPropertiesOperation, options)
    assert len([one for one in server.asked if one.startswith("PUT")]) == 2


def test_filter_emptied_by_earlier_run_is_unchanged(server: Server) -> None:
    listed(server, "d", *FILES)
    server.on[LIST] = LISTED
    server.on[QUERY] = [
        Reply(body={"results": []}),
        rows((FILES[0], {"a": "1"}), (FILES[2], {"b": "2"})),
    ]
    options = chosen(path="d/**/*.txt", match_properties={"a": "0"})
    for path, found in ((FILES[0], has(a="1")), (FILES[2], NONE)):
        server.on[f"GET /api/storage/r/{path}?properties"] = found
    plan, values = server.run(ArtifactPropertiesOperation, options)
    assert (plan.changed, values["artifacts"]) == (False, [])


def test_failed_files_are_not_returned(server: Server) -> None:
    listed(server, "d", *FILES[:2])
    server.on["GET /api/storage/r/d/p/1.txt?properties"] = [NONE, has(a="1")]
    server.on["GET /api/storage/r/d/p/2.bin?properties"] = NONE
    server.on["PUT /api/storage/r/d/p/1.txt?properties=a=1&recursive=0"] = Reply(204)
    server.on["PUT /api/storage/r/d/p/2.bin?properties=a=1&recursive=0"] = Reply(403)
    error = server.fails(ArtifactPropertiesOperation, chosen(path="d/**", parallel=1))
    assert error.kind == "permission"
    assert [artifact["path"] for artifact in error.result["artifacts"]] == ["d/p/1.txt"]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"path": "d/*.txt"}, "not_found", "* does not match slashes, write 'd/**/*.txt'"),
        ({"path": "d/**", "max_items": 2}, "invalid", "more than max_items (2)"),
        ({"path": "d/**", "exclude": ["**"]}, "not_found", "check match_properties and exclude"),
        ({"artifacts": [{"path": "d/"}, {"path": "d/*.iso"}]}, "not_found", "artifacts[1]: "),
        ({"artifacts": [{"path": "/"}]}, "invalid", "artifacts[0].path is empty"),
        ({"path": "", "exclude": ["x"]}, "invalid", "use ** to select it"),
        (
            {"path": "d/*", "recursive": True},
            "invalid",
            "recursive cannot be combined with a pattern",
        ),
        ({"path": "d/*", "parallel": 0}, "invalid", "parallel is 0: set it to 1 or more"),
        ({"path": "d/*", "match_properties": {"q": None}}, "invalid", "match_properties.q is null"),
    ],
)
def test_invalid_selection_changes_nothing(
    server: Server, options: dict[str, Any], kind: str, words: str
) -> None:
    listed(server, "d", *FILES)
    server.on[LIST] = LISTED
    error = server.fails(ArtifactPropertiesOperation, chosen(**options))
    assert error.kind == kind
    assert words in error.message
    assert not [one for one in server.asked if one.startswith("PUT")]
    assert kind != "invalid" or "max_items" in options or server.asked == []
