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

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import collection
from tools import build, tree

MOMENT = 1_700_000_000
COMMIT, BUILDER = "0123abc", "https://ci.example.org/job/release"
ADDRESS = "signer@example.com"
#: Files of a collection that is built in a tenth of the time.
FEW = ("galaxy.yml", "README.md", "LICENSE", "meta/runtime.yml", "plugins/filter/jql_quote.py")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    return build.build(folder, MOMENT, commit=COMMIT, builder=BUILDER)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of few files: one is executable, one is a link."""
    folder = tmp_path_factory.mktemp("few") / "checkout"
    for name in FEW:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tree.ROOT / name, folder / name)
    (folder / "plugins/filter/jql_quote.py").chmod(0o755)
    (folder / "meta/link.yml").symlink_to("runtime.yml")
    return folder


def test_folder_and_umask_do_not_change_the_archive(few: Path, tmp_path: Path) -> None:
    other = tmp_path / "another checkout"
    shutil.copytree(few, other, symlinks=True)
    for left in ("__pycache__", "plugins/filter/__pycache__", ".mypy_cache", "dist"):
        (other / left).mkdir()
        (other / left / "left-over").touch()
    for path in other.rglob("*"):
        # like a checkout with umask 077 that was made at another time
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & 0o700)
            os.utime(path, (MOMENT + 5, MOMENT + 5))
    one = build.build(tmp_path / "one", MOMENT, few)
    before = os.umask(0o077)
    try:
        build.build(tmp_path / "two", MOMENT, other)
    finally:
        os.umask(before)
    built = sorted((tmp_path / "two").iterdir())
    assert [path.name for path in built] == sorted(path.name for path in one.parent.iterdir())
    for path in built:
        assert path.read_bytes() == one.with_name(path.name).read_bytes(), path.name


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


def test_files_next_to_the_archive_have_its_digest(archive: Path) -> None:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    stored = archive.with_name(f"{archive.name}.sha256").read_text(encoding="ascii")
    assert stored == f"{digest}  {archive.name}\n"
    bill = json.loads(archive.with_name(archive.name.replace(".tar.gz", ".cdx.json")).read_text())
    whole = bill["metadata"]["component"]
    assert whole["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert archive.name == f"{whole['group']}-{whole['name']}-{whole['version']}.tar.gz"


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


def test_provenance_names_archive_and_commit(archive: Path) -> None:
    path = archive.with_name(archive.name.replace(".tar.gz", ".provenance.json"))
    statement = json.loads(path.read_text())
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": archive.name, "digest": {"sha256": digest}}]
    definition = statement["predicate"]["buildDefinition"]
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": COMMIT}
    # nothing that the build does not know, such as its time
    assert statement["predicate"]["runDetails"] == {"builder": {"id": BUILDER}}
    assert not list(archive.parent.glob("*.asc"))


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
    keyring: dict[str, str], few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNUPGHOME", keyring["GNUPGHOME"])
    archive = build.build(tmp_path / "dist", MOMENT, few, key=ADDRESS)
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


@pytest.mark.skipif(shutil.which("gpg") is None, reason="no GnuPG on this machine")
def test_missing_signing_key_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNUPGHOME", str(tmp_path))
    with pytest.raises(
        SystemExit, match="gpg could not sign with the key of TOOLCHAIN_SIGNING_KEY"
    ):
        build.signature(b"", "nobody@example.com")
