# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that repositories are created, updated and deleted as described, one or many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.configuration import (
    catalogue,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.configuration.repo_repository import (
    RepoRepositoryOperation as Operation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

COMMON = {"description": "", "notes": "", "includesPattern": "**/*", "excludesPattern": ""}
MERGE = "Could not merge and save new descriptor [x]"
NO_LICENCE = "This REST API is available only in Artifactory Pro"
BATCH = "/api/v2/repositories/batch"


def local(key: str, **fields: Any) -> dict[str, Any]:
    return {"key": key, "rclass": "local", "packageType": "generic", **COMMON, **fields}


def remote(key: str, **fields: Any) -> dict[str, Any]:
    found = local(key, rclass="remote", url="https://a.example", username="", password="AM.x")
    return {**found, **fields}


def virtual(key: str, *members: str, **fields: Any) -> dict[str, Any]:
    return local(key, rclass="virtual", repositories=list(members), **fields)


class Manager:
    """A repository manager that keeps configurations.

    :ivar dropped: fields that it does not know
    :ivar short: fields that the list of all configurations lacks
    :ivar lag: number of reads that see the state before a change
    :ivar replies: replies in place of the next writes
    """

    def __init__(self, server: Server, *configs: dict[str, Any]) -> None:
        self.server, self.configs = server, {config["key"]: config for config in configs}
        self.dropped = {"unknownSetting"}
        self.short, self.partial, self.lists, self.batches = set[str](), False, True, True
        self.lag, self.replies, self.files = 0, list[Reply | str](), dict[str, int]()
        self._before: tuple[str, dict[str, Any] | None] = ("", None)
        self.attached: list[str] = []
        server.stub.response = self.response

    @property
    def sent(self) -> list[str]:
        return [name for name in self.server.asked if not name.startswith("GET")]

    def bodies(self) -> list[Any]:
        return [json.loads(s.body) for s in self.server.stub.seen if s.method != "GET" and s.body]

    def response(self, seen: Seen) -> Reply:
        path = unquote(urlsplit(seen.target).path).removeprefix("/base")
        if seen.method != "GET" and self.replies:
            reply = self.replies.pop(0)
            if isinstance(reply, Reply):
                return reply
            self.write(seen, path)  # done, but the response is lost
            return Reply(cut=True)
        if seen.method != "GET":
            return self.write(seen, path)
        if path == "/api/repositories":
            rows = [{"key": key, "type": "LOCAL"} for key in self.configs]
            return Reply(body=json.dumps(rows))
        if path == "/api/repositories/configurations":
            return self.listing()
        if path == BATCH:
            names = parse_qs(urlsplit(seen.target).query)["names"]
            found = {name: self.configs[name] for name in names if name in self.configs}
            return Reply(body=found) if self.batches else Reply(404)
        if path.startswith("/api/storage/"):
            count = self.files.get(path.removeprefix("/api/storage/").strip("/"), 0)
            return Reply(body={"files": [{"uri": f"/{n}", "size": 1} for n in range(count)]})
        return self.read(path.removeprefix("/api/repositories/"))

    def listing(self) -> Reply:
        if not self.lists:
            return Reply(404)
        found: dict[str, list[Any]] = {}
        for config in self.configs.values():
            fields = {name: value for name, value in config.items() if name not in self.short}
            found.setdefault(config["rclass"].upper(), []).append(fields)
        return Reply(body=found)

    def read(self, key: str) -> Reply:
        config = self.configs.get(key)
        if self.lag and self._before[0] == key:
            self.lag, config = self.lag - 1, self._before[1]
        if config is None:
            return Reply(400, {"errors": [{"status": 400, "message": "Bad Request"}]})
        if self.partial:
            config = {name: config[name] for name in ("key", "rclass", "packageType")}
        return Reply(body=config)

    def write(self, seen: Seen, path: str) -> Reply:
        if path.startswith("/access/"):
            return self.attach(seen, path)
        given: Any = json.loads(seen.body) if seen.body else None
        if path == BATCH:
            if not self.batches:
                return Reply(404)
            if any(each["key"] in self.configs for each in given):
                return Reply(409, "exists")
            for each in given:
                self.keep(each["key"], {**COMMON, **each})
            return Reply(201, "")
        key = path.removeprefix("/api/repositories/")
        if seen.method == "DELETE":
            del self.configs[key]
        elif (seen.method == "PUT") is (key in self.configs):
            return Reply(400, "exists, or does not")
        else:
            self.keep(key, {**(self.configs.get(key) or COMMON), **given})
        return Reply(200, "done")

    def keep(self, key: str, config: Mapping[str, Any]) -> None:
        self._before = (key, self.configs.get(key))
        self.configs[key] = {n: value for n, value in config.items() if n not in self.dropped}

    def attach(self, seen: Seen, path: str) -> Reply:
        self.attached.append(f"{seen.method} {seen.target.partition('repositories/')[2]}")
        key, _slash, project = path.partition("repositories/")[2].partition("/")
        self.configs[key]["projectKey"] = project
        return Reply(204)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue.Writer, "interval", 0.001)


