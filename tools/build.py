# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the archive of the collection, its SHA-256, its bill of materials and its provenance.

    python -m tools.build [FOLDER]    into `dist`, or into FOLDER

If TOOLCHAIN_SIGNING_KEY names a key of GnuPG, `MANIFEST.json` and the provenance are signed, too.
TOOLCHAIN_BUILDER is the address of the build service for the provenance.

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
from pathlib import Path
from typing import Any

from tools import sbom, tree

#: The environment variable with the fingerprint or address of the key that signs.
KEY = "TOOLCHAIN_SIGNING_KEY"
#: The environment variable with the address of the build service.
BUILDER = "TOOLCHAIN_BUILDER"
#: The builder if nobody names it: the format of the provenance requires an address.
UNKNOWN = "about:unknown"


def build(
    folder: Path,
    moment: int,
    root: Path = tree.ROOT,
    *,
    commit: str = "",
    key: str = "",
    builder: str = UNKNOWN,
) -> Path:
    """Build the collection in `root`, and print the written files; return the archive.

    :param moment: the time of the sources, in seconds since 1970
    :param commit: the commit of the sources; empty if they differ from every commit
    :param key: the key of GnuPG that signs
    :param builder: the address of the build service
    """
    with tempfile.TemporaryDirectory(prefix="toolchain-build-") as temporary:
        packed = pack_as_ansible_does(root, Path(temporary))
        with tarfile.open(packed) as archive:
            members = {info.name: info for info in archive}
            streams = {name: archive.extractfile(members[name]) for name in members}
            contents = {name: stream.read() for name, stream in streams.items() if stream}
    files = json.loads(contents["FILES.json"])
    files["files"].sort(key=lambda entry: entry["name"])
    contents["FILES.json"] = json.dumps(files, indent=1).encode()
    manifest = json.loads(contents["MANIFEST.json"])
    digest = hashlib.sha256(contents["FILES.json"]).hexdigest()
    manifest["file_manifest_file"]["chksum_sha256"] = digest
    contents["MANIFEST.json"] = json.dumps(manifest, indent=1).encode()

    whole = _pack(members, contents, moment)
    digest, info = hashlib.sha256(whole).hexdigest(), manifest["collection_info"]
    named = {"name": packed.name, "digest": {"sha256": digest}}
    statement = _provenance(info, named, moment, commit, builder)
    written = {
        ".tar.gz": whole,
        ".tar.gz.sha256": f"{digest}  {packed.name}\n".encode(),
        ".cdx.json": sbom.document(info, digest, moment).encode(),
        ".provenance.json": statement,
    }
    if key:
        written[".asc"] = signature(contents["MANIFEST.json"], key)
        written[".provenance.json.asc"] = signature(statement, key)
    folder.mkdir(parents=True, exist_ok=True)
    for ending, content in written.items():
        path = folder / packed.name.replace(".tar.gz", ending)
        path.write_bytes(content)
        print(path)
    return folder / packed.name


def _pack(
    members: Mapping[str, tarfile.TarInfo], contents: Mapping[str, bytes], moment: int
) -> bytes:
    """Return the archive: the manifests first, the other entries by their names.

    The entries have no attributes that depend on the user and machine of the build.
    """
    packed = io.BytesIO()
    with (
        # the slowest and smallest level; explicit, because the default of a library may change
        gzip.GzipFile("", "wb", 9, packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        first = ["MANIFEST.json", "FILES.json"]
        for name in [*first, *sorted(members.keys() - first)]:
            member = members[name]
            content = contents.get(name, b"") if member.isfile() else b""
            info = tarfile.TarInfo(name)
            info.type, info.linkname = member.type, member.linkname
            info.size, info.mtime = len(content), moment
            info.mode = 0o755 if member.isdir() or member.mode & stat.S_IXUSR else 0o644
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def _provenance(
    info: Mapping[str, Any], archive: Mapping[str, Any], moment: int, commit: str, builder: str
) -> bytes:
    """Return an in-toto statement about an archive, with SLSA provenance, version 1.

    It contains no time of the build, so the same archive of the same commit and builder gives the
    same bytes.
    """
    repository = info["repository"]
    source = {"uri": f"git+{repository}", "digest": {"gitCommit": commit}}
    content = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [archive],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{repository}/blob/main/tools/build.py",
                "externalParameters": {"version": info["version"], "sourceDateEpoch": moment},
                "resolvedDependencies": [source] if commit else [],
            },
            "runDetails": {"builder": {"id": builder}},
        },
    }
    return (json.dumps(content, indent=2) + "\n").encode()


def moment_of(root: Path, environment: Mapping[str, str]) -> int:
    """Return the time of the sources, in seconds since 1970."""
    given = environment.get("SOURCE_DATE_EPOCH") or _git(root, "log", "-1", "--format=%ct").strip()
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


def signature(content: bytes, key: str) -> bytes:
    """Return the detached signature of some content, as `ansible-galaxy collection verify
    --keyring` expects it.
    """
    command = ["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign"]
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{KEY} is set, but there is no gpg here: install GnuPG") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise SystemExit(f"gpg could not sign with the key of {KEY}: {said}")
    return done.stdout


def main() -> None:
    """Build into the folder of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.build")
    parser.add_argument("folder", nargs="?", type=Path, default=tree.ROOT / "dist")
    folder: Path = parser.parse_args().folder
    changed = _git(tree.ROOT, "status", "--porcelain").splitlines()
    if changed:
        print(f"{len(changed)} files differ from the commit: this is not an archive of it")
    commit = "" if changed else _git(tree.ROOT, "rev-parse", "HEAD").strip()
    key, builder = os.environ.get(KEY, ""), os.environ.get(BUILDER) or UNKNOWN
    build(folder, moment_of(tree.ROOT, os.environ), commit=commit, key=key, builder=builder)


if __name__ == "__main__":
    main()
