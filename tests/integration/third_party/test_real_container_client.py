# SPDX-License-Identifier: GPL-3.0-or-later
"""Push an image index with skopeo to a real registry and to the sandbox. Verify the results of the
modules, and the images that skopeo fetches afterwards.

Needs Debian's docker-registry and skopeo.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, installed, playbook, registry, skopeo

PROGRAM = installed.program("docker-registry")
pytestmark = pytest.mark.skipif(
    None in (PROGRAM, skopeo.PROGRAM),
    reason="no docker-registry or skopeo on this machine: no image was pushed by others",
)

REPO, TARGET, IMAGE, TAG = "docker-staging-local", "docker-release-local", "team/pushed", "1.0.0"
#: A tag of one of the images that the index lists, and an image from which the index is deleted.
PLATFORM, CLEANED = "arm64", "team/cleaned"
LOGIN = ":".join(skopeo.LOGIN)


@dataclass(frozen=True)
class Places:
    """The image addresses for skopeo on both servers, and the pushed image."""

    registry: str
    sandbox: str
    pushed: skopeo.Layout
    run: playbook.Run
    home: Path

    def of(self, which: str) -> str:
        return {"registry": self.registry, "sandbox": self.sandbox}[which]

    def ask(self, command: str, place: str, *more: str) -> str:
        return skopeo.run(
            command, "--tls-verify=false", "--creds", LOGIN, *more, place, home=self.home
        )

    def fetch(self, place: str, folder: str) -> bytes:
        """Copy an image with all its parts to a local folder. Return its index."""
        goal = self.home / folder
        more = ("--all", "--preserve-digests", "--src-tls-verify=false", "--src-creds", LOGIN)
        skopeo.run("copy", *more, place, f"oci:{goal}:{TAG}", home=self.home)
        named = json.loads((goal / "index.json").read_text(encoding="utf-8"))["manifests"][0]
        digest: str = named["digest"]
        return (goal / "blobs" / digest.replace(":", "/")).read_bytes()


@pytest.fixture(scope="module")
def places(
    fresh: Callable[[str], Sandbox], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Places]:
    assert PROGRAM is not None
    home = tmp_path_factory.mktemp("skopeo")
    pushed = skopeo.write_layout(home / "layout", TAG)
    sandbox = fresh("real")
    with registry.running(PROGRAM, tmp_path_factory.mktemp("registry")) as real:
        there = sandbox.urls["repo"].removesuffix("/repo").replace("http://", "docker://")
        addresses = {
            "registry": f"{real.address.replace('http://', 'docker://')}/{IMAGE}",
            "sandbox": f"{there}/{REPO}/{IMAGE}",
        }
        for place in addresses.values():
            more = ("--all", "--preserve-digests", "--dest-tls-verify=false", "--dest-creds", LOGIN)
            source = f"oci:{pushed.folder}:{TAG}"
            skopeo.run("copy", *more, source, f"{place}:{TAG}", home=home)
            single = ("--override-arch", PLATFORM, *more[1:])
            for tag in (PLATFORM, _signature(pushed)):
                skopeo.run("copy", *single, source, f"{place}:{tag}", home=home)
        urls = {"registry": real.url, "sandbox": sandbox.urls["repo"]}
        yield Places(**addresses, pushed=pushed, run=_run(home, urls), home=home)


def _signature(pushed: skopeo.Layout) -> str:
    """Return the tag that is attached to the pushed index."""
    return f"sha256-{hashlib.sha256(pushed.index).hexdigest()}.sig"


def _run(folder: Path, urls: dict[str, str]) -> playbook.Run:
    """Run the read modules with both servers, and promotions and cleanups in the sandbox."""
    tasks = []
    for which, url in urls.items():
        login = connections.connection("repo", url, dialect="jfrog")
        asked = {**login, "repo": REPO, "image": IMAGE}
        tasks.append(playbook.task("docker_image_info", asked, f"info {which}"))
    wanted = {**login, "repo": REPO, "target_repo": TARGET, "image": IMAGE, "tag": TAG}
    tasks += [
        playbook.task("docker_promote", wanted, name) for name in ("promote", "promote again")
    ]
    more = {**wanted, "tag": None, "tags": [TAG, PLATFORM], "target_image": CLEANED}
    by = {"repo": TARGET, "keep_last_by": "image", "keep_last": 1}
    rules = {
        "keep": {**by, "path": IMAGE},
        "clean": {**by, "path": CLEANED, "name": TAG, "keep_last": None},
        "clean again": {**by, "path": CLEANED, "name": TAG, "keep_last": None},
    }
    tasks.append(playbook.task("docker_promote", more, "promote to clean"))
    for name, rule in rules.items():
        given = {**login, "rules": [rule], "max_deletions": 1}
        tasks.append(playbook.task("artifact_cleanup", given, name))
    return playbook.run(folder, [playbook.play(tasks)])


@pytest.mark.parametrize("which", ["registry", "sandbox"])
def test_image_is_found(places: Places, which: str) -> None:
    result = places.run.event(f"info {which}").result
    assert sorted(result["tags"]) == [TAG, PLATFORM], result
    found = json.loads(places.ask("list-tags", places.of(which)))
    assert sorted(found["Tags"]) == [TAG, PLATFORM, _signature(places.pushed)]


@pytest.mark.parametrize("which", ["registry", "sandbox"])
def test_pushed_image_is_fetched(places: Places, which: str) -> None:
    assert places.fetch(f"{places.of(which)}:{TAG}", f"from {which}") == places.pushed.index
    shown = json.loads(places.ask("inspect", f"{places.of(which)}:{TAG}", "--raw"))
    assert shown == json.loads(places.pushed.index)


def test_promoted_image_is_fetched(places: Places) -> None:
    assert places.run.event("promote").result["changed"] is True
    assert places.run.event("promote again").result["changed"] is False
    promoted = places.sandbox.replace(REPO, TARGET)
    assert places.fetch(f"{promoted}:{TAG}", "promoted") == places.pushed.index


def test_promoted_image_has_its_signature(places: Places) -> None:
    tags = {entry["tag"]: entry["action"] for entry in places.run.event("promote").result["tags"]}
    signature = _signature(places.pushed)
    assert tags == {TAG: "promoted", signature: "promoted"}
    promoted = places.sandbox.replace(REPO, TARGET)
    raw = places.ask("inspect", f"{places.sandbox}:{signature}", "--raw")
    assert places.ask("inspect", f"{promoted}:{signature}", "--raw") == raw


def test_kept_image_is_complete(places: Places) -> None:
    assert places.run.event("keep").result["deleted"] == []
    kept = places.sandbox.replace(REPO, TARGET)
    assert places.fetch(f"{kept}:{TAG}", "kept") == places.pushed.index


def test_image_is_deleted_with_its_parts(places: Places) -> None:
    """Verify that skopeo still fetches the image of a platform, which has its own tag."""
    result = places.run.event("clean").result
    deleted = {entry["path"].removeprefix(f"{CLEANED}/") for entry in result["deleted"]}
    listed = {each["digest"] for each in json.loads(places.pushed.index)["manifests"]}
    assert deleted == {TAG, _signature(places.pushed), *listed}
    assert places.run.event("clean again").result["changed"] is False
    cleaned = places.sandbox.replace(f"{REPO}/{IMAGE}", f"{TARGET}/{CLEANED}")
    assert json.loads(places.ask("list-tags", cleaned))["Tags"] == [PLATFORM]
    assert registry.digest_of(places.fetch(f"{cleaned}:{PLATFORM}", "cleaned")) in listed


def test_push_without_login_is_rejected(places: Places) -> None:
    said = skopeo.run(
        *("copy", "--dest-tls-verify=false", "--dest-no-creds"),
        *(f"oci:{places.pushed.folder}:{TAG}", f"{places.sandbox}:2.0.0"),
        home=places.home,
        check=False,
    )
    assert "unauthorized" in said or "401" in said, said
