# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that a cleanup counts, keeps and deletes the files of a version together [C2.4]."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup.artifact_cleanup import (
    ArtifactCleanupOperation,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import layouts
from tests.unit.repo.conftest import Server
from tests.unit.repo.test_cleanup import DATE, QUERY, REPOSITORIES, params, paths, row, rows
from tests.unit.stub import Reply, Seen

SNAPSHOTS = "com/acme/app/1.2-SNAPSHOT"
OLD, NEW = f"{SNAPSHOTS}/app-1.2-20240101.120000-9", f"{SNAPSHOTS}/app-1.2-20240102.120000-10"
ENDS = (".jar", ".jar.asc", ".pom", "-sources.jar", "-dist.tar.gz", ".jar.sha1")


def _fits(criteria: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Return whether an item matches the criteria of a query."""
    for name, wanted in criteria.items():
        if name == "$or":
            fits = any(_fits(part, item) for part in wanted)
        elif name == "$and":
            fits = all(_fits(part, item) for part in wanted)
        elif name == "type":
            fits = wanted in ("any", item["type"])
        elif name.startswith("@"):
            known = [each["value"] for each in item.get("properties", ())]
            fits = wanted in known
        elif isinstance(wanted, dict) and "$before" in wanted:
            fits = item["created"] < "2030-02"
        elif isinstance(wanted, dict):
            fits = fnmatchcase(str(item[name]), wanted["$match"])
        else:
            fits = item.get(name) == wanted
        if not fits:
            return False
    return True


@pytest.fixture
def holding(server: Server) -> Callable[..., Server]:
    """Return a function that lets the server store items, find them by query and delete them."""
    kinds = [{"key": "r", "type": "LOCAL", "packageType": "maven"}, {"key": "rel", "type": "LOCAL"}]
    server.on[REPOSITORIES] = Reply(body=json.dumps(kinds))

    def hold(*found: Mapping[str, Any] | str) -> Server:
        items = [row(item) if isinstance(item, str) else item for item in found]

        def ask(seen: Seen) -> Reply:
            text = seen.body.decode().removeprefix("items.find(")
            criteria = json.JSONDecoder().raw_decode(text)[0]
            return rows(*(item for item in items if _fits(criteria, item)))

        server.on[QUERY] = ask
        response = server.response
        server.stub.response = lambda seen: (
            Reply(204, headers={"Date": DATE}) if seen.method == "DELETE" else response(seen)
        )
        return server

    return hold


def run(server: Server, *given: Mapping[str, Any], **options: Any) -> list[str]:
    """Run the cleanup; return the deleted paths, which check mode also returns."""
    before = len(server.asked)
    _plan, predicted = server.run(ArtifactCleanupOperation, params(*given, **options), check=True)
    _plan, values = server.run(ArtifactCleanupOperation, params(*given, **options))
    assert predicted == values
    deleted = [name for name in server.asked[before:] if name.startswith("DELETE /r/")]
    assert sorted(deleted) == [f"DELETE /r/{path}" for path in paths(values["deleted"])]
    return paths(values["deleted"])


def snapshot(start: str, *ends: str) -> list[str]:
    return sorted(f"{start}{end}" for end in ends or ENDS)


def test_newest_snapshot_is_kept_with_all_its_files(holding: Callable[..., Server]) -> None:
    server = holding(*snapshot(OLD), *snapshot(NEW))
    assert run(server, {"path": SNAPSHOTS, "keep_last": 1}) == snapshot(OLD)


@pytest.mark.parametrize("name", ["*.jar", "*.pom", "*-sources.jar", "app-1.2-*.tar.gz"])
def test_name_of_one_file_selects_the_whole_snapshot(
    holding: Callable[..., Server], name: str
) -> None:
    server = holding(*snapshot(OLD), *snapshot(NEW), "com/acme/app/maven-metadata.xml")
    assert run(server, {"name": name, "keep_last": 1}) == snapshot(OLD)


def test_snapshots_are_ordered_by_time_and_number(holding: Callable[..., Server]) -> None:
    """The creation times have the reverse order, as after a copy of the repository."""
    start = f"{SNAPSHOTS}/app-1.2"
    first, second = f"{start}-20240101.120000-9", f"{start}-20240101.120000-10"
    third = f"{start}-20240103.000000-2"
    server = holding(
        *(row(f"{first}{end}", 10) for end in ENDS),
        *(row(f"{second}{end}", 20) for end in ENDS),
        *(row(f"{third}{end}", 30) for end in ENDS),
    )
    assert run(server, {"path": "**", "keep_last": 2}) == snapshot(first)


def test_pom_of_an_older_snapshot_stays_with_a_newer_jar(holding: Callable[..., Server]) -> None:
    """Only the jar has changed, so that only the jar was deployed again."""
    oldest = f"{SNAPSHOTS}/app-1.2-20230101.120000-8"
    server = holding(*snapshot(oldest), *snapshot(OLD), f"{NEW}.jar", f"{NEW}-dist.zip")
    assert run(server, {"path": SNAPSHOTS, "keep_last": 1}) == snapshot(oldest)
    _plan, values = server.run(
        ArtifactCleanupOperation, params({"path": SNAPSHOTS, "keep_last": 1}), check=True
    )
    assert {item["reason"] for item in values["kept"] if item["path"].startswith(OLD)} == {
        f"rule 1: has '{OLD}.pom', which newer snapshots lack"
    }
    assert len(run(server, {"path": SNAPSHOTS})) == 2 * len(ENDS) + 2


def test_optional_file_of_an_older_snapshot_is_deleted(holding: Callable[..., Server]) -> None:
    server = holding(*snapshot(OLD), *snapshot(NEW, ".jar", ".pom", ".tar.gz"))
    assert run(server, {"path": SNAPSHOTS, "keep_last": 1}) == snapshot(OLD)


@pytest.mark.parametrize(
    "given", [{"created_before": "30d"}, {"name": "*.pom", "created_before": "30d"}]
)
def test_old_pom_stays_with_a_young_jar(
    holding: Callable[..., Server], given: Mapping[str, Any]
) -> None:
    server = holding(*snapshot(OLD), row(f"{NEW}.jar", 1))
    assert run(server, given) == []


def test_version_counts_once_for_max_deletions(holding: Callable[..., Server]) -> None:
    server = holding(*snapshot(OLD), *snapshot(NEW))
    assert len(run(server, {"path": SNAPSHOTS}, max_deletions=2)) == 12
    error = server.fails(ArtifactCleanupOperation, params({"path": SNAPSHOTS}, max_deletions=1))
    assert (error.kind, "delete 2 items" in error.message) == ("invalid", True)


def test_sealed_plan_leaves_out_whole_versions(holding: Callable[..., Server]) -> None:
    """The plan was made before the signature of the old snapshot was stored."""
    server = holding(*snapshot(OLD), *snapshot(NEW))
    made = server.operation(ArtifactCleanupOperation, params({"path": SNAPSHOTS}))
    plan = made.plan()
    places = [n for n, part in enumerate(made.parts(plan)) if part.name == f"r/{OLD}.jar.asc"]
    assert list(made.leave_out(plan, places).before) == [f"r/{path}" for path in snapshot(NEW)]


@pytest.mark.parametrize("keep", [{"exclude": ["**/*-9.pom"]}, {"without_properties": ["hold"]}])
@pytest.mark.parametrize("name", [None, "*.jar"])
def test_one_kept_file_keeps_the_version(
    holding: Callable[..., Server], keep: Mapping[str, Any], name: str | None
) -> None:
    held: dict[str, Any] = {"properties": [{"key": "hold", "value": ""}]}
    server = holding(
        *(row(f"{OLD}{end}", **(held if end == ".pom" else {})) for end in ENDS), *snapshot(NEW)
    )
    assert run(server, {"path": SNAPSHOTS, "name": name, **keep}) == snapshot(NEW)
    # a kept version is not counted
    assert run(server, {"path": SNAPSHOTS, "name": name, "keep_last": 1, **keep}) == []


def test_young_file_keeps_the_version(holding: Callable[..., Server]) -> None:
    server = holding(*(row(f"{OLD}{end}", 1 if end == ".pom" else 90) for end in ENDS))
    assert run(server, {"created_before": "30d"}) == []
    _plan, values = server.run(ArtifactCleanupOperation, params({"created_before": "30d"}))
    assert values["kept"][0]["reason"] == (f"rule 1: version with '{OLD}.pom', younger than 30d")


def test_young_signature_does_not_keep_its_file(holding: Callable[..., Server]) -> None:
    server = holding(row("a/x.deb", 90), row("a/x.deb.asc", 1), row("a/y.deb", 1))
    assert run(server, {"created_before": "30d"}) == ["a/x.deb", "a/x.deb.asc"]


SUFFIXES = [".asc", ".sig", ".prov", ".md5", ".sha1", ".sha256", ".sha512", ".asc.md5"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("given", [{"path": "a"}, {"name": "*.tgz"}, {"properties": {"k": "v"}}])
def test_signatures_and_checksums_go_with_their_file(
    holding: Callable[..., Server], given: Mapping[str, Any], suffix: str
) -> None:
    has = {"properties": [{"key": "k", "value": "v"}]}
    server = holding(
        row("a/x-1.tgz", 90, **has),
        row(f"a/x-1.tgz{suffix}", 1),
        row("a/x-2.tgz", 50, **has),
        row(f"a/x-2.tgz{suffix}", 50),
    )
    assert run(server, {"keep_last": 1, **given}) == ["a/x-1.tgz", f"a/x-1.tgz{suffix}"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_pattern_of_signatures_does_not_delete_their_files(
    holding: Callable[..., Server], suffix: str
) -> None:
    server = holding("a/x.tgz", f"a/x.tgz{suffix}", f"b/orphan{suffix}")
    assert run(server, {"name": f"*{suffix}"}) == [f"b/orphan{suffix}"]
    assert server.warnings[0].startswith("1 file stays, because the server computes them or they")
    assert f"'r/a/x.tgz{suffix}'" in server.warnings[0]
    assert run(server, {"name": f"x.tgz{suffix}"}) == [f"a/x.tgz{suffix}"]


def test_computed_files_are_not_selected(holding: Callable[..., Server]) -> None:
    server = holding("g/a/maven-metadata.xml", "g/a/maven-metadata.xml.sha1", "g/a/x", "g/a/y")
    assert run(server, {"path": "g/a", "keep_last": 1}) == ["g/a/x"]
    assert server.warnings[0].startswith("2 files stay")
    assert (
        run(server, {"name": "maven-metadata.xml"})[1:]
        == [
            "g/a/maven-metadata.xml",
            "g/a/maven-metadata.xml.sha1",
        ][1:]
    )


@pytest.mark.parametrize(
    ("kind", "computed", "others"),
    [
        ("conan", "u/zlib/1.3/stable/index.json", ["u/conanfile.py"]),
        ("conan", "u/zlib/1.3/stable/.timestamp", []),
        ("helm", "index.yaml", ["app-1.tgz"]),
        ("rpm", "8/repodata/repomd.xml", ["8/x.rpm", "8/repodata/x.rpm"]),
        ("yum", "repodata/primary.xml.gz", []),
        ("debian", "dists/focal/main/binary-amd64/Packages", ["pool/x.deb", "dists/focal/x.deb"]),
        ("npm", ".npm/app/package.json", ["app/-/app-1.tgz"]),
        ("pypi", ".pypi/simple.html", ["app/1/app-1.whl"]),
        (
            "generic",
            "x",
            ["index.yaml", "repodata/repomd.xml", "dists/Packages", ".npm/a", "index.json"],
        ),
    ],
)
def test_index_files_depend_on_the_package_type(
    holding: Callable[..., Server], kind: str, computed: str, others: list[str]
) -> None:
    found = [*others, *([computed] if kind != "generic" else [])]
    server = holding(*found)
    server.on[REPOSITORIES] = Reply(
        body=json.dumps([{"key": "r", "type": "LOCAL", "packageType": kind}])
    )
    assert run(server, {"path": "**"}, force=True) == sorted(others)
    run(server, {"path": "**", "name": computed.rpartition("/")[2]})
    assert (f"DELETE /r/{computed}" in server.asked) == (kind != "generic")


@pytest.mark.parametrize("name", ["maven-metadata.xml.sha1"])
def test_exact_name_still_selects_a_computed_file(
    holding: Callable[..., Server], name: str
) -> None:
    server = holding("g/a/maven-metadata.xml", f"g/a/{name}")
    assert run(server, {"name": name}) == [f"g/a/{name}"]


@pytest.mark.parametrize("kind", ["folder", "any"])
def test_property_of_content_keeps_a_folder(holding: Callable[..., Server], kind: str) -> None:
    held: dict[str, Any] = {"properties": [{"key": "hold", "value": "x"}]}
    folder: dict[str, Any] = {"type": "folder", "size": 0}
    server = holding(
        row("a/1", **folder),
        row("a/1/x", **held),
        row("a/2", **folder),
        row("a/2/b", **folder, **held),
        row("a/2/b/y"),
        row("a/3", **folder, **held),
        row("a/3/z"),
        row("a/4", **folder),
        row("a/4/z"),
    )
    given = {"path": "a", "type": kind, "without_properties": ["other", "hold"]}
    assert run(server, given) == ["a/4"]


@pytest.mark.parametrize("file", ["app/2/manifest.json", "app/2/sha256__1", "app/2"])
def test_property_keeps_an_image(holding: Callable[..., Server], file: str) -> None:
    kept = {"properties": [{"key": "hold", "value": "x"}]}
    found = [row("app/1/manifest.json"), row("app/2/manifest.json"), row("app/2/sha256__1")]
    found.append(row("app/2", type="folder", size=0))
    for item in found:
        if f"{item['path']}/{item['name']}" == file:
            item.update(kept)
    server = holding(*found)
    for tag in ("1", "2"):
        server.on[f"GET /r/app/{tag}/manifest.json?skipUpdateStats=true"] = Reply(body="{}")
    given = {"path": "app", "keep_last_by": "image", "without_properties": ["hold"]}
    assert run(server, given) == ["app/1"]


def test_protection_needs_queries_with_properties(server: Server) -> None:
    server.dialect = "generic"
    given = params({"path": "a", "without_properties": ["hold"]})
    error = server.fails(ArtifactCleanupOperation, given)
    assert (error.kind, server.asked) == ("rejected", [])
    assert "without_properties" in error.message


# --- released_in ----------------------------------------------------------------------------------

RELEASE = "com/acme/app/1.2/app-1.2"


@pytest.mark.parametrize(
    ("released", "goes"),
    [
        (f"{RELEASE}.jar", True),
        (f"{RELEASE}-sources.jar", True),
        (f"{RELEASE}.jar.sha1", False),
        ("com/acme/app/1.20/app-1.20.jar", False),
        ("com/acme/app/1.2/other.txt", False),
        ("com/other/app/1.2/app-1.2.jar", False),
    ],
)
def test_released_in_selects_snapshots_of_releases(
    holding: Callable[..., Server], released: str, goes: bool
) -> None:
    plain = f"{SNAPSHOTS}/app-1.2-SNAPSHOT.jar"
    server = holding(*snapshot(OLD), plain, "com/acme/app/readme.txt", row(released, repo="rel"))
    deleted = run(server, {"released_in": "rel"})
    assert deleted == ([*snapshot(OLD), plain] if goes else [])


def test_released_in_selects_folders_of_snapshots(holding: Callable[..., Server]) -> None:
    folder: dict[str, Any] = {"type": "folder", "size": 0}
    names = ("com/acme/app", SNAPSHOTS, "com/acme/app/1.3-SNAPSHOT")
    server = holding(
        *(row(name, **folder) for name in names), *snapshot(OLD), row(f"{RELEASE}.pom", repo="rel")
    )
    assert run(server, {"type": "folder", "released_in": "rel"}) == [SNAPSHOTS]


def test_unknown_release_repository_is_not_found(holding: Callable[..., Server]) -> None:
    server = holding(*snapshot(OLD))
    error = server.fails(ArtifactCleanupOperation, params({"released_in": "typo"}))
    assert (error.kind, "'typo'" in error.message) == ("not_found", True)


# --- repositories without items of their own ------------------------------------------------------

REPOS = [
    {"key": "all", "type": "VIRTUAL"},
    {"key": "inner", "type": "VIRTUAL"},
    {"key": "dev", "type": "LOCAL"},
    {"key": "rel", "type": "LOCAL"},
    {"key": "proxy", "type": "REMOTE"},
]


def virtual(*members: str) -> Reply:
    return Reply(body={"key": "x", "rclass": "virtual", "repositories": list(members)})


@pytest.mark.parametrize("option", ["repo", "released_in"])
@pytest.mark.parametrize(
    ("key", "named"), [("all", "'dev', 'rel'"), ("proxy", "name a local repository")]
)
def test_virtual_and_remote_repositories_are_rejected(
    server: Server, key: str, named: str, option: str
) -> None:
    server.on[REPOSITORIES] = Reply(body=json.dumps(REPOS))
    server.on["GET /api/repositories/all"] = virtual("dev", "proxy", "inner")
    server.on["GET /api/repositories/inner"] = virtual("rel", "dev")
    server.on[QUERY] = rows(row(f"{OLD}.jar", repo="dev"))
    given = {"path": "**", "repo": "dev", "keep_last": 1, option: key}
    error = server.fails(ArtifactCleanupOperation, params(given))
    assert (error.kind, named in error.message) == ("invalid", True)
    assert f"'{key}' is a " in error.message


@pytest.mark.parametrize("given", [{"without_properties": [" "]}, {"released_in": "a/b"}])
def test_careless_suboptions_are_rejected(server: Server, given: dict[str, Any]) -> None:
    error = server.fails(ArtifactCleanupOperation, params({"path": "a", **given}))
    assert (error.kind, server.asked) == ("invalid", [])
    assert next(iter(given)) in error.message


def test_released_in_cannot_be_combined_with_images(server: Server) -> None:
    given = params({"keep_last_by": "image", "keep_last": 1, "released_in": "rel"})
    error = server.fails(ArtifactCleanupOperation, given)
    assert (error.kind, "released_in" in error.message) == ("invalid", True)


@pytest.mark.parametrize(
    ("path", "release"),
    [
        (f"{OLD}-sources.jar", RELEASE),
        (f"{SNAPSHOTS}/app-1.2-SNAPSHOT.tar.gz", RELEASE),
        ("nightly/app-1.2-20240101.120000-9.jar", None),
        ("g/a/SNAPSHOT/a-SNAPSHOT.jar", None),
        (f"{SNAPSHOTS}/other-1.2-SNAPSHOT.jar", None),
    ],
)
def test_snapshot_has_a_release_in_maven_layout(path: str, release: str | None) -> None:
    found = layouts.snapshot_of(path)
    assert found is not None
    assert found.release == release


@pytest.mark.parametrize("path", ["a/app-1.2.jar", "a/SNAPSHOT", "a/app-20240101.120000-9", ""])
def test_other_files_are_no_snapshots(path: str) -> None:
    assert layouts.snapshot_of(path) is None
