# SPDX-License-Identifier: GPL-3.0-or-later
"""Test names in another Unicode form, and messages about virtual repositories and tags."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup import (
    artifact_cleanup,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images import (
    docker_image_info,
    docker_promote,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import (
    artifact_deploy,
    artifact_info,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_download,
    artifact_properties,
)
from tests.unit.repo import test_copy
from tests.unit.repo.conftest import Server
from tests.unit.repo.test_deploy import LOCAL, head
from tests.unit.stub import Reply

Form: TypeAlias = Literal["NFC", "NFD"]
NFC, NFD = (unicodedata.normalize(form, "a/größe.txt") for form in ("NFC", "NFD"))
REPOS = [
    {"key": "v", "type": "VIRTUAL"},
    {"key": "r", "type": "LOCAL"},
    {"key": "s", "type": "LOCAL"},
]
Properties = artifact_properties.ArtifactPropertiesOperation


@pytest.fixture(autouse=True)
def repository(server: Server) -> None:
    server.on["GET /api/repositories"] = Reply(body=json.dumps(REPOS))
    server.on["GET /api/repositories/r"] = LOCAL
    virtual = {"key": "v", "rclass": "virtual", "repositories": ["r", "s"]}
    server.on["GET /api/repositories/v"] = Reply(body={**virtual, "defaultDeploymentRepo": "r"})


# --- names in another Unicode form ----------------------------------------------------------------


@pytest.mark.parametrize(("there", "given"), [(NFD, NFC), (NFC, NFD), (NFC, NFC)])
def test_download_finds_the_name_in_the_other_form(
    server: Server, tmp_path: Path, there: str, given: str
) -> None:
    server.on[f"HEAD /r/{there}"] = server.on[f"GET /r/{there}"] = head("x")
    options = {"repo": "r", "path": given, "dest": f"{tmp_path}/"}
    server.run(artifact_download.ArtifactDownloadOperation, options)
    assert (tmp_path / given.rpartition("/")[2]).read_text() == "x"


@pytest.mark.parametrize("pattern", ["a/gr*ße.txt", "**/größe.txt"])
@pytest.mark.parametrize(("there", "given"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_pattern_finds_the_name_in_the_other_form(
    server: Server, pattern: str, there: Form, given: Form
) -> None:
    path = unicodedata.normalize(there, NFC)
    store = test_copy.Store(server, r={path: "x"})
    options = {"repo": "r", "target_repo": "s", "path": unicodedata.normalize(given, pattern)}
    server.run(test_copy.Operation, options)
    assert store.files["s"] == {path: "x"}


@pytest.mark.parametrize("move", [False, True])
def test_copy_finds_the_name_in_the_other_form(server: Server, move: bool) -> None:
    store = test_copy.Store(server, r={NFD: "x"})
    options = {"repo": "r", "target_repo": "s", "path": NFC, "move": move}
    server.run(test_copy.Operation, options)
    assert store.files["s"] == {NFD: "x"}
    plan, _values = server.run(test_copy.Operation, options)
    assert not plan.changed


def test_local_source_is_found_in_the_other_form(server: Server, tmp_path: Path) -> None:
    name = NFD.rpartition("/")[2]
    (tmp_path / name).write_text("x")
    options = {
        "repo": "r",
        "path": "b.txt",
        "src": unicodedata.normalize("NFC", f"{tmp_path}/{name}"),
    }
    plan, _values = server.run(artifact_deploy.ArtifactDeployOperation, options, check=True)
    assert plan.changed


def test_properties_are_set_at_the_stored_name(server: Server) -> None:
    server.on[f"HEAD /r/{NFD}"] = head("x")
    empty = Reply(404, "No properties could be found.")
    has = Reply(body={"properties": {"k": ["v"]}})
    server.on[f"GET /api/storage/r/{NFD}?properties"] = [empty, has]
    server.on[f"PUT /api/storage/r/{NFD}?properties=k=v&recursive=0"] = Reply(204)
    plan, _values = server.run(Properties, {"repo": "r", "path": NFC, "properties": {"k": "v"}})
    assert plan.changed


def test_name_with_a_single_form_costs_no_request(server: Server, tmp_path: Path) -> None:
    options = {"repo": "r", "path": "a/b.txt", "dest": f"{tmp_path}/"}
    server.fails(artifact_download.ArtifactDownloadOperation, options)
    assert server.asked.count("HEAD /r/a/b.txt") == 1


# --- properties of files that can be read ---------------------------------------------------------


def readable(server: Server, *repos: str) -> None:
    for repo in repos:
        server.on[f"HEAD /{repo}/a/b"] = head("x")
        server.on[f"GET /api/storage/{repo}/a/b?properties"] = Reply(404, "No properties")


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("state", ["present", "absent"])
def test_file_of_another_member_is_named(server: Server, check: bool, state: str) -> None:
    readable(server, "v", "s")
    server.on["GET /api/storage/v/a/b?properties"] = Reply(body={"properties": {"k": ["w"]}})
    given = {"repo": "v", "path": "a/b", "properties": {"k": "v"}, "state": state}
    with pytest.raises(ToolchainError) as caught:
        server.run(Properties, given, check=check)
    assert caught.value.kind == "invalid"
    assert "'v' is a virtual repository" in caught.value.message
    assert "set repo to 's'" in caught.value.message


def test_hidden_permission_is_named(server: Server) -> None:
    readable(server, "r")
    error = server.fails(Properties, {"repo": "r", "path": "a/b", "properties": {"k": "v"}})
    assert (error.kind, error.status) == ("permission", 404)
    assert "can be read, so the account lacks the permission" in error.message


# --- patterns and tags ----------------------------------------------------------------------------


def test_pattern_search_in_a_virtual_repository_names_the_local_ones(server: Server) -> None:
    server.on["GET /api/search/pattern?pattern=v:a/*"] = Reply(400)
    error = server.fails(artifact_info.ArtifactInfoOperation, {"pattern": "v:a/*"})
    assert error.kind == "invalid"
    assert "cannot be searched by pattern: name a local repository" in error.message
    assert "'r', 's'" in error.message


def test_other_refusals_of_a_pattern_search_are_shown(server: Server) -> None:
    server.on["GET /api/search/pattern?pattern=r:a/*"] = Reply(400, "no licence")
    error = server.fails(artifact_info.ArtifactInfoOperation, {"pattern": "r:a/*"})
    assert (error.kind, error.status, "no licence" in error.message) == ("rejected", 400, True)


PROMOTE = docker_promote.DockerPromoteOperation
INFO = docker_image_info.DockerImageInfoOperation
IMAGE = {"repo": "r", "image": "app", "target_repo": "s"}


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        (PROMOTE, {**IMAGE, "tag": "1.0.0+5"}),
        (PROMOTE, {**IMAGE, "tag": "1", "target_tag": "1.0.0+5"}),
        (PROMOTE, {**IMAGE, "tags": ["1", "1.0.0+5"]}),
        (PROMOTE, {**IMAGE, "image": "app:1.0.0+5"}),
        (INFO, {"image": "r/app:1.0.0+5"}),
        (
            artifact_cleanup.ArtifactCleanupOperation,
            {"rules": [{"repo": "r", "name": "1.0.0+5", "keep_last_by": "image"}]},
        ),
    ],
)
def test_version_of_a_chart_is_no_tag(server: Server, operation: Any, given: Any) -> None:
    error = server.fails(operation, given)
    assert (error.kind, server.asked) == ("invalid", [])
    assert "Helm stores this version as" in error.message
    assert "1.0.0_5'" in error.message