def test_empty_includes_mean_everything(server: Server) -> None:
    manager = Manager(server)
    given = {"key": "a", "rclass": "local", "package_type": "maven", "includes": [], "excludes": []}
    server.run(Operation, given)
    (sent,) = manager.bodies()
    assert (sent["includesPattern"], sent["excludesPattern"]) == ("**/*", "")


def test_repository_is_created_and_then_unchanged(server: Server) -> None:
    manager = Manager(server)
    given = {
        "key": "a",
        "rclass": "local",
        "package_type": "maven",
        "notes": "n",
        "includes": ["com/**", "org/**"],
        "excludes": ["tmp/**"],
        "layout": "maven-2-default",
        "settings": {"handleSnapshots": "false", "maxUniqueSnapshots": 3},
    }
    plan, values = server.run(Operation, given)
    assert (plan.action, manager.sent) == ("create", ["PUT /api/repositories/a"])
    assert manager.bodies() == [
        {
            "key": "a",
            "rclass": "local",
            "packageType": "maven",
            "notes": "n",
            "includesPattern": "com/**,org/**",
            "excludesPattern": "tmp/**",
            "repoLayoutRef": "maven-2-default",
            "handleSnapshots": False,
            "maxUniqueSnapshots": 3,
        }
    ]
    assert values["repository"]["maxUniqueSnapshots"] == 3
    plan, _values = server.run(Operation, given)
    assert not plan.changed
    assert server.asked[-1] == "GET /api/repositories/a"


def test_update_sends_differences_only(server: Server) -> None:
    manager = Manager(server, local("a", description="old", xrayIndex=True, blackedOut=False))
    given = {"key": "a", "description": "new", "settings": {"xrayIndex": True, "blackedOut": True}}
    plan, _values = server.run(Operation, given)
    assert plan.before == {
        "rclass": "local",
        "package_type": "generic",
        "description": "old",
        "settings.xrayIndex": True,
        "settings.blackedOut": False,
    }
    assert manager.bodies() == [{"description": "new", "blackedOut": True}]
    assert [change.field for change in plan.changes] == ["description", "settings.blackedOut"]


@pytest.mark.parametrize(
    ("config", "given"),
    [
        ({"includesPattern": "a/**, b/** "}, {"includes": ["a/**", "b/**"]}),
        ({"includesPattern": "a/**,b/**"}, {"includes": ["a/**,b/** "]}),
        ({"includesPattern": "**/*"}, {"includes": []}),
        ({"projectKey": "default"}, {"project": ""}),
        ({"description": None}, {"description": ""}),
        ({"propertySets": ["b", "a"]}, {"settings": {"propertySets": ["a", "b"]}}),
        ({}, {"settings": {"primaryKeyPairRef": ""}}),
        ({}, {"settings": {"disableProxy": True}}),
        ({"s": {"x": 1, "y": {"z": 2}}}, {"settings": {"s": {"y": {"z": 2}}}}),
        ({"projectKey": "p", "environments": ["B", "A"]}, {"environments": ["A", "B"]}),
        ({"packageType": "rpm"}, {"package_type": "yum"}),
    ],
)
def test_equivalent_spellings_are_unchanged(
    server: Server, config: dict[str, Any], given: dict[str, Any]
) -> None:
    Manager(server, local("a", **config))
    plan, _values = server.run(Operation, {"key": "a", **given})
    assert plan.changes == ()


