# SPDX-License-Identifier: GPL-3.0-or-later
"""Test images and their tags."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_image_info import (
    DockerImageInfoOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

BASE = "GET /api/docker/r/v2/{}?n=1000"
CATALOG = BASE.format("_catalog")


def options(**given: Any) -> dict[str, Any]:
    return {"repo": "r", **given}


def tags(image: str) -> str:
    return BASE.format(f"{image}/tags/list")


def test_tags_of_image(server: Server) -> None:
    server.on[tags("team/app")] = Reply(body={"name": "team/app", "tags": ["b", "a"]})
    plan, values = server.run(DockerImageInfoOperation, options(image="/team/app/"))
    assert not plan.changed
    assert values == {"tags": ["b", "a"]}


def test_all_images_with_their_tags(server: Server) -> None:
    server.on[CATALOG] = Reply(body={"repositories": ["team/app", "emptied", "secret", "gone"]})
    server.on[tags("team/app")] = Reply(body={"tags": ["1", "2"]})
    server.on[tags("emptied")] = Reply(body={"name": "emptied", "tags": None})
    server.on[tags("secret")] = Reply(403, "no right to do so")
    _plan, values = server.run(DockerImageInfoOperation, options())
    assert values["images"] == [
        {"name": "team/app", "tags": ["1", "2"]},
        {"name": "emptied", "tags": []},
        {"name": "secret", "tags": None},
        {"name": "gone", "tags": None},
    ]
    assert len(server.warnings) == 2
    assert any("no right to do so" in warning for warning in server.warnings)


SIGNATURES = [f"sha256-{'a' * 64}{suffix}" for suffix in ("", ".sig", ".att", ".sbom")]


@pytest.mark.parametrize("attached", [True, False])
def test_attached_tags_are_listed_only_if_wanted(server: Server, attached: bool) -> None:
    plain = ["1.0", f"sha256-{'a' * 63}.sig", f"sha256-{'a' * 64}.txt", f"sha512-{'a' * 64}.sig"]
    server.on[tags("team/app")] = Reply(body={"tags": plain + SIGNATURES})
    server.on[tags("signatures")] = Reply(body={"tags": SIGNATURES})
    server.on[CATALOG] = Reply(body={"repositories": ["team/app", "signatures"]})
    wanted = SIGNATURES if attached else []
    _plan, values = server.run(
        DockerImageInfoOperation, options(image="team/app", attached=attached)
    )
    assert values == {"tags": plain + wanted}
    _plan, values = server.run(DockerImageInfoOperation, options(attached=attached))
    assert [image["tags"] for image in values["images"]] == [plain + wanted, wanted]
    _plan, values = server.run(
        DockerImageInfoOperation, options(image="signatures", attached=attached)
    )
    assert values == {"tags": wanted}


def test_attached_tag_in_the_reference_is_found(server: Server) -> None:
    server.on[tags("team/app")] = Reply(body={"tags": ["1.0", *SIGNATURES]})
    _plan, values = server.run(DockerImageInfoOperation, options(image=f"team/app:{SIGNATURES[1]}"))
    assert values == {"tags": [SIGNATURES[1]]}
    digest = f"sha256:{'b' * 64}"
    head = f"HEAD /api/docker/r/v2/team/app/manifests/{SIGNATURES[1]}"
    server.on[head] = Reply(headers={"Docker-Content-Digest": digest})
    _plan, values = server.run(DockerImageInfoOperation, options(image=f"team/app@{digest}"))
    assert values == {"tags": [SIGNATURES[1]]}
    error = server.fails(DockerImageInfoOperation, options(image="team/app:2.0"))
    assert error.message == "the image 'r/team/app' has no tag '2.0'"


def test_server_error_is_not_an_image_without_tags(server: Server) -> None:
    server.on[CATALOG] = Reply(body={"repositories": ["a"]})
    server.on[tags("a")] = Reply(500, "out of order")
    error = server.fails(DockerImageInfoOperation, options())
    assert error.kind == "server"


@pytest.mark.parametrize("image", ["team/app", None])
def test_missing_image_is_not_found(server: Server, image: str | None) -> None:
    error = server.fails(DockerImageInfoOperation, options(image=image))
    assert error.kind == "not_found"
    assert error.status == 404
    assert "'r'" in error.message


@pytest.mark.parametrize(
    "given", [{"page_size": 0}, {"image": "/"}, {"image": "a/../b"}, {"repo": "a/b"}]
)
def test_contradictory_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any]
) -> None:
    assert server.fails(DockerImageInfoOperation, options(**given)).kind == "invalid"
    assert server.asked == []
