# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a cleanup keeps and deletes what belongs to an image together with the image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_cleanup import (
    ArtifactCleanupOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.repo.test_cleanup import QUERY, UNCOUNTED, paths, row, rows
from tests.unit.stub import Reply, Seen

IMAGE = "team/app"
INDEX = "list.manifest.json"


@dataclass
class Image:
    """An image whose manifests the server stores in folders."""

    server: Server
    image: str = IMAGE
    found: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    #: Whether queries return the digests of files.
    digests: bool = True

    def push(self, tag: str | None, days: float = 100, **content: Any) -> str:
        """Store a manifest under a tag or, without one, its digest. Return its digest."""
        text = json.dumps({"schemaVersion": 2, "label": f"{tag} {days}", **content}).encode()
        return self.store(tag, days, text, INDEX if "manifests" in content else "manifest.json")

    def store(self, tag: str | None, days: float, text: bytes, name: str) -> str:
        sha256 = hashlib.sha256(text).hexdigest()
        folder = f"{self.image}/{tag or f'sha256:{sha256}'}"
        digest = {"sha256": sha256} if self.digests else {}
        layer = row(f"{folder}/sha256__1", days, size=1000)
        self.found += [layer, row(f"{folder}/{name}", days, **digest)]
        self.server.on[f"GET /r/{folder}/{name}{UNCOUNTED}"] = Reply(body=text)
        return f"sha256:{sha256}"

    def index(self, tag: str | None, *digests: str, days: float = 100, **content: Any) -> str:
        return self.push(tag, days, manifests=[{"digest": each} for each in digests], **content)

    def attach(self, digest: str, suffix: str = ".sig", days: float = 100) -> str:
        """Attach a manifest to a digest by its tag. Return the tag."""
        tag = digest.replace(":", "-") + suffix
        self.push(tag, days)
        return tag

    def delete(self, seen: Seen) -> Reply:
        path = self.server.name(seen).removeprefix("DELETE /r/")
        if any(row["path"] == path or f"{row['path']}/{row['name']}" == path for row in self.found):
            self.deleted.append(path)
            self.found = [
                row
                for row in self.found
                if row["path"] != path and f"{row['path']}/{row['name']}" != path
            ]
            return Reply(204)
        return Reply(404)

    @property
    def tags(self) -> list[str]:
        """Return the folders that exist."""
        return sorted({row["path"].removeprefix(f"{self.image}/") for row in self.found})


@pytest.fixture
def image(server: Server) -> Image:
    made = Image(server)
    known = server.response

    def response(seen: Seen) -> Reply:
        if seen.method == "DELETE" and server.name(seen) not in server.on:
            return made.delete(seen)
        if server.name(seen) == QUERY and QUERY not in server.on:
            folders = {
                folder
                for row in made.found
                for folder in (row["path"], row["path"].rpartition("/")[0])
            }
            listed = [row(folder, 300, type="folder", size=0) for folder in sorted(folders)]
            wanted = b'"type": "any"' in seen.body
            return rows(*made.found, *(listed if wanted else []))
        return known(seen)

    server.stub.response = response
    server.on["GET /api/repositories"] = Reply(body='[{"key": "r", "packageType": "Docker"}]')
    return made


