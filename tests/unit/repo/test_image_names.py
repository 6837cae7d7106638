# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the spelling of images in modules and lookups."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.image_names import (
    ImageReference,
    image_of,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_image_info import (
    DockerImageInfoOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_promote import (
    DockerPromoteOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

DIGEST = f"sha256:{'a' * 64}"
OTHER = f"sha256:{'b' * 64}"
TAGS = "GET /api/docker/r/v2/team/app/tags/list?n=1000"


def manifest(repo: str, tag: str) -> str:
    return f"HEAD /api/docker/{repo}/v2/team/app/manifests/{tag}"


def has(digest: str) -> Reply:
    return Reply(headers={"Docker-Content-Digest": digest})


@pytest.mark.parametrize(
    ("text", "repo", "expected"),
    [
        ("team/app", "r", ImageReference("r", "team/app")),
        ("r/team/app", "r", ImageReference("r", "team/app")),
        ("r/team/app", None, ImageReference("r", "team/app")),
        ("/r/app/", None, ImageReference("r", "app")),
        ("app:1.0", "r", ImageReference("r", "app", "1.0")),
        ("r/app:1.0", None, ImageReference("r", "app", "1.0")),
        (f"app@{DIGEST}", "r", ImageReference("r", "app", None, DIGEST)),
        (f"r/app:1@{DIGEST}", None, ImageReference("r", "app", "1", DIGEST)),
    ],
)
def test_image_name_is_parsed(text: str, repo: str | None, expected: ImageReference) -> None:
    assert image_of("image", text, repo) == expected


@pytest.mark.parametrize(
    ("text", "repo", "words"),
    [
        ("app", None, "has no repository: set repo, or write repo/image:tag"),
        (":1", "r", "does not name an image"),
        ("/", "r", "does not name an image"),
        ("app:", "r", "has no valid tag"),
        ("app:-1", "r", "has no valid tag"),
        ("host:5000/app:1", None, "does not name an image"),
        ("app@sha256:12", "r", "has no valid digest"),
        ("app@1.0", "r", "has no valid digest"),
        ("a/../b", "r", "'..'"),
        ("r/app", "a/b", "repo: 'a/b' is not a valid repository key"),
    ],
)
def test_invalid_image_name_is_rejected(text: str, repo: str | None, words: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        image_of("image", text, repo)
    assert caught.value.kind == "invalid"
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({"image": "r/team/app"}, ["2", "1"]),
        ({"image": "r/team/app:1"}, ["1"]),
        ({"repo": "r", "image": "team/app:1"}, ["1"]),
        ({"image": f"r/team/app@{DIGEST}"}, ["1"]),
        ({"image": f"r/team/app:2@{DIGEST}"}, "not_found"),
        ({"image": "r/team/app:3"}, "not_found"),
    ],
)
def test_tags_are_listed_by_full_image_name(
    server: Server, image: dict[str, Any], expected: Any
) -> None:
    server.on[TAGS] = Reply(body={"tags": ["2", "1"]})
    server.on |= {manifest("r", "1"): has(DIGEST), manifest("r", "2"): has(OTHER)}
    if expected == "not_found":
        error = server.fails(DockerImageInfoOperation, image)
        assert error.kind == expected
        assert "the image 'r/team/app' has no" in error.message
    else:
        assert server.run(DockerImageInfoOperation, image)[1] == {"tags": expected}


@pytest.mark.parametrize(
    ("given", "source", "target"),
    [
        ({"image": "r/team/app:1"}, "1", "1"),
        ({"repo": "r", "image": "r/team/app:1", "tag": "1"}, "1", "1"),
        ({"image": f"r/team/app:1@{DIGEST}", "target_image": "s/team/app:stable"}, "1", "stable"),
        ({"image": "r/team/app", "tag": "1", "target_image": "team/app"}, "1", "1"),
    ],
)
def test_image_is_promoted_by_full_name(
    server: Server, given: dict[str, Any], source: str, target: str
) -> None:
    server.on |= {manifest("r", source): has(DIGEST), manifest("s", target): has(DIGEST)}
    plan, values = server.run(DockerPromoteOperation, {"target_repo": "s", **given})
    assert not plan.changed
    assert (values["source_digest"], values["target_digest"]) == (DIGEST, DIGEST)


def test_target_of_promotion_is_given_by_full_name(server: Server) -> None:
    server.on |= {manifest("r", "1"): has(DIGEST), manifest("s", "2"): [Reply(404), has(DIGEST)]}
    server.on["GET /api/repositories"] = Reply(body='[{"key": "s"}]')
    server.on["POST /api/docker/r/v2/promote"] = Reply(body="done")
    given = {"image": "r/team/app:1", "target_image": "s/team/app:2", "target_repo": "s"}
    server.run(DockerPromoteOperation, given)
    (sent,) = [seen.body for seen in server.stub.seen if seen.method == "POST"]
    assert json.loads(sent) == {
        "targetRepo": "s",
        "dockerRepository": "team/app",
        "targetDockerRepository": "team/app",
        "tag": "1",
        "targetTag": "2",
        "copy": True,
    }


def test_different_digest_is_a_conflict(server: Server) -> None:
    server.on |= {manifest("r", "1"): has(OTHER), manifest("s", "1"): Reply(404)}
    given = {"target_repo": "s", "image": f"r/team/app:1@{DIGEST}"}
    error = server.fails(DockerPromoteOperation, given)
    assert error.kind == "conflict"
    assert f"'r/team/app:1' has {OTHER}, but image specifies {DIGEST}" in error.message


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": "team/app:1", "repo": "r", "tag": "2"}, "tag is '2', but image has the tag"),
        ({"image": f"r/team/app@{DIGEST}"}, "has a digest but no tag"),
        ({"image": "r/app:1", "target_image": f"app@{DIGEST}"}, "omit the digest"),
        ({"image": "r/app", "target_image": "app:1", "all_tags": True}, "target_tag requires tag"),
        ({"image": "app:1"}, "has no repository"),
    ],
)
def test_contradictory_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any], words: str
) -> None:
    error = server.fails(DockerPromoteOperation, {"target_repo": "s", **given})
    assert (error.kind, server.asked) == ("invalid", [])
    assert words in error.message