def test_omitted_members_of_a_mapping_are_kept(server: Server) -> None:
    manager = Manager(server, remote("a", contentSynchronisation={"enabled": False, "x": {"y": 1}}))
    server.run(Operation, {"key": "a", "settings": {"contentSynchronisation": {"enabled": True}}})
    assert manager.bodies()[0]["contentSynchronisation"]["x"] == {"y": 1}


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"rclass": "remote"}, "conflict", "is 'local' and cannot be changed to 'remote'"),
        ({"package_type": "npm"}, "conflict", "is 'generic' and cannot be changed to 'npm'"),
        ({"remote_url": "https://x"}, "invalid", "remote_url applies to a remote repository"),
        ({"environments": ["PROD"]}, "rejected", "the server ignores them without a project"),
    ],
)
def test_impossible_change_is_rejected(
    server: Server, given: dict[str, Any], kind: str, message: str
) -> None:
    manager = Manager(server, local("a"))
    error = server.fails(Operation, {"key": "a", **given})
    assert (error.kind, manager.sent) == (kind, [])
    assert message in error.message


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": "a b"}, "is not a valid repository key"),
        ({"key": "a" * 65}, "is not a valid repository key"),
        ({"key": "a*", "state": "absent"}, "is not a valid repository key"),
        ({"key": "a", "state": "absent", "notes": "x"}, "notes cannot be combined"),
        ({"key": "a", "update_password": "always"}, "requires remote_password: set it"),
        ({"key": "a", "rclass": "local", "repositories": []}, "applies to a virtual repository"),
        (
            {"key": "a", "settings": {"maxUniqueTags": "ten"}},
            "settings.maxUniqueTags is the string",
        ),
        ({"key": "a", "settings": {"hardFail": 3}}, "settings.hardFail is the number 3"),
        ({"key": "a", "settings": {"notes": "x"}}, "settings.notes: use the option notes"),
        ({"key": "a", "settings": {"url": "x"}}, "settings.url: use the option remote_url"),
        ({"key": "a", "settings": {"checksumPolicyType": "x"}}, "must be one of client-checksums"),
        ({"entries": [{"key": "a"}, {"key": "a"}]}, "entries[1] is 'a', the same as entries[0]"),
        ({"entries": [{"key": "a"}, {"key": "A"}]}, "entries[1] is 'A', the same as entries[0]"),
        ({"key": "a", "repositories": ["a"]}, "the repository refers to itself"),
        (
            {"entries": [{"key": "a", "repositories": ["b"]}, {"key": "b", "state": "absent"}]},
            "entries[0] ('a'): the repository refers to 'b', which entries[1] deletes",
        ),
        (
            {
                "entries": [
                    {"key": "b", "state": "absent"},
                    {"key": "a", "default_deployment_repo": "b"},
                ]
            },
            "entries[1] ('a'): the repository refers to 'b', which entries[0] deletes",
        ),
        ({"entries": [{"key": "a b"}]}, "entries[0]: key: 'a b'"),
        ({"key": "a", "rclass": "remote", "remote_url": "registry.example.org"}, "remote_url must"),
        ({"key": "a", "rclass": "remote", "remote_url": "https:///npm"}, "remote_url must begin"),
        ({"key": "a", "members": [{"url": "art.example/a"}]}, "members[0].url must begin"),
        ({"entries": [{"key": "a"}], "notes": "x"}, "notes cannot be combined with entries"),
    ],
)
def test_invalid_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any], message: str
) -> None:
    error = server.fails(Operation, given)
    assert (error.kind, server.asked) == ("invalid", [])
    assert message in error.message


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "rclass and package_type"),
        ({"rclass": "remote", "package_type": "npm"}, "remote_url"),
    ],
)
def test_new_repository_requires_further_options(
    server: Server, given: dict[str, Any], names: str
) -> None:
    Manager(server)
    error = server.fails(Operation, {"key": "a", **given})
    assert (error.kind, error.message) == (
        "invalid",
        f"the repository 'a' does not exist yet: set {names}",
    )


