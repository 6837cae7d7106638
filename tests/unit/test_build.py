# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the archive of the collection: the same bytes for the same sources, and the files next to
it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import collection
from tools import build, licences, tree

MOMENT = 1_700_000_000
ADDRESS = "signer@example.com"
LEFT_OVER = shutil.ignore_patterns(
    ".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "dist"
)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build.build(tmp_path_factory.mktemp("dist"), MOMENT)


@pytest.fixture(scope="module")
def bill(archive: Path) -> dict[str, Any]:
    name = archive.name.replace(".tar.gz", ".cdx.json")
    loaded = json.loads(archive.with_name(name).read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_folder_and_umask_do_not_change_the_archive(archive: Path, tmp_path: Path) -> None:
    other = tmp_path / "another checkout"
    shutil.copytree(tree.ROOT, other, ignore=LEFT_OVER)
    for left in ("__pycache__", "plugins/modules/__pycache__", ".mypy_cache", "dist"):
        (other / left).mkdir()
        (other / left / "left-over").touch()
    for path in other.rglob("*"):
        # like a checkout with umask 077 that was made at another time
        path.chmod(path.stat().st_mode & 0o700)
        os.utime(path, (MOMENT + 5, MOMENT + 5))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(MOMENT), "PYTHONPATH": str(other)}
    done = subprocess.run(
        [sys.executable, "-m", "tools.build"],
        cwd=other,
        env=environment,
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (other / "dist" / "left-over").unlink()
    built = sorted((other / "dist").iterdir())
    assert [path.name for path in built] == sorted(path.name for path in archive.parent.iterdir())
    for path in built:
        assert path.read_bytes() == archive.with_name(path.name).read_bytes(), path.name


def test_archive_contains_no_data_of_its_builder(archive: Path) -> None:
    with tarfile.open(archive) as packed:
        members = packed.getmembers()
    names = [member.name for member in members]
    assert names[:2] == ["MANIFEST.json", "FILES.json"]
    assert names[2:] == sorted(names[2:])
    assert {member.mtime for member in members} == {MOMENT}
    assert {member.mode for member in members} <= {0o644, 0o755}
    owners = {(member.uid, member.gid, member.uname, member.gname) for member in members}
    assert owners == {(0, 0, "", "")}
    # of the header of gzip: neither a name nor a time
    assert archive.read_bytes()[3:8] == bytes(5)
    assert len(gzip.decompress(archive.read_bytes())) > 0


def test_digest_file_matches_the_archive(archive: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    stored = archive.with_name(f"{archive.name}.sha256").read_text(encoding="ascii")
    assert stored == f"{digest}  {archive.name}\n"


def test_archive_is_installed_and_verified(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = tmp_path / "collections"
    # Through PYTHONPATH the checkout would be found first.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def galaxy(action: str, what: str) -> subprocess.CompletedProcess[str]:
        program = str(Path(sys.executable).parent / "ansible-galaxy")
        home = {"ANSIBLE_HOME": str(tmp_path), "ANSIBLE_COLLECTIONS_PATH": str(collections)}
        return subprocess.run(
            [program, "collection", action, "--offline", "-p", str(collections), what],
            env={**inherited, **home},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    installed = galaxy("install", str(archive))
    assert installed.returncode == 0, installed.stderr
    verified = galaxy("verify", "delivery.toolchain")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    # a sealed plan of the checkout is valid for its archive
    checkout = collection.content.__wrapped__()
    monkeypatch.setattr(collection, "ROOT", collections / tree.COLLECTION)
    assert collection.content.__wrapped__() == checkout
    (collections / tree.COLLECTION / "README.md").write_text("something else", encoding="utf-8")
    assert galaxy("verify", "delivery.toolchain").returncode != 0


def test_bill_of_materials_lists_archive_and_dependencies(
    archive: Path, bill: dict[str, Any]
) -> None:
    whole = bill["metadata"]["component"]
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert whole["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert archive.name == f"{whole['group']}-{whole['name']}-{whole['version']}.tar.gz"
    scopes = {component["name"]: component["scope"] for component in bill["components"]}
    assert (scopes["requests"], scopes["urllib3"], scopes["ansible-core"]) == ("required",) * 3
    assert (scopes["oauthlib"], scopes["requests-oauthlib"]) == ("optional",) * 2
    assert set(scopes).isdisjoint({"lxml", "pytest", "starlette"})


def test_bill_of_materials_has_unique_references(bill: dict[str, Any]) -> None:
    whole = bill["metadata"]["component"]["bom-ref"]
    components = [component["bom-ref"] for component in bill["components"]]
    assert len(components) == len(set(components))
    needs = {dependency["ref"]: dependency["dependsOn"] for dependency in bill["dependencies"]}
    assert sorted(needs) == sorted([whole, *components])
    reached, open_ = set(), [whole]
    while open_:
        reached.add(open_[-1])
        open_ += [each for each in needs[open_.pop()] if each not in reached]
    assert reached == {whole, *components}
    for component in bill["components"]:
        assert [licences.allowed(one["expression"]) for one in component["licenses"]] == [True]


def test_time_of_commit_is_the_default(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    when = {"GIT_AUTHOR_DATE": "@1000 +0000", "GIT_COMMITTER_DATE": "@2000 +0000"}
    for arguments in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], env={**os.environ, **when}, check=True)
    assert build.moment_of(tmp_path, {}) == 2000
    assert build.moment_of(tmp_path, {"SOURCE_DATE_EPOCH": "3000"}) == 3000


def test_missing_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="set SOURCE_DATE_EPOCH to seconds since 1970"):
        build.moment_of(tmp_path, {"SOURCE_DATE_EPOCH": ""})
    with pytest.raises(SystemExit, match="SOURCE_DATE_EPOCH is 'today': give seconds"):
        build.moment_of(tmp_path, {"SOURCE_DATE_EPOCH": "today"})


def test_provenance_names_archive_and_commit(tmp_path: Path) -> None:
    builder = "https://ci.example.org/job/release"
    archive = build.build(tmp_path, MOMENT, commit="0123abc", builder=builder)
    statement = json.loads(
        (tmp_path / archive.name.replace(".tar.gz", ".provenance.json")).read_text()
    )
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": archive.name, "digest": {"sha256": digest}}]
    definition = statement["predicate"]["buildDefinition"]
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": "0123abc"}
    # nothing that the build does not know, such as its time
    assert statement["predicate"]["runDetails"] == {"builder": {"id": builder}}
    assert not list(tmp_path.glob("*.asc"))


@pytest.fixture
def keyring() -> Iterator[dict[str, str]]:
    """Make a throw-away key; yield the environment of GnuPG, and its keyring."""
    # the sockets of its agent need a short path
    with tempfile.TemporaryDirectory(prefix="gpg", dir="/tmp") as home:
        environment = {**os.environ, "GNUPGHOME": home}
        make = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", ADDRESS]
        _run([*make, "default", "default", "never"], environment)
        ring = f"{home}/exported.gpg"
        _run(["gpg", "--batch", "--output", ring, "--export", ADDRESS], environment)
        yield {"GNUPGHOME": home, "ring": ring}
        _run(["gpgconf", "--kill", "all"], environment)


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(shutil.which("gpg") is None, reason="no GnuPG on this machine")
def test_signature_is_verified_by_ansible(
    keyring: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNUPGHOME", keyring["GNUPGHOME"])
    archive = build.build(tmp_path / "dist", MOMENT, key=ADDRESS)
    signed = archive.with_name(archive.name.replace(".tar.gz", ".asc"))
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        # the checkout must not count as installed
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
        "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH": "false",
    }

    program = str(Path(sys.executable).parent / "ansible-galaxy")
    _run([program, "collection", "install", "--offline", str(archive)], environment)

    def is_verified(signature: Path) -> bool:
        command = [program, "collection", "verify", "--offline", "--keyring", keyring["ring"]]
        command += ["--required-valid-signature-count", "+1", "--signature", f"file://{signature}"]
        done = subprocess.run(
            [*command, "delivery.toolchain"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode == 0

    assert is_verified(signed)
    statement = archive.with_name(archive.name.replace(".tar.gz", ".provenance.json"))
    _run(["gpg", "--verify", f"{statement}.asc", str(statement)], environment)
    assert not is_verified(Path(f"{statement}.asc"))
    (tmp_path / tree.COLLECTION / "README.md").write_text("changed", encoding="utf-8")
    assert not is_verified(signed)


def test_missing_signing_key_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNUPGHOME", str(tmp_path))
    with pytest.raises(
        SystemExit, match="gpg could not sign with the key of TOOLCHAIN_SIGNING_KEY"
    ):
        build.build(tmp_path / "dist", MOMENT, key="nobody@example.com")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="there is no gpg here: install GnuPG"):
        build.signature(b"", "nobody@example.com")
