# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a promotion takes along what is attached to the tags."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import run_folder
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.client import RepoClient
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_promote import (
    DockerPromoteOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import listing
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

_ADDRESS = re.compile(
    r"(HEAD|GET|POST) /api/(?:docker|container)/(\w+)/v2/(?:app/)?(\S+?)(?:\?.*)?"
)

ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Registry:
    """A registry with the repositories `src` and `dst`, which contain the image `app`."""

    server: Server
    tags: dict[str, dict[str, bytes]] = field(
        default_factory=lambda: {"src": {}, "dst": {}, "end": {}}
    )
    #: Manifests without a tag.
    loose: dict[str, list[bytes]] = field(default_factory=lambda: {"src": [], "dst": [], "end": []})
    has_referrers: bool = True
    has_queries: bool = True
    #: Tags that the server does not promote.
    refused: tuple[str, ...] = ()

    def push(self, tag: str | None, **content: Any) -> str:
        text = json.dumps({"label": tag, **content}).encode()
        if tag is None:
            self.loose["src"].append(text)
        else:
            self.tags["src"][tag] = text
        return digest_of(text)

    def sign(self, digest: str, suffix: str = ".sig", **content: Any) -> str:
        tag = digest.replace(":", "-") + suffix
        self.push(tag, **content)
        return tag

    def response(self, seen: Seen) -> Reply:
        if self.server.name(seen) == "POST /api/search/aql":
            return self._stored(seen.body.decode())
        found = _ADDRESS.fullmatch(self.server.name(seen))
        if found is None:
            return Reply(body='[{"key": "src"}, {"key": "dst"}, {"key": "end"}]')
        method, repo, rest = found.groups()
        if method == "POST":
            return self._promote(repo, json.loads(seen.body))
        kind, _slash, name = rest.partition("/")
        if kind == "tags":
            tags = list(self.tags[repo])
            return Reply(body={"tags": tags}) if tags else Reply(404)
        contents = [*self.tags[repo].values(), *self.loose[repo]]
        if kind == "referrers":
            listed = [
                {"digest": digest_of(content)}
                for content in contents
                if (json.loads(content).get("subject") or {}).get("digest") == name
            ]
            return Reply(body={"manifests": listed}) if self.has_referrers else Reply(404)
        untagged = {digest_of(content): content for content in self.loose[repo]}
        content = self.tags[repo].get(name) or untagged.get(name)
        if content is None:
            return Reply(404)
        headers = {"Docker-Content-Digest": digest_of(content)}
        return Reply(200, b"" if method == "HEAD" else content, headers)

    def _stored(self, query: str) -> Reply:
        """Return the folders of the manifests, unless the server does not support queries."""
        repo = next(repo for repo in self.tags if f'"repo": "{repo}"' in query)
        if not self.has_queries:
            return Reply(403)
        names = [*self.tags[repo], *map(digest_of, self.loose[repo])]
        rows = [{"repo": repo, "path": f"app/{name}", "name": "manifest.json"} for name in names]
        return Reply(body={"results": rows})

    def _promote(self, repo: str, body: dict[str, Any]) -> Reply:
        tag, source, target = body.get("tag"), self.tags[repo], self.tags[body["targetRepo"]]
        if tag in self.refused:
            return Reply(403, "no right to do so")
        for name in [tag] if tag else list(source):
            target[body.get("targetTag") or name] = source[name]
            if not body["copy"]:
                del source[name]
        return Reply(200, "ok")

    def promote(self, **given: Any) -> dict[str, Any]:
        """Promote in check mode, then without. Compare and return the results."""
        options = {"repo": "src", "target_repo": "dst", "image": "app", **given}
        _plan, predicted = self.server.run(DockerPromoteOperation, options, check=True)
        self.server.warnings.clear()
        plan, values = self.server.run(DockerPromoteOperation, options)
        assert predicted == {**values, "message": ""}
        again, _values = self.server.run(DockerPromoteOperation, options)
        assert not again.changed
        return {**values, "changed": plan.changed}


@pytest.fixture
def registry(server: Server) -> Registry:
    made = Registry(server)
    server.stub.response = made.response
    return made


def actions(values: dict[str, Any]) -> dict[str, str]:
    return {entry["tag"]: entry["action"] for entry in values["tags"]}


def test_attached_tags_are_copied(registry: Registry) -> None:
    """Verify signatures of the image, of its platforms, and of its SBOM."""
    child = registry.push(None)
    image = registry.push("1.0", manifests=[{"digest": child}])
    sbom = registry.sign(image, ".sbom", sbom=True)
    signed = digest_of(registry.tags["src"][sbom])
    wanted = [
        sbom,
        registry.sign(image),
        registry.sign(image, ".att"),
        registry.sign(image, ""),
        registry.sign(child),
        registry.sign(signed),
    ]
    registry.sign(registry.push("2.0"))
    values = registry.promote(tag="1.0", target_tag="stable")
    assert actions(values) == dict.fromkeys(["1.0", *wanted], "promoted")
    assert sorted(registry.tags["dst"]) == sorted(["stable", *wanted])
    assert values["source_digest"] == image
    assert registry.server.warnings == []


def test_attached_tags_are_left_out_on_request(registry: Registry) -> None:
    registry.sign(registry.push("1.0"))
    registry.promote(tag="1.0", attached=False)
    assert list(registry.tags["dst"]) == ["1.0"]


@pytest.mark.parametrize("attached", [True, False])
@pytest.mark.parametrize("copy", [True, False])
def test_all_tags_with_or_without_attached_ones(
    registry: Registry, attached: bool, copy: bool
) -> None:
    signatures = [registry.sign(registry.push(tag)) for tag in ("1.0", "2.0")]
    registry.promote(all_tags=True, copy=copy, attached=attached)
    wanted = signatures if attached else []
    assert sorted(registry.tags["dst"]) == sorted(["1.0", "2.0", *wanted])
    posts = [asked for asked in registry.server.asked if asked.startswith("POST")]
    assert len(posts) == (1 if attached else 2)


def test_later_signature_is_promoted(registry: Registry) -> None:
    image = registry.push("1.0")
    registry.promote(tag="1.0")
    signature = registry.sign(image)
    assert actions(registry.promote(tag="1.0")) == {"1.0": "unchanged", signature: "promoted"}


@pytest.mark.parametrize("options", [{"tag": "1.0"}, {"all_tags": True}])
@pytest.mark.parametrize("copy", [True, False])
def test_second_signature_in_the_target_is_not_lost(
    registry: Registry, options: dict[str, Any], copy: bool
) -> None:
    """Signatures of the same image have the same payload, and differ in their annotations."""
    first, second = ({"digest": "sha256:1", "annotations": {"signature": n}} for n in "ab")
    signature = registry.sign(registry.push("1.0"), layers=[first])
    registry.promote(tag="1.0")
    both = json.dumps({"layers": [first, second]}).encode()
    registry.tags["dst"][signature] = both
    values = registry.promote(**options, copy=copy)
    assert actions(values) == {"1.0": "unchanged" if copy else "promoted", signature: "unchanged"}
    assert registry.tags["dst"][signature] == both


def test_move_leaves_what_other_tags_need(registry: Registry) -> None:
    shared = registry.push(None)
    image = registry.push("1.0", label="same", manifests=[{"digest": shared}])
    registry.push("latest", label="2.0", manifests=[{"digest": shared}])
    own, common = registry.sign(image), registry.sign(shared)
    registry.promote(tag="1.0", copy=False)
    assert sorted(registry.tags["dst"]) == sorted(["1.0", own, common])
    assert sorted(registry.tags["src"]) == sorted(["latest", common])


def test_interrupted_move_is_completed(registry: Registry) -> None:
    image = registry.push("1.0")
    signature = registry.sign(image)
    registry.tags["dst"]["1.0"] = registry.tags["src"].pop("1.0")
    registry.promote(tag="1.0", copy=False)
    assert sorted(registry.tags["dst"]) == sorted(["1.0", signature])
    assert registry.tags["src"] == {}


@pytest.mark.parametrize("copy", [True, False])
def test_referrer_with_a_tag_is_promoted(registry: Registry, copy: bool) -> None:
    image = registry.push("1.0", label="same")
    registry.push("1.0-scan", subject={"digest": image})
    registry.push("2.0")
    registry.push("2.0-scan", subject={"digest": registry.push("3.0", label="same")})
    values = registry.promote(tag="1.0", copy=copy)
    assert actions(values) == {"1.0": "promoted", "1.0-scan": "promoted", "2.0-scan": "promoted"}
    # the tag 3.0 has the same digest, so it still needs what is attached
    assert {"2.0", "3.0", "1.0-scan"} <= set(registry.tags["src"])
    assert registry.server.warnings == []


@pytest.mark.parametrize("has_referrers", [True, False])
def test_referrers_without_a_tag_are_a_warning(registry: Registry, has_referrers: bool) -> None:
    registry.has_referrers = has_referrers
    image = registry.push("1.0")
    subject = {"subject": {"digest": image}}
    listed = registry.push(None, label="listed", **subject)
    registry.sign(image, "", manifests=[{"digest": listed}])
    lonely = registry.push(None, label="lonely", **subject)
    registry.promote(tag="1.0")
    warnings = registry.server.warnings
    # the repetition, which is unchanged, gives the same warning
    assert [f"copy {lonely} to 'dst/app'" in each for each in warnings] == [True, True]
    registry.loose["dst"] = registry.loose["src"]
    registry.promote(tag="1.0")
    assert registry.server.warnings == []


def test_server_that_shows_no_manifests_gives_a_warning(registry: Registry) -> None:
    registry.has_referrers = registry.has_queries = False
    registry.push("1.0")
    registry.promote(tag="1.0")
    (warning,) = set(registry.server.warnings)
    assert "cannot list what is attached to 'src/app'" in warning


def test_only_some_manifests_are_read_for_a_warning(registry: Registry) -> None:
    registry.has_referrers = False
    registry.push("1.0")
    for number in range(120):
        registry.push(None, label=str(number))
    registry.promote(tag="1.0")
    assert len(set(registry.server.warnings)) == 1
    read = [
        name for name in registry.server.asked if "GET /api/docker/src/v2/app/manifests/sha" in name
    ]
    # check mode, the promotion and its repetition
    assert len(read) == 3 * 100


def test_signature_of_a_failed_tag_is_not_promoted(registry: Registry) -> None:
    one, two = (registry.sign(registry.push(tag)) for tag in ("1.0", "2.0"))
    registry.refused = ("1.0",)
    options = {"repo": "src", "target_repo": "dst", "image": "app", "tags": ["1.0", "2.0"]}
    error = registry.server.fails(DockerPromoteOperation, options)
    assert error.kind == "permission"
    assert actions(error.result) == {
        "1.0": "failed",
        "2.0": "promoted",
        one: "failed",
        two: "promoted",
    }
    assert sorted(registry.tags["dst"]) == sorted(["2.0", two])


def test_server_without_digests_gives_a_warning(registry: Registry) -> None:
    registry.server.dialect = "generic"
    signature = registry.sign(registry.push("1.0"))
    registry.promote(tag="1.0")
    assert list(registry.tags["dst"]) == ["1.0"]
    assert registry.server.warnings[-1].endswith(f"name them in tags, such as {signature}")
    registry.promote(all_tags=True)
    assert registry.server.warnings == ["the promotion overwrites 'dst/app:1.0'"]


def test_second_tag_in_the_same_image_needs_no_copies(registry: Registry) -> None:
    registry.sign(registry.push("1.0"))
    options = {"repo": "src", "target_repo": "src", "image": "app", "tag": "1.0"}
    plan, values = registry.server.run(
        DockerPromoteOperation, {**options, "target_tag": "2.0"}, check=True
    )
    assert actions(values) == {"1.0": "promoted"}
    assert plan.changed
    assert len(registry.server.asked) <= 3


def rehearse_and_run(
    registry: Registry, tasks: list[dict[str, Any]], folder: Path, patched: pytest.MonkeyPatch
) -> list[dict[str, str]]:
    """Run tasks in check mode, then without, and compare diffs and results. Return the actions."""

    def by_tag(values: Mapping[str, Any]) -> dict[str, Any]:
        return {entry["tag"]: entry for entry in values["tags"]}

    patched.setenv(run_folder.VARIABLE, str(folder))
    rehearsed = []
    for given in tasks:
        made = registry.server.operation(DockerPromoteOperation, given, check=True)
        plan = made.plan()
        if plan.changed:
            made.predict(plan)
        rehearsed.append((plan.before, plan.after, by_tag(plan.result)))
    assert not [name for name in registry.server.asked if name.endswith("/promote")]
    done = [registry.server.run(DockerPromoteOperation, given) for given in tasks]
    assert rehearsed == [(plan.before, plan.after, by_tag(values)) for plan, values in done]
    return [actions(values) for _plan, values in done]


@pytest.mark.parametrize("given", [{"tag": "1.0"}, {"tags": ["1.0", "2.0"]}, {"all_tags": True}])
@pytest.mark.parametrize("copy", [True, False])
def test_chain_of_promotions_is_predicted(
    registry: Registry,
    given: dict[str, Any],
    copy: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Verify an image in three stages, with signatures and a referrer that has a tag."""
    child = registry.push(None)
    image = registry.push("1.0", manifests=[{"digest": child}])
    registry.push("2.0")
    registry.sign(image)
    registry.sign(child)
    registry.push("sbom", subject={"digest": image})
    registry.tags["dst"]["0.9"] = registry.tags["end"]["1.0"] = b'{"label": "old"}'
    steps = [("src", "dst"), ("dst", "end")]
    tasks = [
        {"repo": repo, "target_repo": target, "image": "app", "copy": copy, **given}
        for repo, target in steps
    ]
    _first, second = rehearse_and_run(registry, tasks, tmp_path, monkeypatch)
    assert second["1.0"] == second["sbom"] == "promoted"
    assert len([tag for tag in second if tag.startswith("sha256-")]) == 2


def test_tag_with_more_signatures_stays_in_a_predicted_chain(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signature = registry.sign(registry.push("1.0"), layers=[{"digest": ONE}])
    more = json.dumps({"layers": [{"digest": ONE}, {"digest": TWO}]}).encode()
    registry.tags["dst"][signature] = more
    steps = [("src", "1.0", "dst", "rc"), ("dst", "rc", "end", "1.0"), ("end", "1.0", "end", "new")]
    tasks = [
        {"repo": repo, "tag": tag, "target_repo": target, "image": "app", "target_tag": target_tag}
        for repo, tag, target, target_tag in steps
    ]
    _first, second, _third = rehearse_and_run(registry, tasks, tmp_path, monkeypatch)
    assert second == {"rc": "promoted", signature: "promoted"}
    assert registry.tags["end"][signature] == more


def test_image_of_a_promoted_build_is_predicted(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    client = RepoClient(registry.server.task(check=True))
    for name, sha256 in (("manifest.json", "a" * 64), ("list.manifest.json", "b" * 64)):
        listing.predict(client, "src", f"app/1.0/{name}", listing.StoredItem(1, sha256))
    listing.predict(client, "src", "other/app/2.0/manifest.json", listing.StoredItem(1, "c" * 64))
    given = {"repo": "src", "target_repo": "dst", "image": "app", "all_tags": True}
    plan, values = registry.server.run(DockerPromoteOperation, given, check=True)
    assert plan.after == {"dst/app:1.0": f"sha256:{'b' * 64}"}
    assert actions(values) == {"1.0": "promoted"}


def test_image_that_is_not_pushed_yet_is_predicted_in_all_stages(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(run_folder.VARIABLE, str(tmp_path))
    registry.tags["end"]["1.0"] = b'{"label": "old"}'
    given = {"image": "app", "tag": "1.0"}
    first = {**given, "repo": "src", "target_repo": "dst", "pending": True}
    made = registry.server.operation(DockerPromoteOperation, first, check=True)
    made.predict(made.plan())
    second = {**given, "repo": "dst", "target_repo": "end"}
    plan, values = registry.server.run(DockerPromoteOperation, second, check=True)
    assert plan.after == {"end/app:1.0": "(not pushed yet)"}
    assert values["source_digest"] is None
    assert actions(values) == {"1.0": "promoted"}