def test_password_is_sent_only_on_creation_and_on_request(server: Server) -> None:
    manager = Manager(server)
    given = {"key": "a", "remote_password": "pw-1234", "remote_username": "u"}
    new = {**given, "rclass": "remote", "package_type": "npm", "remote_url": "https://a.example"}
    plan, values = server.run(Operation, new)
    assert manager.bodies()[0]["password"] == "pw-1234"
    assert "pw-1234" not in f"{plan}{values}"
    assert "password" not in values["repository"]
    manager.configs["a"]["password"] = "AM.encrypted"
    assert not server.run(Operation, given)[0].changed
    plan, _values = server.run(Operation, {**given, "description": "new"})
    assert plan.changed
    assert "AM.encrypted" not in str(plan)
    plan, values = server.run(Operation, {**given, "update_password": "always"})
    assert manager.bodies()[-1] == {"password": "pw-1234"}
    assert [(c.before, c.after) for c in plan.changes] == [("(secret)", "(new secret)")]
    assert "password" not in values["repository"]


def test_dropped_setting_is_rejected(server: Server) -> None:
    manager = Manager(server, local("a"))
    error = server.fails(Operation, {"key": "a", "settings": {"unknownSetting": 1}})
    assert error.kind == "rejected"
    assert "did not save settings.unknownSetting" in error.message
    assert (len(manager.sent), error.result["changed"]) == (1, False)
    both = {"unknownSetting": 1, "xrayIndex": True}
    error = server.fails(Operation, {"key": "a", "settings": both})
    assert (error.kind, error.result["changed"]) == ("rejected", True)


