# SPDX-License-Identifier: GPL-3.0-or-later
"""Test publishing build records: requests, records that count as published already, and marks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.progress import (
    PollInterval,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    build_publish,
    records,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

Operation = build_publish.BuildPublishOperation
STARTED = "2026-01-02T03:04:05.678+0000"
MARKS = {"build.name": ["b"], "build.number": ["1"], "build.timestamp": ["1767323045678"]}
NONE = Reply(404, {"errors": [{"message": "No build was found for build name: b"}]})
PUT, RECORD = "PUT /api/build", "GET /api/build/b/1"
MARK = "PUT /api/storage/r/a/1.jar?properties=build.name=b|build.number=1|build.timestamp=1767323045678"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_REWRITE", 0)
    monkeypatch.setattr(build_publish, "_DELAY_SECONDS", 0)


def digest(text: str, name: str) -> str:
    return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def head(text: str) -> Reply:
    sums = {f"X-Checksum-{name}": digest(text, name) for name in ("Sha1", "Sha256")}
    return Reply(200, text, sums)


def marked(marks: Mapping[str, Any]) -> Reply:
    return (
        Reply(body={"properties": marks}) if marks else Reply(404, "No properties could be found.")
    )


def serve(server: Server, marks: Mapping[str, Any] | None = None) -> None:
    """Let the server serve a single item, and store the record that it receives."""
    marks = MARKS if marks is None else marks

    def publish(seen: Seen) -> Reply:
        info = {name: value for name, value in json.loads(seen.body).items() if value}
        server.on[RECORD] = Reply(body={"buildInfo": info})
        return Reply(204)

    server.on["HEAD /r/a/1.jar"] = head("x")
    server.on["GET /api/storage/r/a/1.jar?properties"] = marked(marks)
    server.on["GET /api/repositories/r"] = Reply(body={"key": "r", "rclass": "local"})
    server.on[RECORD] = NONE
    server.on[PUT] = publish


def given(**options: Any) -> dict[str, Any]:
    found = {"build_name": "b", "build_number": "1", "started": STARTED, "parallel": 1}
    if "modules" not in options:
        found["artifacts"] = [{"repo": "r", "path": "a/1.jar"}]
    return {**found, **options}


def sent(server: Server) -> dict[str, Any]:
    return dict(server.bodies(PUT)[-1])


def test_record_contains_the_item(server: Server) -> None:
    serve(server)
    plan, values = server.run(Operation, given())
    assert plan.action == "create"
    info = sent(server)
    assert info["started"] == STARTED
    assert (info["name"], info["number"]) == ("b", "1")
    artifact = {
        "name": "1.jar",
        "type": "jar",
        "sha1": digest("x", "sha1"),
        "sha256": digest("x", "sha256"),
        "path": "a/1.jar",
        "originalDeploymentRepo": "r",
    }
    assert info["modules"] == [{"id": "b", "type": "generic", "artifacts": [artifact]}]
    assert values["build"]["properties"] == {}
    assert values["marked"] == []


def test_published_record_takes_three_reads(server: Server) -> None:
    serve(server)
    server.run(Operation, given())
    server.stub.seen.clear()
    plan, values = server.run(Operation, given(started=None))
    assert not plan.changed
    assert values["build"]["started"] == STARTED
    assert server.asked == [
        RECORD,
        "HEAD /r/a/1.jar",
        "GET /api/storage/r/a/1.jar?properties",
    ]


def test_record_with_additional_content_is_unchanged(server: Server) -> None:
    serve(server)
    more = {"modules": [{"id": "b", "artifacts": [{"repo": "r", "path": "a/1.jar"}]}]}
    more["modules"].append({"id": "c", "artifacts": [{"name": "n", "sha1": "0" * 40}]})
    server.run(Operation, given(**more, properties={"k": "v", "l": "w"}))
    plan, _values = server.run(Operation, given(properties={"k": "v"}))
    assert not plan.changed


def test_artifacts_of_artifact_deploy_are_accepted(server: Server) -> None:
    serve(server)
    deployed = {"repo": "r", "path": "a/1.jar", "size": 1, "action": "uploaded"}
    deployed["sha256"] = digest("x", "sha256")
    server.run(Operation, given(artifacts=[deployed]))
    assert len(sent(server)["modules"][0]["artifacts"]) == 1


def test_artifacts_may_be_given_by_digests(server: Server) -> None:
    serve(server)
    files = [{"name": "n.zip", "type": "z", "sha1": "A" * 40, "md5": "b" * 32}]
    used = [{"name": "lib", "sha256": "c" * 64, "scopes": ["compile"]}]
    server.run(Operation, given(modules=[{"id": "m", "artifacts": files, "dependencies": used}]))
    (module,) = sent(server)["modules"]
    assert module["artifacts"] == [
        {"name": "n.zip", "type": "z", "sha1": "a" * 40, "md5": "b" * 32}
    ]
    assert module["dependencies"] == [
        {"id": "lib", "type": "file", "sha256": "c" * 64, "scopes": ["compile"]}
    ]
    assert not [name for name in server.asked if "storage" in name]


@pytest.mark.parametrize(
    "wrong", [{"ci_url": "https://u:p/w@ci/job"}, {"vcs": [{"url": "https://u:p/w@git/x"}]}]
)
def test_unreadable_user_info_is_not_published(server: Server, wrong: dict[str, Any]) -> None:
    serve(server)
    error = server.fails(Operation, given(**wrong))
    assert (error.kind, "p/w" in str(error)) == ("invalid", False)
    assert not [name for name in server.asked if name.startswith("PUT")]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "https://git/x", "mesage": "m"}, "vcs[1].mesage is unknown"),
        ({"branch": "main", "url": ""}, "vcs[1].url is missing"),
        ({"url": "https://git/x", "branch": ["a"]}, "vcs[1].branch must be a string"),
    ],
)
def test_invalid_sources_are_rejected(server: Server, entry: dict[str, Any], said: str) -> None:
    serve(server)
    error = server.fails(Operation, given(vcs=[{"url": "https://git/x"}, entry]))
    assert (error.kind, said in error.message) == ("invalid", True)


def test_record_contains_all_other_options(server: Server) -> None:
    serve(server)
    source = {"url": "https://u:p@git/x", "revision": "abc", "branch": "main", "message": "m"}
    options = given(
        ci_url="https://u:p@ci/job/b/1/",
        vcs=[source],
        issues=[{"key": "REL-1", "summary": "s", "url": "https://t/REL-1"}],
        environment={"PATH": "/bin", "N": 1, "GIT_URL": "https://u:p@git/x", "none": None},
        properties={"k": ["v", "w"]},
    )
    server.run(Operation, options)
    info = sent(server)
    assert info["url"] == "https://ci/job/b/1/"
    assert info["vcs"] == [{**source, "url": "https://git/x"}]
    issue = {"key": "REL-1", "summary": "s", "url": "https://t/REL-1", "aggregated": False}
    assert info["issues"]["affectedIssues"] == [issue]
    assert info["properties"] == {
        "k": "v,w",
        "buildInfo.env.PATH": "/bin",
        "buildInfo.env.N": "1",
        "buildInfo.env.GIT_URL": "https://git/x",
    }
    plan, _values = server.run(Operation, options)
    assert not plan.changed


def test_secrets_of_environment_are_not_published(server: Server) -> None:
    serve(server)
    variables = {
        "Db_Password": "a",
        "MYSECRET": "b",
        "REGISTRY_PSW": "bound-canary",
        "HTTP_AUTH": "basic-canary",
        "AUTHORIZATION": "bearer-canary",
        "x_token_y": "c",
        "SSH_KEY": "d",
        "OWN_X": "e",
    }
    kept = {"KEPT": "f", "GIT_AUTHOR": "Ann"}
    options = given(environment={**variables, **kept}, environment_exclude=["own_*"])
    server.run(Operation, options)
    assert sent(server)["properties"] == {f"buildInfo.env.{name}": kept[name] for name in kept}


CANARY = "canary-5f2c"


@pytest.mark.parametrize(
    "name",
    ["DB_PASS", "PGPASS", "GH_PAT", "JWT", "COOKIE", "dbPassword", "db.password", "HTTP_TOKEN_2"],
)
def test_secret_names_are_left_out_everywhere(server: Server, name: str) -> None:
    serve(server)
    values = {name: CANARY, "kept": "x"}
    module = {"id": "b", "artifacts": [{"repo": "r", "path": "a/1.jar"}], "properties": values}
    options = given(modules=[module], properties=values, environment=values)
    _plan, found = server.run(Operation, options)
    info = sent(server)
    assert CANARY not in json.dumps([info, found])
    assert info["properties"] == {"kept": "x", "buildInfo.env.kept": "x"}
    assert info["modules"][0]["properties"] == {"kept": "x"}
    places = [f"modules[0].properties.{name}", f"properties.{name}", f"environment.{name}"]
    assert found["withheld"] == places
    (said,) = server.warnings
    assert said.startswith("3 values are left out of the record of the build 'b' #1 or masked")
    assert all(place in said for place in places)
    plan, _found = server.run(Operation, options)
    assert not plan.changed


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        (f"-----BEGIN RSA PRIVATE KEY-----\n{CANARY}\n-----END RSA PRIVATE KEY-----", None),
        (f"Bearer {CANARY}", "Bearer ***"),
        ("bearer canarybearer", "bearer ***"),
        (
            f"Server=db;Password={CANARY} with blanks;Encrypt=true",
            "Server=db;Password=***;Encrypt=true",
        ),
        (f"AccountName=a;AccountKey={CANARY}==", "AccountName=a;AccountKey=***"),
        (f"-Xmx1g -Dx.password={CANARY} -Dy=1", "-Xmx1g -Dx.password=*** -Dy=1"),
        (f"https://h/x?sv=1&sig={CANARY}&se=2", "https://h/x?sv=1&sig=***&se=2"),
        (f"jdbc:x://h/db?user=a&password={CANARY}", "jdbc:x://h/db?user=a&password=***"),
        (f"see https://u:{CANARY}@h/x and y", "see https://h/x and y"),
        (f"https://{CANARY.replace('-', '')}0123456789@h/x", "https://h/x"),
    ],
)
def test_secrets_in_values_are_masked_everywhere(
    server: Server, value: str, masked: str | None
) -> None:
    serve(server)
    values = {"A": value, "B": ["x", value]}
    module = {"id": "b", "artifacts": [{"repo": "r", "path": "a/1.jar"}], "properties": values}
    source = {"url": "https://git/x", "message": value}
    options = given(
        modules=[module], properties={"A": value}, environment={"A": value}, vcs=[source]
    )
    _plan, found = server.run(Operation, options)
    text = json.dumps([sent(server), found])
    assert CANARY not in text
    assert "canary" not in text
    assert len(found["withheld"]) == 5
    assert len(server.warnings) == 1
    if masked is not None:
        assert sent(server)["properties"] == {"A": masked, "buildInfo.env.A": masked}
        assert sent(server)["modules"][0]["properties"] == {"A": masked, "B": ["x", masked]}
        assert sent(server)["vcs"][0]["message"] == masked
    plan, _found = server.run(Operation, options)
    assert not plan.changed


def test_pairs_of_name_and_value_are_searched(server: Server) -> None:
    serve(server)
    listed = [{"key": "API_TOKEN", "value": CANARY}, {"name": "kept", "value": 1}, {"x": None}]
    module = {"id": "b", "artifacts": [{"repo": "r", "path": "a/1.jar"}], "properties": listed}
    server.run(Operation, given(modules=[module]))
    found = sent(server)["modules"][0]["properties"]
    assert found == [{"key": "API_TOKEN"}, {"name": "kept", "value": 1}, {"x": None}]


def test_values_without_secrets_are_published_unchanged(server: Server) -> None:
    serve(server)
    values = {
        "tokenId": "t-1",
        "credentialsId": "c-1",
        "PASSWORD_FILE": "/run/x",
        "project.author": "Ann",
        "opts": "-Dx.password=$PASS -Dy={{ token }}",
        "message": "Add a bearer token; key=value; token rotation",
        "clone": "git@host:group/x.git",
        "link": "https://host/x?token=$TOKEN",
        "subject": "Bearer tokens: renew them",
        "contacts": "https://host.example,ann@host.example",
        "CONTAINER": "-v /a:/b --user 1000:1000",
    }
    _plan, found = server.run(Operation, given(properties=values))
    assert sent(server)["properties"] == values
    assert (found["withheld"], server.warnings) == ([], [])


def test_variables_among_properties_are_left_out_like_variables(server: Server) -> None:
    serve(server)
    names = ("HTTP_AUTH_HEADER", "TOKEN_PROD")
    values = {f"buildInfo.env.{name}": "x" for name in names}
    server.run(Operation, given(properties={**values, "buildInfo.env.PATH": "/bin"}))
    assert sent(server)["properties"] == {"buildInfo.env.PATH": "/bin"}


def test_secrets_of_the_existing_record_are_not_in_the_diff(server: Server) -> None:
    serve(server)
    server.run(Operation, given())
    old = {"buildInfo.env.DB_PASS": CANARY, "dsn": f"password={CANARY}", "kept": "x"}
    found = sent(server)
    server.on[RECORD] = Reply(body={"buildInfo": {**found, "properties": old}})
    plan, _values = server.run(Operation, given(ci_url="https://ci/2", replace=True), check=True)
    assert plan.before["properties"] == {"dsn": "password=***", "kept": "x"}
    assert CANARY not in json.dumps([plan.before, plan.after])


def test_user_name_in_an_address_is_no_secret(server: Server) -> None:
    serve(server)
    source = {"url": "ssh://git@host/group/git-tools.git", "message": "Use git"}
    _plan, found = server.run(Operation, given(vcs=[source]))
    assert sent(server)["vcs"] == [{**source, "url": "ssh://host/group/git-tools.git"}]
    assert (found["withheld"], server.warnings) == ([], [])


def test_login_in_the_address_of_an_issue_is_removed(server: Server) -> None:
    serve(server)
    issue = {"key": "A-1", "summary": "Bearer tokens fail", "url": f"https://me:{CANARY}@host/A-1"}
    _plan, found = server.run(Operation, given(issues=[issue]))
    (sent_issue,) = sent(server)["issues"]["affectedIssues"]
    assert sent_issue == {**issue, "url": "https://host/A-1", "aggregated": False}
    assert found["withheld"] == ["issues[0].url"]


def test_withheld_values_are_listed_in_the_order_of_the_record(server: Server) -> None:
    serve(server)
    secret = {"A_TOKEN": "x"}
    source = {"url": f"https://me:{CANARY}@git/x"}
    issue = {"key": "A-1", "url": f"https://me:{CANARY}@host/A-1"}
    options = given(properties=secret, environment=secret, vcs=[source], issues=[issue])
    _plan, found = server.run(Operation, options)
    assert found["withheld"] == [
        "properties.A_TOKEN",
        "vcs[0].url",
        "issues[0].url",
        "environment.A_TOKEN",
    ]


# --- records of other tools


def test_entries_that_name_no_file_are_kept(server: Server) -> None:
    """Records of Maven, pip and npm list dependencies without digests."""
    serve(server)
    dependencies = [
        {"id": "requests:2.31.0"},
        {"id": "g:a:1.0:compile", "type": "pom", "scopes": ["compile"]},
        {"id": "left-pad:1.3.0", "sha1": "d" * 40, "requestedBy": [["app:1"]]},
    ]
    modules: list[dict[str, Any]] = [
        {"id": "b", "type": "python", "dependencies": dependencies},
        {"id": "team/lib/3", "type": "build", "sha1": "a" * 40, "md5": "b" * 32},
    ]
    server.run(Operation, given(modules=modules))
    assert sent(server)["modules"] == modules
    plan, _values = server.run(Operation, given(modules=modules))
    assert not plan.changed
    assert server.warnings == []
    more = [{**modules[0], "dependencies": [*dependencies, {"id": "idna:3"}]}, modules[1]]
    error = server.fails(Operation, given(modules=more))
    assert "lacks: dependencies idna:3 of the module b" in error.message


def test_record_of_references_only_is_published(server: Server) -> None:
    serve(server)
    modules = [{"id": "app/7", "type": "build"}]
    server.run(Operation, given(modules=modules))
    assert sent(server)["modules"] == modules
    error = server.fails(Operation, given(modules=[*modules, {"id": "lib/2", "type": "build"}]))
    assert "lacks: module lib/2" in error.message


def test_empty_strings_count_as_not_given(server: Server) -> None:
    serve(server)
    file = {"name": "1.jar", "type": "", "sha1": "a" * 40, "sha256": "", "path": ""}
    used = {"id": "x:1", "type": "", "md5": "", "scopes": [""]}
    modules = [{"id": "b", "type": "", "artifacts": [file], "dependencies": [used]}]
    server.run(Operation, given(modules=modules))
    assert sent(server)["modules"] == [
        {
            "id": "b",
            "type": "generic",
            "artifacts": [{"name": "1.jar", "type": "jar", "sha1": "a" * 40}],
            "dependencies": [{"id": "x:1"}],
        }
    ]
    server.run(Operation, given(build_number="1", artifacts=[{**file, "repo": ""}], replace=True))
    assert sent(server)["modules"][0]["artifacts"][0]["sha1"] == "a" * 40


def test_empty_strings_of_sources_and_issues_count_as_not_given(server: Server) -> None:
    """The Java clients initialize all fields of a source with empty strings."""
    serve(server)
    sources = [
        {"url": "https://git/x", "revision": "", "branch": "", "message": ""},
        {"url": "", "revision": "abc"},
    ]
    server.run(Operation, given(vcs=sources, issues=[{"key": "REL-1", "summary": "", "url": ""}]))
    assert sent(server)["vcs"] == [{"url": "https://git/x"}, {"revision": "abc"}]
    assert sent(server)["issues"]["affectedIssues"] == [{"key": "REL-1", "aggregated": False}]


def test_excluded_artifacts_are_kept(server: Server) -> None:
    """Maven records list artifacts that were not deployed, without digests, and modules without
    files.
    """
    serve(server)
    excluded = [{"type": "jar", "name": "a.jar", "path": "org/a/1"}]
    modules = [
        {"id": "g:parent:1", "type": "maven"},
        {
            "id": "g:a:1",
            "type": "maven",
            "repository": "snapshots",
            "excludedArtifacts": excluded,
            "dependencies": [{"id": "junit:junit:3.8.1", "scopes": ["test"]}],
        },
    ]
    started = "2024-07-25T09:04:12.957698+03:00"
    server.run(Operation, given(modules=modules, started=started))
    assert sent(server)["modules"] == modules
    assert sent(server)["started"] == "2024-07-25T06:04:12.957+0000"


def test_start_time_is_compared_by_millisecond(server: Server) -> None:
    serve(server)
    options = given(started="2026-01-02T03:04:05.678901+00:00")
    server.run(Operation, options)
    assert sent(server)["started"] == STARTED
    plan, _values = server.run(Operation, options)
    assert not plan.changed


# --- different content


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"properties": {"k": "v"}}, "property k"),
        ({"ci_url": "https://ci/2"}, "ci_url"),
        ({"environment": {"A": "b"}}, "property buildInfo.env.A"),
        ({"vcs": [{"url": "https://git/x", "revision": "2"}]}, "vcs https://git/x 2"),
        ({"issues": [{"key": "REL-1"}]}, "issue REL-1"),
        ({"artifacts": [{"name": "2.jar", "sha1": "0" * 40}]}, "artifacts 2.jar of the module b"),
        ({"artifacts": [{"name": "1.jar", "sha1": "0" * 40}]}, "artifacts 1.jar of the module b"),
        ({"modules": [{"id": "c", "artifacts": [{"name": "n", "sha1": "0" * 40}]}]}, "module c"),
    ],
)
def test_different_content_is_a_conflict(
    server: Server, changed: dict[str, Any], said: str
) -> None:
    serve(server)
    server.run(Operation, given())
    error = server.fails(Operation, given(**changed))
    assert error.kind == "conflict"
    assert said in error.message
    assert "replace" in error.message
    assert server.asked.count(PUT) == 1
    plan, _values = server.run(Operation, given(**changed, replace=True))
    assert plan.action == "update"
    assert server.asked.count(PUT) == 2
    plan, _values = server.run(Operation, given(**changed, replace=True))
    assert not plan.changed


def test_replacement_keeps_promotions_and_drops_omitted_fields(server: Server) -> None:
    serve(server)
    promoted = {"status": "released", "timestamp": STARTED}
    server.on[RECORD] = Reply(
        body={
            "buildInfo": {
                "name": "b",
                "number": "1",
                "started": STARTED,
                "statuses": [promoted],
                "url": "https://ci/1",
                "properties": {"k": "old", "buildInfo.env.A": "b"},
            }
        }
    )
    server.run(Operation, given(started=None, properties={"l": "new"}, replace=True))
    info = sent(server)
    assert info["statuses"] == [promoted]
    assert info["started"] == STARTED
    assert "url" not in info
    assert info["properties"] == {"l": "new"}


OTHERS = [
    {"properties": {"k": "v"}},
    {"environment": {"A": "b"}},
    {"ci_url": "https://ci/1"},
    {"vcs": [{"url": "https://git/x", "revision": "2"}]},
    {"issues": [{"key": "REL-1"}]},
    {
        "modules": [
            {
                "id": "b",
                "artifacts": [{"repo": "r", "path": "a/1.jar"}, {"name": "n", "sha1": "0" * 40}],
            }
        ]
    },
    {
        "modules": [
            {"id": "b", "artifacts": [{"repo": "r", "path": "a/1.jar"}]},
            {"id": "c", "dependencies": [{"name": "n", "sha1": "0" * 40}]},
        ]
    },
]


@pytest.mark.parametrize("more", OTHERS)
def test_only_a_replacement_removes_what_the_task_does_not_name(
    server: Server, more: dict[str, Any]
) -> None:
    serve(server)
    server.run(Operation, given())
    plain = sent(server)
    server.run(Operation, given(**more, replace=True))
    assert sent(server) != plain
    plan, _values = server.run(Operation, given())
    assert not plan.changed
    predicted, _values = server.run(Operation, given(replace=True), check=True)
    plan, _values = server.run(Operation, given(replace=True))
    assert (plan.before, plan.after) == (predicted.before, predicted.after)
    assert plan.action == "update"
    assert plan.before != plan.after
    assert sent(server) == plain
    plan, _values = server.run(Operation, given(replace=True))
    assert not plan.changed


KEPT: dict[str, tuple[dict[str, Any], Callable[[dict[str, Any]], Any]]] = {
    "ci_url": ({"ci_url": "https://ci/1"}, lambda info: info.get("url")),
    "environment": (
        {"environment": {"A": "b"}},
        lambda info: info["properties"].get("buildInfo.env.A"),
    ),
    "issues": (
        {"issues": [{"key": "REL-1"}]},
        lambda info: [one["key"] for one in (info.get("issues") or {}).get("affectedIssues", [])],
    ),
    "properties": ({"properties": {"k": "v"}}, lambda info: info["properties"].get("k")),
    "vcs": (
        {"vcs": [{"url": "https://git/x", "revision": "2"}]},
        lambda info: [one["revision"] for one in info.get("vcs") or []],
    ),
}


@pytest.mark.parametrize("part", KEPT)
def test_replacement_keeps_a_part_that_keep_names(server: Server, part: str) -> None:
    serve(server)
    everything = {name: value for more, _read in KEPT.values() for name, value in more.items()}
    server.run(Operation, given(**everything))
    before = sent(server)
    wanted = given(properties={"new": "x"}, replace=True, keep=[part])
    predicted, _values = server.run(Operation, wanted, check=True)
    plan, _values = server.run(Operation, wanted)
    assert (plan.before, plan.after) == (predicted.before, predicted.after)
    info = sent(server)
    assert info["properties"]["new"] == "x"
    for name, (_more, read) in KEPT.items():
        assert (read(info) == read(before)) is (name == part), name
    again, _values = server.run(Operation, wanted)
    assert not again.changed


def test_modules_of_other_tasks_are_kept(server: Server) -> None:
    """A module that the task names gets exactly its files."""
    serve(server)

    def module(name: str, *files: str) -> dict[str, Any]:
        artifacts = [{"name": file, "path": f"r/{file}", "sha1": "0" * 40} for file in files]
        return {"id": name, "artifacts": artifacts}

    def publish(*modules: dict[str, Any], **more: Any) -> Plan:
        options = {"build_name": "b", "build_number": "1", "mark_artifacts": False, **more}
        return server.run(Operation, {**options, "modules": list(modules)})[0]

    publish(module("one", "a", "b"))
    for _run in range(2):
        plan = publish(module("two", "c"), replace=True, keep=["modules"])
    assert not plan.changed
    publish(module("one", "a"), replace=True, keep=["modules"])
    files = {
        one["id"]: [each["name"] for each in one["artifacts"]] for one in sent(server)["modules"]
    }
    assert files == {"one": ["a"], "two": ["c"]}
    publish(module("one", "a"), replace=True)
    assert [one["id"] for one in sent(server)["modules"]] == ["one"]


def test_addition_of_the_server_is_a_warning(server: Server) -> None:
    serve(server)

    def add(seen: Seen) -> Reply:
        info = {**json.loads(seen.body), "properties": {"added": "x"}}
        server.on[RECORD] = Reply(body={"buildInfo": info})
        return Reply(204)

    server.on[PUT] = add
    server.run(Operation, given(replace=True))
    assert "the server added to the record, which also has: property added" in server.warnings[0]


def test_different_start_time_is_a_conflict(server: Server) -> None:
    serve(server)
    server.run(Operation, given())
    error = server.fails(Operation, given(started="2026-02-02T00:00:00Z", replace=True))
    assert error.kind == "conflict"
    assert "second record" in error.message
    assert server.asked.count(PUT) == 1


# --- files


def test_missing_file_is_not_found(server: Server) -> None:
    serve(server)
    server.on["GET /api/repositories"] = Reply(body=json.dumps([{"key": "r"}]))
    files = [{"repo": "r", "path": "a/1.jar"}, {"repo": "r", "path": "a/2.jar"}]
    error = server.fails(Operation, given(artifacts=files))
    assert error.kind == "not_found"
    assert "'r/a/2.jar' (artifacts[1])" in error.message
    assert PUT not in server.asked


def test_different_file_content_is_a_conflict(server: Server) -> None:
    serve(server)
    files = [{"repo": "r", "path": "a/1.jar", "sha256": "0" * 64}]
    error = server.fails(Operation, given(artifacts=files))
    assert error.kind == "conflict"
    assert "artifacts[0]" in error.message
    assert PUT not in server.asked


def test_many_files_take_one_listing(server: Server) -> None:
    serve(server)
    sums = {"sha1": digest("x", "sha1"), "sha2": digest("x", "sha256"), "size": 1}
    entries = [{"uri": f"/{number}.jar", **sums} for number in range(5)]
    server.on["GET /api/storage/r/a?list&deep=1"] = Reply(body={"files": entries})
    files = [{"repo": "r", "path": f"a/{number}.jar"} for number in range(5)]
    server.run(Operation, given(artifacts=files, mark_artifacts=False))
    assert len(sent(server)["modules"][0]["artifacts"]) == 5
    assert len(server.asked) <= 5  # the record twice before and once after


# --- marks


def test_lost_properties_are_set_again(server: Server) -> None:
    serve(server)
    server.run(Operation, given())
    server.on["GET /api/storage/r/a/1.jar?properties"] = [
        marked({**MARKS, "build.number": ["0"]}),
        marked(MARKS),
    ]
    server.on[MARK] = Reply(204)
    plan, values = server.run(Operation, given())
    assert plan.before == {"marks": {"r/a/1.jar": {**MARKS, "build.number": ["0"]}}}
    assert plan.after == {"marks": {"r/a/1.jar": MARKS}}
    assert values["marked"] == ["r/a/1.jar"]
    assert server.asked.count(PUT) == 1
    assert MARK in server.asked


def test_properties_are_not_set_without_request(server: Server) -> None:
    serve(server, {})
    _plan, values = server.run(Operation, given(mark_artifacts=False))
    assert values["marked"] == []
    assert not [name for name in server.asked if "properties" in name]


def test_item_of_a_virtual_repository_is_marked_in_its_repository(server: Server) -> None:
    serve(server, {})
    virtual = {"key": "v", "rclass": "virtual", "repositories": ["other", "r"]}
    server.on["GET /api/repositories/v"] = Reply(body=virtual)
    server.on["HEAD /v/a/1.jar"] = head("x")
    server.on["GET /api/storage/v/a/1.jar?properties"] = marked({})
    server.on["GET /api/storage/r/a/1.jar?properties"] = marked(MARKS)
    server.on[MARK] = Reply(204)
    files = [{"repo": "v", "path": "a/1.jar"}]
    _plan, values = server.run(Operation, given(artifacts=files))
    assert values["marked"] == ["r/a/1.jar"]
    assert MARK in server.asked


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        ({"build.timestamp": ["1767323045679"]}, True),
        ({"build.timestamp": []}, False),
        ({"build.number": ["2"]}, False),
    ],
)
def test_time_of_a_simultaneous_publication_is_accepted(
    server: Server, after: Mapping[str, Any], kept: bool
) -> None:
    serve(server, {})
    server.on["GET /api/storage/r/a/1.jar?properties"] = [marked({}), marked({**MARKS, **after})]
    server.on[MARK] = Reply(204)
    if kept:
        assert server.run(Operation, given())[1]["marked"] == ["r/a/1.jar"]
    else:
        assert "did not save" in server.fails(Operation, given()).message


def test_check_mode_predicts_no_time(server: Server) -> None:
    serve(server, {})
    plan, _values = server.run(Operation, given(started=None), check=True)
    assert PUT not in server.asked
    assert "started" not in plan.after
    assert set(plan.after["marks"]["r/a/1.jar"]) == {"build.name", "build.number"}


# --- misleading responses


def test_dropped_fields_are_an_error(server: Server) -> None:
    serve(server)
    server.on[RECORD] = [NONE, NONE, Reply(body={"buildInfo": {"started": STARTED}})]
    server.on[PUT] = Reply(204)
    error = server.fails(Operation, given())
    assert error.kind == "failed"
    assert "module b" in error.message


def test_delayed_record_is_awaited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[str] = []
    monkeypatch.setattr(build_publish, "_DELAY_SECONDS", 60)
    monkeypatch.setattr(PollInterval, "pause", lambda _self, running: pauses.append(running))
    serve(server)

    def publish(seen: Seen) -> Reply:
        server.on[RECORD] = [NONE] * 6 + [Reply(body={"buildInfo": json.loads(seen.body)})]
        return Reply(204)

    server.on[PUT] = publish
    plan, values = server.run(Operation, given())
    assert (plan.changed, values["build"]["number"]) == (True, "1")
    assert server.warnings == []
    assert len(pauses) == 3


def test_record_that_stays_invisible_is_not_doubled(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    serve(server)
    server.on[PUT] = Reply(204)
    options = given(started=None, mark_artifacts=False)
    plan, values = server.run(Operation, options)
    assert plan.changed
    assert values["build"]["number"] == "1"
    assert "does not return it yet" in server.warnings[0]
    created, name = server.task().created, ("build", "", "b", "1")
    assert created.get(*name) == sent(server)["started"]
    created.add(*name, value=STARTED)  # as if the first task had taken longer than a millisecond
    server.run(Operation, options)
    assert sent(server)["started"] == STARTED


def test_missing_delete_permission_prevents_replacement(server: Server) -> None:
    serve(server)
    server.run(Operation, given())
    server.on[PUT] = Reply(403, "not permitted")
    error = server.fails(Operation, given(properties={"k": "v"}, replace=True))
    assert error.kind == "permission"
    assert "permission to delete" in error.message


def test_server_without_publishing_is_rejected(server: Server) -> None:
    server.dialect = "generic"
    server.on["GET /api/repositories"] = Reply(body="[]")
    error = server.fails(Operation, given())
    assert error.kind == "rejected"
    assert "dialect" in error.message
    assert server.asked == ["GET /api/repositories"]
    server.on.clear()
    assert server.fails(Operation, given()).kind == "not_found"


def test_wrong_address_is_not_found(server: Server) -> None:
    serve(server)
    server.on[RECORD] = Reply(404, "Not Found")
    error = server.fails(Operation, given())
    assert error.kind == "not_found"
    assert "check url" in error.message


def test_module_without_files_gives_a_warning(server: Server) -> None:
    serve(server)
    files = [{"name": "n", "sha1": "0" * 40}]
    modules = [{"id": "m", "dependencies": files}, {"id": "n", "artifacts": []}]
    plan, _values = server.run(Operation, given(modules=modules))
    assert plan.changed
    (said,) = server.warnings
    assert said.startswith("modules[1] lists no file")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"artifacts": []}, "artifacts"),
        ({"modules": []}, "modules"),
        ({"artifacts": [{"repo": "r"}]}, "artifacts[0]"),
        ({"artifacts": [{"name": "n"}]}, "artifacts[0]"),
        ({"artifacts": [{"name": "n", "sha1": "12"}]}, "artifacts[0].sha1"),
        ({"artifacts": [{"repo": "r", "path": "a/../b"}]}, "segment"),
        ({"artifacts": [{"repo": "r", "path": "a", "action": "deleted"}]}, "artifacts[0].action"),
        ({"modules": [{"id": "m"}, {"id": "m"}]}, "modules[1].id"),
        ({"modules": [{"id": "m", "dependencies": [{"name": "n"}]}]}, "modules[0].dependencies[0]"),
        ({"modules": [{"id": "m"}]}, "modules[0] lists no file"),
        ({"modules": [{"id": "m", "artifacts": []}, {"id": "n"}]}, "modules[0] lists no file"),
        (
            {"modules": [{"id": "", "artifacts": [{"name": "n", "sha1": "0" * 40}]}]},
            "modules[0]: id is missing",
        ),
        (
            {"modules": [{"id": " ", "artifacts": [{"name": "n", "sha1": "0" * 40}]}]},
            "modules[0].id",
        ),
        ({"started": "yesterday"}, "started"),
        ({"parallel": 0}, "parallel"),
        ({"build_number": 1.1}, "build_number"),
        ({"issues": [{"key": 1.5}]}, "issues[0].key"),
        ({"environment": {"A": 1.5}}, "environment.A"),
        (
            {"environment": {"A": "x"}, "environment_exclude": ["own[12]"]},
            "'own[12]' contains a bracket",
        ),
        ({"environment": {" ": "x"}}, "environment has an empty name"),
        ({"properties": {"": "x"}}, "properties has an empty name"),
        ({"started": "1767323045"}, "started"),
        ({"build_number": " 7"}, "build_number is ' 7'"),
        ({"build_name": ".."}, "build_name is '..'"),
        ({"ci_url": "ci.example.com/job/a/7"}, "ci_url is 'ci.example.com/job/a/7'"),
    ],
)
def test_invalid_record_options_are_rejected(
    server: Server, wrong: dict[str, Any], said: str
) -> None:
    error = server.fails(Operation, given(**wrong))
    assert error.kind == "invalid"
    assert said in error.message
    assert server.asked == []


def test_modules_of_an_existing_record_are_kept(server: Server) -> None:
    """A build moves to another server: its record is published with what it has."""
    artifact = {
        "type": "jar",
        "name": "1.jar",
        "sha1": "a" * 40,
        "sha256": "b" * 64,
        "md5": "c" * 32,
        "path": "a/1.jar",
        "originalDeploymentRepo": "elsewhere",
        "later": {"x": 1},
    }
    dependency = {"id": "g:a:1", "type": "jar", "sha1": "d" * 40, "requestedBy": [["b"]]}
    module = {
        "id": "b",
        "type": "maven",
        "properties": {"p": "q"},
        "artifacts": [artifact],
        "dependencies": [dependency],
    }
    serve(server)
    server.run(Operation, given(modules=[module]))
    assert sent(server)["modules"] == [module]
    assert not any(name.startswith("HEAD") for name in server.asked)


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ({"id": "m", "artefacts": []}, "modules[0].artefacts is unknown: did you mean artifacts?"),
        ({"ID": "m"}, "did you mean id?"),
        ({"type": "t"}, "modules[0]: id is missing"),
        ({"id": "m", "artifacts": [{"Path": "p", "repo": "r"}]}, "did you mean path?"),
        ({"id": "m", "artifacts": ["x"]}, "modules[0].artifacts[0] is a string"),
        ({"id": "m", "artifacts": [{"repo": "r", "path": 1.5}]}, "modules[0].artifacts[0].path"),
        ({"id": "m", "dependencies": [{"id": "n", "sha1": "x"}]}, "dependencies[0].sha1"),
    ],
)
def test_invalid_module_is_rejected(server: Server, module: dict[str, Any], words: str) -> None:
    error = server.fails(Operation, given(modules=[module]))
    assert error.kind == "invalid"
    assert words in error.message
    assert server.asked == []