def clean(image: Image, *rules: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Run the cleanup in check mode, then without, and compare the results."""
    image.deleted.clear()
    given = {"rules": [{"repo": "r", **rule} for rule in rules or [BY_IMAGE]], "parallel": 2}
    given.update(options)
    _plan, predicted = image.server.run(ArtifactCleanupOperation, given, check=True)
    image.server.warnings.clear()
    _plan, done = image.server.run(ArtifactCleanupOperation, given)
    assert done == predicted
    assert sorted(image.deleted) == paths(done["deleted"])
    return done


BY_IMAGE = {"keep_last": 3, "keep_last_by": "image"}


def reasons(result: Mapping[str, Any], key: str = "deleted") -> dict[str, str]:
    return {
        entry["path"].removeprefix(f"{IMAGE}/"): entry["reason"].removeprefix("rule 1: ")
        for entry in result[key]
    }


@pytest.mark.parametrize("kind", ["image", "folder"])
def test_signatures_are_not_counted(image: Image, kind: str) -> None:
    for days, tag in ((30, "1.1"), (20, "1.2"), (10, "1.3")):
        digest = image.push(tag, days)
        for suffix in (".sig", ".att", ".sbom", ""):
            image.attach(digest, suffix, days - 1)
    by = {"keep_last_by": "image"} if kind == "image" else {"type": "folder", "path": IMAGE}
    assert clean(image, {"keep_last": 3, **by})["deleted"] == []
    assert len(image.tags) == 15
    result = clean(image, {"keep_last": 2, **by}, max_deletions=1)
    assert "1.1" in reasons(result)
    assert len(result["deleted"]) == 5
    assert [reason for reason in reasons(result).values() if reason.startswith("part of")] == [
        "part of 'team/app/1.1'"
    ] * 4
    assert result["reclaimed_bytes"] == 5 * 1010
    assert image.deleted[0] == "team/app/1.1"
    assert image.server.warnings == []
    # their tags tell everything that their manifests would
    assert not [each for each in image.server.asked if ".sig/manifest.json" in each]


def test_excluded_tag_keeps_its_signature(image: Image) -> None:
    digest = image.push("1.0", 90)
    image.attach(digest, days=90)
    image.push("0.9", 95)
    image.push("1.1", 10)
    result = clean(image, {**BY_IMAGE, "keep_last": 1, "exclude": [f"{IMAGE}/1.0"]})
    assert paths(result["deleted"]) == [f"{IMAGE}/0.9"]


def test_excluded_signature_stays(image: Image) -> None:
    tag = image.attach(image.push("1.0", 90))
    image.push("1.1", 10)
    result = clean(image, {**BY_IMAGE, "keep_last": 1, "exclude": ["**/*.sig"]})
    assert paths(result["deleted"]) == [f"{IMAGE}/1.0"]
    assert reasons(result, "kept")[tag] == f"part of '{IMAGE}/1.0', excluded by '**/*.sig'"


def test_exclusion_possibly_meant_for_a_signature_is_rejected(image: Image) -> None:
    image.attach(image.push("1.0", 90))
    image.push("1.1", 10)
    rule = {"repo": "r", **BY_IMAGE, "keep_last": 1, "exclude": ["*.sig"]}
    error = image.server.fails(ArtifactCleanupOperation, {"rules": [rule]})
    assert error.kind == "invalid"
    assert "exclude: '*.sig' does not match" in error.message


@pytest.mark.parametrize("same_time", [False, True])
def test_kept_index_keeps_what_it_lists(image: Image, same_time: bool) -> None:
    for number in (2, 1, 0):
        times = [number * 10.0] * 3 if same_time else [number * 10 + 0.3, number * 10 + 0.2, number]
        amd64, arm64 = (
            image.push(f"1.{2 - number}-{name}", days)
            for name, days in zip(("amd64", "arm64"), times, strict=False)
        )
        image.index(f"1.{2 - number}", amd64, arm64, days=times[2])
    result = clean(image, {**BY_IMAGE, "keep_last": 1}, max_deletions=2)
    assert image.tags == ["1.2", "1.2-amd64", "1.2-arm64"]
    assert reasons(result)["1.0-amd64"] == f"part of '{IMAGE}/1.0'"
    assert reasons(result, "kept")["1.2-arm64"] == f"part of '{IMAGE}/1.2', which is kept"
    assert image.deleted.index(f"{IMAGE}/1.0") < image.deleted.index(f"{IMAGE}/1.0-amd64")
    assert clean(image, {**BY_IMAGE, "keep_last": 1})["deleted"] == []


def test_platforms_pushed_after_their_index_are_not_counted(image: Image) -> None:
    for number in range(4):
        days = 40 - number * 10
        digests = [image.push(f"1.{number}-{name}", days - 1) for name in ("amd64", "arm64")]
        image.index(f"1.{number}", *digests, days=days)
    clean(image)
    assert [tag for tag in image.tags if "-" not in tag] == ["1.1", "1.2", "1.3"]
    assert len(image.tags) == 9


@pytest.mark.parametrize("digests", [True, False])
@pytest.mark.parametrize(
    "rule",
    [
        {"keep_last_by": "image", "name": "1.0"},
        {"type": "folder", "path": IMAGE, "name": "1.0"},
        {"type": "any", "path": IMAGE, "name": "1.0"},
        {"path": f"{IMAGE}/1.0"},
        {"type": "any", "path": f"{IMAGE}/1.*"},
    ],
)
def test_children_of_a_deleted_index_go_with_it(
    image: Image, rule: dict[str, Any], digests: bool
) -> None:
    """Verify that what another index, a tag or a kept image needs stays."""
    image.digests = digests
    shared, own, tagged = image.push(None, 90), image.push(None, 91), image.push("arm64", 92)
    signature = image.attach(own, ".sig")
    image.attach(shared, ".sig")
    image.index("1.0", shared, own, tagged, days=50)
    image.index("2.0", shared, days=40)
    loose = image.push(None, 93)
    clean(image, rule, max_deletions=2)
    gone = {own, signature}
    assert gone.isdisjoint(image.tags)
    assert {"2.0", "arm64", shared, f"{shared.replace(':', '-')}.sig", loose} <= set(image.tags)
    assert len(image.tags) == 5


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "folder", "path": IMAGE},
        {"type": "any", "path": IMAGE},
        {"path": f"{IMAGE}/*"},
    ],
)
def test_other_rules_keep_what_a_kept_index_lists(image: Image, rule: dict[str, Any]) -> None:
    child = image.push(None, 90)
    signature = image.attach(child)
    image.index("1.0", child, days=1)
    tagged = image.push("0.9-amd64", 90)
    image.index("0.9", tagged, days=1)
    image.push("0.8", 90)
    clean(image, {**rule, "created_before": "30d", "exclude": [f"{IMAGE}/1.0"]})
    assert image.tags == sorted(["0.9", "0.9-amd64", "1.0", child, signature])


def test_index_that_several_rules_delete_takes_its_parts(image: Image) -> None:
    shared = image.push(None)
    image.index("1.0", shared)
    image.index("2.0", shared)
    image.push("3.0")
    by = {"keep_last_by": "image"}
    result = clean(image, {**by, "name": "1.*"}, {**by, "name": "2.*"}, max_deletions=2)
    assert image.tags == ["3.0"]
    assert reasons(result)[shared] == f"part of '{IMAGE}/1.0'"


def test_index_in_a_deleted_index_keeps_nothing(image: Image) -> None:
    tagged = image.push("1.0-amd64", 90)
    inner = image.index(None, tagged, days=90)
    image.index("1.0", inner, days=90)
    image.push("1.1", 10)
    clean(image, {**BY_IMAGE, "keep_last": 1})
    assert image.tags == ["1.1"]


def test_tags_attached_to_each_other_stay(image: Image) -> None:
    """Verify that the search for owners ends."""
    digests = [image.push(None, 90, name=name) for name in ("a", "b")]
    contents = [
        image.server.on[f"GET /r/{IMAGE}/{each}/manifest.json{UNCOUNTED}"] for each in digests
    ]
    image.found.clear()
    for digest, content in zip(digests, reversed(contents), strict=True):
        assert isinstance(content, Reply)
        assert isinstance(content.body, bytes)
        tag = digest.replace(":", "-") + ".sig"
        image.store(tag, 90, content.body, "manifest.json")
    image.push("1.0", 90)
    image.push("1.1", 10)
    clean(image, {**BY_IMAGE, "keep_last": 1})
    assert len(image.tags) == 3


def test_second_tag_of_an_image_keeps_its_parts(image: Image) -> None:
    child = image.push(None)
    text = json.dumps({"manifests": [{"digest": child}]}).encode()
    digest = image.store("1.0", 90, text, INDEX)
    image.store("stable", 80, text, INDEX)
    signature = image.attach(digest)
    clean(image, {"keep_last_by": "image", "name": "1.*"})
    assert image.tags == sorted(["stable", child, signature])


def test_referrers_stay_and_go_with_their_subject(image: Image) -> None:
    """Verify manifests with a subject: with and without a tag, listed by an index and not."""
    for tag, days in (("1.0", 90), ("1.1", 10)):
        digest = image.push(tag, days)
        subject = {"subject": {"digest": digest}}
        attestation = image.push(None, days - 1, name="a", **subject)
        image.push(f"{tag}-scan", days - 2, **subject)
        sbom = image.push(None, days - 3, name="b", **subject)
        image.push(None, days - 4, subject={"digest": sbom})
        image.index(digest.replace(":", "-"), attestation, days=days)
    assert len(image.tags) == 12
    assert clean(image, {**BY_IMAGE, "keep_last": 2})["deleted"] == []
    result = clean(image, {**BY_IMAGE, "keep_last": 1}, max_deletions=1)
    assert len(image.tags) == 6
    assert {"1.1", "1.1-scan"} < set(image.tags)
    assert reasons(result)["1.0-scan"] == f"part of '{IMAGE}/1.0'"
    assert clean(image, {**BY_IMAGE, "keep_last": 1})["deleted"] == []
    assert image.server.warnings == []


@pytest.mark.parametrize("keep", [1, 5])
def test_attached_without_image_stays_with_a_warning(image: Image, keep: int) -> None:
    lonely = image.attach(f"sha256:{'0' * 64}")
    image.push("1.0", 90)
    image.push("1.1", 80)
    clean(image, {**BY_IMAGE, "keep_last": keep})
    assert lonely in image.tags
    assert image.server.warnings == [
        f"'r/{IMAGE}/{lonely}' stay, because the image to which they belong does not exist"
    ]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(403, "no right to do so"), "permission"),
        (Reply(404), "not_found"),
        (Reply(500), "server"),
        (Reply(body="{}"), "protocol"),
        (Reply(body='{"manifests": [{}]}'), "protocol"),
        (Reply(body='{"manifests": ['), "protocol"),
        (Reply(body=""), "protocol"),
    ],
)
def test_unreadable_index_fails_before_any_deletion(image: Image, reply: Reply, kind: str) -> None:
    image.push("1.0", 90)
    image.index("1.1", days=10)
    image.server.on[f"GET /r/{IMAGE}/1.1/{INDEX}{UNCOUNTED}"] = reply
    rule = {"repo": "r", **BY_IMAGE, "keep_last": 1}
    error = image.server.fails(ArtifactCleanupOperation, {"rules": [rule]})
    assert error.kind == kind
    assert f"'r/{IMAGE}/1.1/{INDEX}'" in error.message
    assert "nothing was deleted" in error.message
    assert image.deleted == []


def test_page_in_place_of_a_manifest_is_an_error(image: Image) -> None:
    for tag in ("1.0", "1.1"):
        image.push(tag)
    image.server.on[f"GET /r/{IMAGE}/1.1/manifest.json{UNCOUNTED}"] = Reply(body="<html>Hi</html>")
    rule = {"repo": "r", **BY_IMAGE, "keep_last": 1}
    assert image.server.fails(ArtifactCleanupOperation, {"rules": [rule]}).kind == "protocol"
    assert image.deleted == []


def test_blocked_image_is_deleted_with_a_warning(image: Image) -> None:
    """Server fact [repo-26]: the server refuses to return what a scan has blocked."""
    for tag, days in (("1.0", 90), ("1.1", 80), ("1.2", 10)):
        image.push(tag, days)
        if tag != "1.2":
            blocked = f"GET /r/{IMAGE}/{tag}/manifest.json{UNCOUNTED}"
            image.server.on[blocked] = Reply(403, "download blocking policy")
    clean(image, {**BY_IMAGE, "keep_last": 1})
    assert image.tags == ["1.2"]
    (warning,) = image.server.warnings
    assert f"does not return 'r/{IMAGE}/1." in warning
    assert "and 1 more (403)" in warning


def _with_manifest(image: Image) -> set[str]:
    """Return the digests that have a manifest."""
    return {f"sha256:{row['sha256']}" for row in image.found if "sha256" in row}


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_nothing_that_stays_is_broken(image: Image, data: st.DataObject) -> None:
    """Verify for any rule that indexes keep what they list, and images what is attached to them."""
    image.found.clear()
    lists: dict[str, list[str]] = {}
    pushed: list[str] = []
    tags = st.sampled_from([None, "1", "2", "3", "10"])
    for _number in range(data.draw(st.integers(1, 7))):
        tag, days = data.draw(tags), data.draw(st.integers(0, 3))
        if tag in image.tags:
            continue
        parts: list[str] = []
        if pushed:
            parts = data.draw(st.lists(st.sampled_from(pushed), unique=True))
        content = {"subject": {"digest": parts[0]}} if data.draw(st.booleans()) and parts else {}
        known = data.draw(st.integers(0, 9)) == 9
        if data.draw(st.booleans()) and parts:
            digest = image.index(tag, *parts, days=days, known=known)
            lists[digest] = parts
        else:
            digest = image.push(tag, days, known=known, number=len(pushed), **content)
        pushed.append(digest)
        if data.draw(st.booleans()):
            image.attach(data.draw(st.sampled_from(pushed)), days=days)
    rule = {
        **data.draw(st.sampled_from(RULES)),
        "keep_last": data.draw(st.sampled_from([None, 1, 2])),
        "created_before": data.draw(st.sampled_from(["1m", "2d"])),
    }
    before = _with_manifest(image)
    clean(image, rule)
    after = _with_manifest(image)
    for digest in after & lists.keys():
        assert before.intersection(lists[digest]) <= after
    listed = {part for digest in after & lists.keys() for part in lists[digest]}
    for digest in before - after:
        assert set(lists.get(digest, ())).intersection(image.tags) <= listed
    for attached in [tag for tag in image.tags if tag.endswith(".sig")]:
        subject = attached.removesuffix(".sig").replace("-", ":")
        assert subject in after or subject not in before
    assert clean(image, rule)["deleted"] == []


RULES: list[dict[str, Any]] = [
    {"keep_last_by": "image"},
    {"keep_last_by": "image", "name": "1*"},
    {"type": "folder", "path": IMAGE},
    {"type": "folder", "path": IMAGE, "name": "2"},
    {"type": "any", "path": f"{IMAGE}**"},
    {"path": f"{IMAGE}/*"},
]


def test_parts_of_an_image_that_could_not_be_deleted_stay(image: Image) -> None:
    child = image.push(None)
    index = image.index("1.0", child, days=90)
    signature = image.attach(index)
    image.push("0.9", 95)
    image.push("1.1", 10)
    image.server.on[f"DELETE /r/{IMAGE}/1.0"] = Reply(403, "needs DELETE permission")
    rule = {"repo": "r", **BY_IMAGE, "keep_last": 1}
    error = image.server.fails(ArtifactCleanupOperation, {"rules": [rule]})
    assert (error.kind, "403" in error.message) == ("permission", True)
    assert image.deleted == [f"{IMAGE}/0.9"]
    failed = reasons({"failed": error.result["failed_deletions"]}, "failed")
    assert failed.keys() == {"1.0", child, signature}
    assert failed[child].endswith(f"not attempted because 'r/{IMAGE}/1.0' was not deleted")


def test_images_without_deletion_are_not_read(image: Image) -> None:
    for number in range(3):
        image.attach(image.push(f"1.{number}", 90 - number))
    clean(image)
    assert set(image.server.asked) == {QUERY}


def test_repository_of_another_type_is_not_read(image: Image) -> None:
    image.server.on["GET /api/repositories"] = Reply(body='[{"key": "r", "packageType": "npm"}]')
    image.push("1.0")
    result = clean(image, {"type": "folder", "name": "1.0"})
    assert paths(result["deleted"]) == [f"{IMAGE}/1.0"]
    assert not [asked for asked in image.server.asked if "manifest" in asked]


@pytest.mark.parametrize("kind", ["file", "folder", "any"])
def test_names_of_attached_tags_mean_nothing_without_images(image: Image, kind: str) -> None:
    image.server.on["GET /api/repositories"] = Reply(
        body='[{"key": "r", "packageType": "generic"}]'
    )
    folder = f"cache/x/sha256-{'a' * 64}"
    image.found += [row(f"{folder}/data", 100), row(f"{folder}/manifest.json", 100)]
    rule = {"path": "cache/x" if kind == "folder" else f"{folder}", "created_before": "30d"}
    result = clean(image, {**rule, "type": kind})
    expected = [folder] if kind == "folder" else [f"{folder}/data", f"{folder}/manifest.json"]
    assert paths(result["deleted"]) == expected


def test_left_out_index_leaves_out_its_parts(image: Image) -> None:
    child = image.push(None)
    index = image.index("1.0", child, days=90)
    image.attach(image.push("0.9", 95))
    signature = image.attach(index)
    image.attach(child)
    image.push("1.1", 10)
    rule = {"repo": "r", **BY_IMAGE, "keep_last": 1}
    made = image.server.operation(ArtifactCleanupOperation, {"rules": [rule]})
    plan = made.plan()
    names = [part.name for part in made.parts(plan)]
    assert {f"r/{IMAGE}/{each}" for each in ("1.0", child, signature)} < set(names)
    left = made.leave_out(plan, {names.index(f"r/{IMAGE}/1.0")})
    made.apply(left)
    assert len(image.deleted) == 2
    assert image.deleted[0] == f"{IMAGE}/0.9"
