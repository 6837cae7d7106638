# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the archive of the collection, with its SHA-256 and its bill of materials beside it.

    python -m tools.build [FOLDER]    into `dist`, or into FOLDER

The same sources give the same bytes, whoever builds them, where and when: `ansible-galaxy` says
what belongs into the archive, and it is packed anew in a fixed order, with fixed modes and owners
and with one time for everything. That is SOURCE_DATE_EPOCH, or else the time of the commit.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import sbom, tree

MANIFEST, FILES = "MANIFEST.json", "FILES.json"
#: The slowest and smallest; named, because the default of a library may change.
_COMPRESSION = 9


@dataclass(frozen=True)
class Member:
    """A file, folder or link of the archive."""

    info: tarfile.TarInfo
    content: bytes = b""


def build(folder: Path, moment: int, root: Path = tree.ROOT) -> Path:
    """Build the collection in `root`; the archive, which has the two other files beside it."""
    with tempfile.TemporaryDirectory(prefix="toolchain-build-") as name:
        packed = pack_as_ansible_does(root, Path(name))
        members = _members(packed)
        file_name = packed.name
    info = _fix_manifests(members)
    content = _pack(members, moment)
    digest = hashlib.sha256(content).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / file_name
    archive.write_bytes(content)
    _beside(archive, ".tar.gz.sha256").write_text(f"{digest}  {file_name}\n", encoding="ascii")
    bill = sbom.document(info, digest, moment)
    _beside(archive, ".cdx.json").write_text(bill, encoding="utf-8")
    return archive


def moment_of(root: Path, environment: Mapping[str, str]) -> int:
    """Seconds since 1970 that stand for the time of the sources."""
    given = environment.get("SOURCE_DATE_EPOCH", "")
    if not given:
        given = _git(root, "log", "-1", "--format=%ct").strip()
        if not given:
            raise SystemExit(
                "There is no commit here that says of when the sources are:"
                " set SOURCE_DATE_EPOCH to seconds since 1970."
            )
    if not (given.isascii() and given.isdigit()):
        raise SystemExit(
            f"SOURCE_DATE_EPOCH is {given!r}: give seconds since 1970 as a whole number."
        )
    return int(given)


def _beside(archive: Path, ending: str) -> Path:
    return archive.with_name(archive.name.removesuffix(".tar.gz") + ending)


def _git(root: Path, *arguments: str) -> str:
    """What git says; nothing where this is no checkout."""
    command = ["git", "-c", "safe.directory=*", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def pack_as_ansible_does(root: Path, folder: Path) -> Path:
    """The archive of `ansible-galaxy`, in C(folder)."""
    program = str(Path(sys.executable).parent / "ansible-galaxy")
    command = [program, "collection", "build", "--output-path", str(folder), str(root)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"ansible-galaxy could not build the collection:\n{done.stderr}")
    (packed,) = folder.glob("*.tar.gz")
    return packed


def _members(packed: Path) -> dict[str, Member]:
    members = {}
    with tarfile.open(packed) as archive:
        for info in archive:
            stream = archive.extractfile(info) if info.isfile() else None
            members[info.name] = Member(info, stream.read() if stream else b"")
    return members


def _fix_manifests(members: dict[str, Member]) -> dict[str, Any]:
    """Sort the list of files, whose digest the manifest holds; what that says of the collection."""
    files = json.loads(members[FILES].content)
    files["files"].sort(key=lambda entry: entry["name"])
    listed = _dump(files)
    manifest = json.loads(members[MANIFEST].content)
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(listed).hexdigest()
    members[FILES] = Member(members[FILES].info, listed)
    members[MANIFEST] = Member(members[MANIFEST].info, _dump(manifest))
    info: dict[str, Any] = manifest["collection_info"]
    return info


def _dump(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


def _pack(members: Mapping[str, Member], moment: int) -> bytes:
    first = [MANIFEST, FILES]
    packed = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", _COMPRESSION, packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in [*first, *sorted(set(members) - set(first))]:
            member = members[name]
            archive.addfile(_fixed(member, moment), io.BytesIO(member.content))
    return packed.getvalue()


def _fixed(member: Member, moment: int) -> tarfile.TarInfo:
    """The entry without what depends on who packs it, and where."""
    info = tarfile.TarInfo(member.info.name)
    info.type, info.linkname = member.info.type, member.info.linkname
    info.size, info.mtime = len(member.content), moment
    open_to_all = info.isdir() or member.info.mode & stat.S_IXUSR
    info.mode = 0o755 if open_to_all else 0o644
    return info


def main() -> int:
    """Build into the folder of the command line, and say what is there."""
    parser = argparse.ArgumentParser(prog="python -m tools.build")
    parser.add_argument("folder", nargs="?", type=Path, default=tree.ROOT / "dist")
    folder: Path = parser.parse_args().folder
    changed = _git(tree.ROOT, "status", "--porcelain").splitlines()
    if changed:
        print(f"{len(changed)} files differ from the commit: this is no archive of it")
    archive = build(folder, moment_of(tree.ROOT, os.environ))
    for ending in (".tar.gz", ".tar.gz.sha256", ".cdx.json"):
        print(_beside(archive, ending))
    return 0


if __name__ == "__main__":
    sys.exit(main())