def test_dropped_known_setting_is_awaited(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = Manager(server, local("a"))
    manager.dropped.add("maxUniqueTags")
    kept = catalogue.Writer.__init__

    def impatient(self: Any, *given: Any) -> None:
        kept(self, *given)
        self._patience = 0.05

    monkeypatch.setattr(catalogue.Writer, "__init__", impatient)
    error = server.fails(Operation, {"key": "a", "settings": {"maxUniqueTags": 1}})
    assert (error.kind, len(manager.sent)) == ("rejected", 1)
    assert len(server.asked) > 4


def test_delayed_change_is_awaited(server: Server) -> None:
    manager = Manager(server, local("b"))
    manager.lag = 5
    server.run(Operation, {"key": "a", "rclass": "local", "package_type": "npm"})
    assert manager.lag == 0
    manager.lag = 5
    _plan, values = server.run(Operation, {"key": "b", "notes": "x"})
    assert (manager.lag, values["repository"]["notes"]) == (0, "x")


def test_collision_is_retried_after_a_read(server: Server) -> None:
    manager = Manager(server, local("a"))
    manager.replies = [Reply(400, {"errors": [{"status": 400, "message": MERGE}]})] * 3
    server.run(Operation, {"key": "a", "notes": "x"})
    assert manager.sent == ["POST /api/repositories/a"] * 4
    assert manager.configs["a"]["notes"] == "x"


def test_collision_retries_are_limited_to_ten(server: Server) -> None:
    manager = Manager(server, local("a"))
    manager.replies = [Reply(400, {"errors": [{"status": 400, "message": MERGE}]})] * 30
    error = server.fails(Operation, {"key": "a", "notes": "x"})
    assert (error.kind, len(manager.sent)) == ("rejected", 11)
    assert "collided with other configuration changes 11 times" in error.message


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_lost_response_is_verified(server: Server, method: str) -> None:
    manager = Manager(server, *([] if method == "PUT" else [local("a")]))
    manager.replies = ["lost"]
    given = {"PUT": {"rclass": "local", "package_type": "npm"}, "POST": {"notes": "x"}}
    plan, _values = server.run(Operation, {"key": "a", **given.get(method, {"state": "absent"})})
    assert plan.changed
    assert manager.sent == [f"{method} /api/repositories/a"]


def test_write_without_effect_is_an_error(server: Server) -> None:
    manager = Manager(server, local("a"))
    manager.replies = [Reply(cut=True)]
    error = server.fails(Operation, {"key": "a", "notes": "x"})
    assert "nothing was changed" in error.message


def test_deletion_with_content_is_a_conflict(server: Server) -> None:
    manager = Manager(server, local("a"), remote("r"), virtual("v", "a"))
    manager.files = {"a": 3, "r-cache": 2}
    error = server.fails(Operation, {"key": "a", "state": "absent"})
    assert (error.kind, manager.sent) == ("conflict", [])
    assert "also delete 3 files" in error.message
    assert "also delete 2 files" in server.fails(Operation, {"key": "r", "state": "absent"}).message
    plan, values = server.run(Operation, {"key": "a", "state": "absent", "force": True})
    assert (plan.before["files"], plan.after, values["repository"]) == (3, {}, None)
    server.run(Operation, {"key": "v", "state": "absent"})
    assert list(manager.configs) == ["r"]
    assert not server.run(Operation, {"key": "v", "state": "absent"})[0].changed


def test_members_of_a_virtual_repository_are_ordered_and_exact(server: Server) -> None:
    manager = Manager(server, local("a"), local("b"), virtual("v", "a", "b"))
    assert not server.run(Operation, {"key": "v", "repositories": ["a", "b"]})[0].changed
    assert server.run(Operation, {"key": "v", "repositories": ["b", "a"]})[0].changed
    server.run(Operation, {"key": "v", "repositories": ["b"], "default_deployment_repo": "b"})
    assert manager.bodies()[-1] == {"repositories": ["b"], "defaultDeploymentRepo": "b"}
    for given in ({"repositories": ["b", "gone"]}, {"default_deployment_repo": "gone"}):
        error = server.fails(Operation, {"key": "v", **given})
        assert error.kind == "not_found"
        assert "refers to 'gone'" in error.message


def test_deployment_repository_is_removed_by_an_unknown_name(
    server: Server,
) -> None:
    manager = Manager(server, local("a"), virtual("v", "a", defaultDeploymentRepo="a"))
    manager.replies = [Reply(200, "ignored")]
    kept = manager.keep

    def keep(key: str, config: Mapping[str, Any]) -> None:
        kept(key, {**config, "defaultDeploymentRepo": ""})

    manager.keep = keep  # type: ignore[method-assign]
    server.run(Operation, {"key": "v", "default_deployment_repo": ""})
    assert manager.bodies() == [
        {"defaultDeploymentRepo": ""},
        {"defaultDeploymentRepo": "v-no-deployments"},
    ]


def test_members_of_a_federated_repository_are_compared(server: Server) -> None:
    members = [{"url": "https://b/x", "enabled": False}, {"url": "https://a/x/", "enabled": True}]
    manager = Manager(server, local("f", rclass="federated", members=members))
    given = [{"url": "https://a/x"}, {"url": "https://b/x", "enabled": False}]
    assert not server.run(Operation, {"key": "f", "members": given})[0].changed
    server.run(Operation, {"key": "f", "members": [{"url": "https://a/x"}]})
    assert manager.bodies() == [{"members": [{"url": "https://a/x", "enabled": True}]}]


def test_repository_is_assigned_to_a_project(server: Server) -> None:
    manager = Manager(server, local("a", projectKey="default"), local("b", projectKey="old"))
    server.run(Operation, {"key": "a", "project": "new", "environments": ["PROD"]})
    assert manager.bodies() == [{"environments": ["PROD"]}]
    assert manager.sent[-1] == "POST /api/repositories/a"
    server.run(Operation, {"key": "b", "project": "new"})
    server.run(Operation, {"key": "b", "project": ""})
    assert manager.attached == ["PUT a/new", "PUT b/new?force=true", "DELETE b"]


def test_project_ignored_on_creation_is_assigned(server: Server) -> None:
    manager = Manager(server)
    manager.dropped = {"projectKey"}
    new = {"key": "a", "rclass": "local", "package_type": "npm", "project": "p"}
    server.run(Operation, new)
    assert manager.attached == ["PUT a/p"]


def test_restricted_account_is_rejected(server: Server) -> None:
    manager = Manager(server, local("a"))
    manager.partial = True
    for given in ({"notes": "x"}, {"state": "absent"}):
        error = server.fails(Operation, {"key": "a", **given})
        assert (error.kind, manager.sent) == ("permission", [])
    assert not server.run(Operation, {"key": "a", "rclass": "local"})[0].changed


@pytest.mark.parametrize("path", ["/api/repositories/a", "/api/repositories/configurations"])
def test_edition_without_interface_is_reported(server: Server, path: str) -> None:
    server.on[f"GET {path}"] = Reply(400, {"errors": [{"status": 400, "message": NO_LICENCE}]})
    entries = [{"key": "a", "state": "absent"}, {"key": "b", "state": "absent"}]
    many = path.endswith("s")
    error = server.fails(Operation, {"entries": entries} if many else {"key": "a", "notes": "x"})
    assert (error.kind, len(server.asked)) == ("rejected", 1)
    assert "this edition of the server does not support it" in error.message


def test_unreadable_listed_repository_is_not_absent(server: Server) -> None:
    server.on["GET /api/repositories"] = Reply(body='[{"key": "a"}]')
    server.on["GET /api/repositories/a"] = Reply(400, "Bad Request")
    assert server.fails(Operation, {"key": "a", "state": "absent"}).kind == "rejected"


def test_server_with_documented_interface_only_is_reported(server: Server) -> None:
    server.on["GET /api/repositories/a"] = Reply(body={"key": "a", "type": "LOCAL"})
    error = server.fails(Operation, {"key": "a", "notes": "x"})
    assert "does not support the interface for repository configurations" in error.message


# -- entries --------------------------------------------------------------------------------------


def many(count: int, **fields: Any) -> list[dict[str, Any]]:
    return [{"key": f"r{number}", **fields} for number in range(count)]


def test_many_unchanged_entries_cost_one_request(server: Server) -> None:
    Manager(server, *(local(f"r{number}") for number in range(250)))
    entries = many(250, description="", rclass="local", package_type="generic")
    plan, values = server.run(Operation, {"entries": entries})
    assert not plan.changed
    assert server.asked == ["GET /api/repositories/configurations"]
    assert {item["action"] for item in values["results"]} == {"unchanged"}


@pytest.mark.parametrize(("batches", "requests"), [(True, 1 + 3), (False, 1 + 1 + 250)])
def test_fields_missing_in_the_list_are_read_in_batches(
    server: Server, batches: bool, requests: int
) -> None:
    manager = Manager(server, *(local(f"r{number}", maxUniqueTags=5) for number in range(250)))
    manager.short, manager.batches = {"maxUniqueTags"}, batches
    plan, _values = server.run(Operation, {"entries": many(250, settings={"maxUniqueTags": 5})})
    assert not plan.changed
    assert len(server.asked) == requests


def test_older_server_is_read_individually(server: Server) -> None:
    manager = Manager(server, local("r0"), local("r1"))
    manager.lists = manager.batches = False
    entries = [*many(2, description=""), {"key": "gone", "state": "absent"}]
    plan, _values = server.run(Operation, {"entries": entries})
    assert not plan.changed
    assert len(server.asked) <= 5


def test_new_repositories_are_created_in_batches_in_order(server: Server) -> None:
    manager = Manager(server)
    entries = [
        {"key": "v", "rclass": "virtual", "package_type": "npm", "repositories": ["w", "a"]},
        {"key": "w", "rclass": "virtual", "package_type": "npm", "repositories": ["b"]},
        {"key": "a", "rclass": "local", "package_type": "npm"},
        {"key": "b", "rclass": "local", "package_type": "npm"},
    ]
    _plan, values = server.run(Operation, {"entries": entries})
    assert manager.sent == [f"PUT {BATCH}", "PUT /api/repositories/w", "PUT /api/repositories/v"]
    assert [item["action"] for item in values["results"]] == ["created"] * 4


@pytest.mark.parametrize(
    "reply", [Reply(404), Reply(400, "one entry is invalid"), Reply(500), "lost"]
)
def test_failed_batch_continues_individually(server: Server, reply: Reply | str) -> None:
    manager = Manager(server)
    manager.replies = [reply]
    server.run(Operation, {"entries": many(3, rclass="local", package_type="npm")})
    assert list(manager.configs) == ["r0", "r1", "r2"]
    assert len(manager.sent) == (1 if reply == "lost" else 4)


def test_batch_without_permission_fails_every_entry(server: Server) -> None:
    manager = Manager(server)
    manager.replies = [Reply(403, "no")]
    error = server.fails(Operation, {"entries": many(3, rclass="local", package_type="npm")})
    assert (error.kind, len(manager.sent)) == ("permission", 1)
    assert error.message.startswith("3 of 3 entries failed")


@pytest.mark.parametrize(
    ("replies", "writes"), [([Reply(401)], 1), ([Reply(400, "one is invalid"), Reply(401)], 2)]
)
def test_rejected_login_ends_the_writes(server: Server, replies: list[Reply], writes: int) -> None:
    """Each further request with the login could lock the account."""
    manager = Manager(server, local("u"))
    manager.replies = list(replies)
    virtual_one = {"key": "v", "rclass": "virtual", "package_type": "npm", "repositories": ["r0"]}
    new = many(2, rclass="local", package_type="npm")
    error = server.fails(Operation, {"entries": [*new, virtual_one, {"key": "u", "notes": "x"}]})
    assert (error.kind, len(manager.sent)) == ("auth", writes)
    assert ["error" in row for row in error.result["results"]] == [True] * 4


def test_failed_entry_does_not_stop_the_others(server: Server) -> None:
    manager = Manager(server, local("a"), local("b"), virtual("v", "a"))
    entries = [
        {"key": "a", "package_type": "npm"},
        {"key": "b", "notes": "x"},
        {"key": "v", "repositories": ["gone"]},
    ]
    error = server.fails(Operation, {"entries": entries})
    assert (error.kind, manager.sent) == ("conflict", ["POST /api/repositories/b"])
    actions = [(item["action"], "error" in item) for item in error.result["results"]]
    assert actions == [("unchanged", True), ("updated", False), ("unchanged", True)]


def test_virtual_repositories_are_deleted_first(server: Server) -> None:
    manager = Manager(server, local("a"), virtual("v", "a"))
    server.run(
        Operation, {"entries": [{"key": "a", "state": "absent"}, {"key": "v", "state": "absent"}]}
    )
    assert manager.sent == ["DELETE /api/repositories/v", "DELETE /api/repositories/a"]


def test_key_in_another_letter_case_is_a_conflict_in_check_mode(server: Server) -> None:
    Manager(server, local("Tools"))
    new = {"key": "tools", "rclass": "local", "package_type": "npm"}
    with pytest.raises(ToolchainError, match="the repository 'Tools' exists") as caught:
        server.run(Operation, new, check=True)
    assert caught.value.kind == "conflict"


def test_check_mode_requires_an_administrator(server: Server) -> None:
    kept = Manager(server).response
    new = {"key": "a", "rclass": "local", "package_type": "npm"}
    server.run(Operation, new, check=True)
    assert server.asked[-1] == "GET /api/repositories/configurations"

    def refused(seen: Seen) -> Reply:
        return Reply(403, "no") if "configurations" in seen.target else kept(seen)

    server.stub.response = refused
    with pytest.raises(Exception, match="403"):
        server.run(Operation, new, check=True)
    server.run(Operation, {**new, "project": "p"}, check=True)
