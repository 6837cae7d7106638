# SPDX-License-Identifier: GPL-3.0-or-later
"""Run skopeo, which copies container images between a folder and a registry. Write test images."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers import installed

PROGRAM = installed.program("skopeo")
LOGIN = ("deployer", "deployer-password")
INDEX = "application/vnd.oci.image.index.v1+json"
IMAGE = "application/vnd.oci.image.manifest.v1+json"
ARCHITECTURES = ("amd64", "arm64")
_SECONDS = 120


@dataclass(frozen=True)
class Layout:
    """A folder with an index of images, in the format of the image layout specification."""

    folder: Path
    index: bytes


def run(*arguments: str | Path, home: Path, check: bool = True) -> str:
    """Run skopeo and return its output, or its error output if `check` is false."""
    assert PROGRAM is not None
    finished = subprocess.run(
        [PROGRAM, "--insecure-policy", *arguments],
        env={
            **os.environ,
            **installed.environment(),
            "HOME": str(home),
            "XDG_RUNTIME_DIR": str(home),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert not check or finished.returncode == 0, finished.stderr
    return finished.stdout if check else finished.stderr


def write_layout(folder: Path, reference: str) -> Layout:
    """Write an index with an image for every architecture. An image has a single layer."""
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def put(content: bytes, kind: str, **more: Any) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"mediaType": kind, "size": len(content), "digest": f"sha256:{digest}", **more}

    manifests = []
    for architecture in ARCHITECTURES:
        platform = {"architecture": architecture, "os": "linux"}
        layer = _layer(f"I am for {architecture}\n".encode())
        roots = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
        configuration = json.dumps({**platform, "config": {}, "rootfs": roots}).encode()
        packed = gzip.compress(layer, mtime=0)
        image = {
            "schemaVersion": 2,
            "mediaType": IMAGE,
            "config": put(configuration, "application/vnd.oci.image.config.v1+json"),
            "layers": [put(packed, "application/vnd.oci.image.layer.v1.tar+gzip")],
        }
        manifests.append(put(json.dumps(image).encode(), IMAGE, platform=platform))
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}).encode()
    named = put(index, INDEX, annotations={"org.opencontainers.image.ref.name": reference})
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}', encoding="utf-8")
    (folder / "index.json").write_text(
        json.dumps({"schemaVersion": 2, "manifests": [named]}), encoding="utf-8"
    )
    return Layout(folder, index)


def _layer(content: bytes) -> bytes:
    """Return a layer with a single file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("hello.txt")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
