# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a real container registry with the sandbox: images, tags and digests.

Needs Debian's docker-registry. The same images are pushed to both servers. Both must send the same
responses, and the client must return the same results.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.image_names import (
    ImageReference,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images import (
    registry as containers,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.attached import (
    Attachments,
    TagState,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_image_info import (
    DockerImageInfoOperation,
    DockerImageInfoOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.registry import (
    ManifestContent,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from sandbox.client import Sandbox
from tests.helpers import installed
from tests.helpers.registry import Registry, digest_of, running
from tests.unit.stub import SETTINGS

PROGRAM = installed.program("docker-registry")
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no docker-registry on this machine: nothing was compared with it"
)

REPO = "docker-staging-local"
LOGIN = ("deployer", "deployer-password")
INDEX = "application/vnd.oci.image.index.v1+json"
LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
OCI = "application/vnd.oci.image.manifest.v1+json"
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
ACCEPT = ", ".join((INDEX, LIST, OCI, DOCKER))
LAYER = b"a layer"
#: An image to which signatures are attached.
SIGNED = "team/lib"


def _image(kind: str, architecture: str) -> tuple[bytes, bytes]:
    """Return manifest and configuration of an image."""
    configuration = json.dumps({"architecture": architecture, "os": "linux"}).encode()
    types = {
        OCI: ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar"),
        DOCKER: (
            "application/vnd.docker.container.image.v1+json",
            "application/vnd.docker.image.rootfs.diff.tar",
        ),
    }[kind]
    parts = [
        _descriptor(part, each) for part, each in zip((configuration, LAYER), types, strict=True)
    ]
    manifest = {"schemaVersion": 2, "mediaType": kind, "config": parts[0], "layers": parts[1:]}
    return json.dumps(manifest).encode(), configuration


def _descriptor(content: bytes, kind: str, **more: Any) -> dict[str, Any]:
    return {"mediaType": kind, "size": len(content), "digest": digest_of(content), **more}


def _index(kind: str, images: dict[str, bytes], image_kind: str) -> bytes:
    """Return an index of images by architecture."""
    manifests = [
        _descriptor(content, image_kind, platform={"architecture": architecture, "os": "linux"})
        for architecture, content in images.items()
    ]
    return json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": manifests}).encode()


@dataclass(frozen=True)
class Both:
    """The registry and the sandbox with the same images; `tags` contains the pushed images."""

    registry: Registry
    sandbox: Sandbox
    tags: dict[str, dict[str, bytes]]

    def task(self, which: str, warn: Callable[[str], Any] = pytest.fail) -> Task:
        url = {"registry": self.registry.url, "sandbox": self.sandbox.urls["repo"]}[which]
        settings = {**SETTINGS, "dialect": "jfrog", "vendor": "Vendor"}
        user, password = LOGIN
        connection = Connection(
            service=SERVICES["repo"],
            url=url,
            username=user,
            password=Secret(password),
            settings=settings,
        )
        return Task(connection, warn, read_only=True)

    def ask(self, method: str, path: str) -> dict[str, requests.Response]:
        """Return the raw responses of both servers."""
        session = requests.Session()
        session.trust_env = False
        return {
            which: session.request(
                method,
                f"{url}/api/docker/{REPO}/v2/{path}",
                auth=LOGIN,
                headers={"Accept": ACCEPT},
                timeout=30,
            )
            for which, url in (
                ("registry", self.registry.url),
                ("sandbox", self.sandbox.urls["repo"]),
            )
        }


@pytest.fixture(scope="module")
def both(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    assert PROGRAM is not None
    sandbox = fresh("real")
    with running(PROGRAM, tmp_path_factory.mktemp("registry")) as registry:
        yield Both(registry, sandbox, _push(registry, sandbox))


def _push(registry: Registry, sandbox: Sandbox) -> dict[str, dict[str, bytes]]:
    """Push single images and indexes of two architectures, in both families of formats."""
    tags: dict[str, dict[str, bytes]] = {}
    for kind, image_kind, names in (
        (INDEX, OCI, ("team/app", "team/lib")),
        (LIST, DOCKER, ("agent", "tool")),
    ):
        images = {each: _image(image_kind, each) for each in ("amd64", "arm64")}
        index = _index(
            kind, {each: manifest for each, (manifest, _conf) in images.items()}, image_kind
        )
        single = images["arm64"][0]
        for name in names:
            tags[name] = {"2.0": index, "1.0": single, "latest": index, "10": index, "1.1": single}
            for manifest, configuration in images.values():
                registry.push_blob(name, configuration)
                registry.push_blob(name, LAYER)
                registry.push_manifest(name, digest_of(manifest), manifest, image_kind)
            for tag, content in tags[name].items():
                registry.push_manifest(name, tag, content, json.loads(content)["mediaType"])
            if name == SIGNED:
                tags[name].update(_sign(registry, name, index, single))
    seeded = [
        {"repo": REPO, "image": name, "tag": tag, "content": content.decode()}
        for name, pushed in tags.items()
        for tag, content in pushed.items()
    ]
    sandbox.seed({"repo": {"images": seeded}})
    return tags


def _sign(registry: Registry, image: str, *signed: bytes) -> dict[str, bytes]:
    """Attach a manifest to each of the manifests by a tag. Return them by tag."""
    found = {}
    for content in signed:
        tag = digest_of(content).replace(":", "-") + ".sig"
        attached = json.loads(_image(OCI, "arm64")[0])
        attached["subject"] = _descriptor(content, json.loads(content)["mediaType"])
        found[tag] = json.dumps(attached).encode()
        registry.push_manifest(image, tag, found[tag], OCI)
    return found


def test_catalog_pages_are_equal(both: Both) -> None:
    responses = both.ask("GET", "_catalog?n=3")
    assert responses["registry"].json() == responses["sandbox"].json()
    links = {
        which: urlsplit(requests.utils.parse_header_links(response.headers["Link"])[0]["url"])
        for which, response in responses.items()
    }
    assert links["registry"].netloc == links["sandbox"].netloc == ""
    assert parse_qs(links["registry"].query) == parse_qs(links["sandbox"].query)
    # the registry does not know its key in a repository manager
    assert links["registry"].path == "/v2/_catalog"


@pytest.mark.parametrize("which", ["registry", "sandbox"])
@pytest.mark.parametrize("page", [1, 2, 3, 4, 1000])
def test_client_reads_all_images(both: Both, which: str, page: int) -> None:
    found = containers.images(RepoClient(both.task(which)), REPO, page=page)
    assert found == sorted(both.tags)


def test_tags_are_equal_in_another_order(both: Both) -> None:
    responses = both.ask("GET", "team/app/tags/list")
    read = {which: response.json() for which, response in responses.items()}
    for response in read.values():
        response["tags"].sort()
    assert (
        read["registry"]
        == read["sandbox"]
        == {
            "name": "team/app",
            "tags": sorted(both.tags["team/app"]),
        }
    )
    version = "Docker-Distribution-Api-Version"
    assert responses["registry"].headers[version] == responses["sandbox"].headers[version]


@pytest.mark.parametrize("which", ["registry", "sandbox"])
@pytest.mark.parametrize("page", [1, 2, 5, 1000])
def test_client_reads_all_tags(both: Both, which: str, page: int) -> None:
    """Verify all page sizes. The registry ignores the page size and returns the tags unsorted; the
    sandbox returns pages.
    """
    found = containers.tags(RepoClient(both.task(which)), REPO, "team/app", page=page)
    assert found is not None
    assert sorted(found) == sorted(both.tags["team/app"])


def test_missing_image_is_404(both: Both) -> None:
    responses = both.ask("GET", "team/nothing/tags/list")
    assert {response.status_code for response in responses.values()} == {404}
    codes = [response.json()["errors"][0]["code"] for response in responses.values()]
    assert codes == ["NAME_UNKNOWN", "NAME_UNKNOWN"]
    for which in ("registry", "sandbox"):
        assert containers.tags(RepoClient(both.task(which)), REPO, "team/nothing") is None


@pytest.mark.parametrize("name", ["team/app", "agent"])
@pytest.mark.parametrize("tag", ["latest", "1.0"])
def test_manifests_have_the_same_digests(both: Both, name: str, tag: str) -> None:
    """Verify that the digest of an index belongs to the index, not to the image of an
    architecture.
    """
    pushed = both.tags[name][tag]
    responses = both.ask("HEAD", f"{name}/manifests/{tag}")
    for which, response in responses.items():
        assert response.headers["Docker-Content-Digest"] == digest_of(pushed), which
        assert response.headers["Content-Type"] == json.loads(pushed)["mediaType"], which
        found = containers.manifest(RepoClient(both.task(which)), REPO, name, tag)
        assert found == digest_of(pushed), which


def test_missing_tag_is_404(both: Both) -> None:
    responses = both.ask("HEAD", "team/app/manifests/nothing")
    assert {response.status_code for response in responses.values()} == {404}
    for which in ("registry", "sandbox"):
        assert (
            containers.manifest(RepoClient(both.task(which)), REPO, "team/app", "nothing") is None
        )


@pytest.mark.parametrize("which", ["registry", "sandbox"])
@pytest.mark.parametrize("attached", [True, False])
def test_client_lists_attached_tags_on_request(both: Both, which: str, attached: bool) -> None:
    options = DockerImageInfoOptions(repo=REPO, image=SIGNED, attached=attached)
    found = DockerImageInfoOperation(both.task(which), options).plan().result["tags"]
    plain = [tag for tag in both.tags[SIGNED] if not tag.endswith(".sig")]
    assert sorted(found) == sorted(both.tags[SIGNED] if attached else plain)
    assert len(plain) < len(both.tags[SIGNED])


@pytest.mark.parametrize("which", ["registry", "sandbox"])
def test_client_finds_what_is_attached(both: Both, which: str) -> None:
    """Verify that an attached tag has the digest of its manifest. The registry has no endpoint for
    referrers; the sandbox has, and every referrer has a tag.
    """
    warnings: list[str] = []
    client = RepoClient(both.task(which, warnings.append))
    image = ImageReference(REPO, SIGNED)
    index = digest_of(both.tags[SIGNED]["2.0"])
    tag = index.replace(":", "-") + ".sig"
    state = TagState("2.0", "2.0", index, None)
    attachments = Attachments(client, image, image, copy=True, predicted={})
    attached = attachments.states([state], warnings.append)
    (found,) = [each for each in attached if each.tag == tag]
    assert [("cannot list what is attached" in each) for each in warnings] == (
        [True] if which == "registry" else []
    )
    signature = digest_of(both.tags[SIGNED][tag])
    assert (found.source, found.target, found.owners) == (signature, signature, ("2.0",))
    listed = containers.referrers(client, image, index)
    assert listed == {"registry": None, "sandbox": [signature]}[which]


@pytest.mark.parametrize("which", ["registry", "sandbox"])
@pytest.mark.parametrize("tag", ["2.0", "1.0"])
def test_content_of_manifests_is_read(both: Both, which: str, tag: str) -> None:
    pushed = both.tags[SIGNED][tag]
    client, image = RepoClient(both.task(which)), ImageReference(REPO, SIGNED)
    manifest = json.loads(pushed)
    listed = [each["digest"] for each in manifest.get("manifests", [])]
    parts = [*manifest.get("manifests", []), *manifest.get("layers", [])]
    described = frozenset(json.dumps(each, sort_keys=True) for each in parts)
    found = containers.content(client, image, tag)
    assert found == (digest_of(pushed), ManifestContent(tuple(listed), None, described))
    assert containers.content(client, image, "nothing") is None


def test_image_without_tags_has_null_tags(both: Both) -> None:
    """Verify an image without tags. This is the last test of `tool`: it deletes the manifests in
    the registry.
    """
    for content in set(both.tags["tool"].values()):
        both.registry("DELETE", f"tool/manifests/{digest_of(content)}")
    raw = both.ask("GET", "tool/tags/list")["registry"]
    assert raw.json() == {"name": "tool", "tags": None}
    options = DockerImageInfoOptions(repo=REPO, page_size=2)
    info = DockerImageInfoOperation(both.task("registry"), options)
    assert info.tags(ImageReference(REPO, "tool")) == []
    found = info.images()
    assert {"name": "tool", "tags": []} in found
    assert [one["name"] for one in found] == sorted(both.tags)
