# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the archive of the collection, its SHA-256, its bill of materials and its provenance.

    python -m tools.build [FOLDER]    into `dist`, or into FOLDER

If TOOLCHAIN_SIGNING_KEY names a key of GnuPG, `MANIFEST.json` and the provenance are signed, too.

The build is reproducible: the same sources give the same bytes. `ansible-galaxy` selects the files.
The archive is then written again in a fixed order, with fixed modes and owners and the same time
for all files. That time is SOURCE_DATE_EPOCH, or else the time of the commit.
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

from tools import provenance, sbom, signing, tree

MANIFEST, FILES = "MANIFEST.json", "FILES.json"
#: The slowest and smallest level; explicit, because the default of a library may change.
_COMPRESSION = 9


@dataclass(frozen=True)
class Member:
    """A file, folder or link of the archive."""

    info: tarfile.TarInfo
    content: bytes = b""


def build(
    folder: Path, moment: int, root: Path = tree.ROOT, commit: str = "", key: str = ""
) -> Path:
    """Build the collection in `root`; return the archive, which is next to the other files.

    :param commit: the commit of the sources, if they have one
    :param key: the key of GnuPG that signs
    """
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
    statement = provenance.statement(info, file_name, digest, moment, commit)
    _beside(archive, ".provenance.json").write_text(statement, encoding="utf-8")
    if key:
        signed = {".asc": members[MANIFEST].content, ".provenance.json.asc": statement.encode()}
        for ending, text in signed.items():
            _beside(archive, ending).write_bytes(signing.signature(text, key))
    return archive


def moment_of(root: Path, environment: Mapping[str, str]) -> int:
    """Return the time of the sources, in seconds since 1970."""
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
    """Return the output of git; it is empty outside a checkout."""
    command = ["git", "-c", "safe.directory=*", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return ""


def pack_as_ansible_does(root: Path, folder: Path) -> Path:
    """Build with `ansible-galaxy` in `folder`; return the archive."""
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
    """Sort the list of files, update its digest in the manifest, return `collection_info`."""
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
    """Return the entry without the attributes that depend on the user and machine of the build."""
    info = tarfile.TarInfo(member.info.name)
    info.type, info.linkname = member.info.type, member.info.linkname
    info.size, info.mtime = len(member.content), moment
    open_to_all = info.isdir() or member.info.mode & stat.S_IXUSR
    info.mode = 0o755 if open_to_all else 0o644
    return info


def main() -> int:
    """Build into the folder of the command line, and print the written files."""
    parser = argparse.ArgumentParser(prog="python -m tools.build")
    parser.add_argument("folder", nargs="?", type=Path, default=tree.ROOT / "dist")
    folder: Path = parser.parse_args().folder
    changed = _git(tree.ROOT, "status", "--porcelain").splitlines()
    if changed:
        print(f"{len(changed)} files differ from the commit: this is not an archive of it")
    commit = "" if changed else _git(tree.ROOT, "rev-parse", "HEAD").strip()
    key = os.environ.get(signing.KEY, "")
    archive = build(folder, moment_of(tree.ROOT, os.environ), commit=commit, key=key)
    endings = [".tar.gz", ".tar.gz.sha256", ".cdx.json", ".provenance.json"]
    for ending in [*endings, *([".asc", ".provenance.json.asc"] if key else [])]:
        print(_beside(archive, ending))
    return 0


if __name__ == "__main__":
    sys.exit(main())
