# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the Debian programs that tests run against the collection, below the environment.

    python -m tools.debian

Packages are downloaded with apt-get and unpacked with dpkg, into a separate folder: no root is
needed, no daemon is started, and the system stays unchanged. Without apt-get, the tool prints which
tests lack their programs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

#: Package to its purpose; dependencies are installed, too.
PACKAGES = {
    "chromium-headless-shell": "the page of a report",
    "default-jdk-headless": "a CI server and clients that are written in Java",
    "docker-registry": "a container registry as second opinion",
    "groovy": "the program around scripts of the CI server",
    "maven": "a CI server and clients that are written in Java",
    "nginx": "a plain store of files",
    "openssh-client": "the SSH command interface of the CI server",
    "openssh-server": "the SSH command interface of the CI server",
    "skopeo": "a client of container registries",
}
FOLDER = Path(sys.prefix) / "debian"
_ROOT = FOLDER / "root"
_BINARIES = (
    *("usr/lib/chromium", "usr/bin", "usr/sbin", "usr/share/groovy/bin"),
    *("usr/share/maven/bin", "usr/lib/jvm/default-java/bin"),
)
_SYSTEM = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_SECONDS = 600


def available() -> bool:
    """Return whether packages can be installed here: on Debian and its derivatives."""
    return all(shutil.which(program) for program in ("apt-get", "dpkg-deb"))


def program(name: str) -> Path | None:
    """Return a program, unpacked or from the system; None if it is missing and cannot be installed.

    :raises RuntimeError: the program could be installed, but is not; a test must not be skipped
        silently
    """
    places = [_ROOT / folder / name for folder in _BINARIES]
    found = next((str(place) for place in places if place.exists()), None)
    found = found or shutil.which(name, path=_SYSTEM)
    if found is None and available():
        raise RuntimeError(f"{name} is missing: run python -m tools.debian")
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


def unpack() -> None:
    """Download and unpack the packages, unless that has been done."""
    finished = FOLDER / "finished"
    wanted = " ".join(sorted(PACKAGES))
    if finished.exists() and finished.read_text(encoding="utf-8") == wanted:
        return
    with tempfile.TemporaryDirectory(prefix="toolchain-debian-") as folder:
        archives = _download(Path(folder))
        shutil.rmtree(FOLDER, ignore_errors=True)
        _ROOT.mkdir(parents=True)
        for archive in archives:
            _call("dpkg-deb", "--extract", str(archive), str(_ROOT))
    _turn_links()
    finished.write_text(wanted, encoding="utf-8")


def _download(folder: Path) -> list[Path]:
    """Download the packages and their missing dependencies; return the archives."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    settings = folder / "apt.conf"
    settings.write_text(
        f'Dir::State::lists "{folder}/lists";\n'
        f'Dir::Cache "{folder}/cache";\n'
        'Debug::NoLocking "true";\nAPT::Sandbox::User "";\n',
        encoding="utf-8",
    )
    apt = ("apt-get", "--quiet=2")
    _call(*apt, "update", APT_CONFIG=str(settings))
    _call(
        *(*apt, "--yes", "--no-install-recommends", "--download-only", "install", *PACKAGES),
        APT_CONFIG=str(settings),
    )
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _turn_links() -> None:
    """Redirect absolute links to the unpacked root, if their target exists there."""
    for link in _ROOT.rglob("*"):
        if link.is_symlink() and os.readlink(link).startswith("/"):
            goal = _ROOT / os.readlink(link).lstrip("/")
            if goal.exists():
                link.unlink()
                link.symlink_to(goal)


def _call(*command: str, **variables: str) -> None:
    subprocess.run(
        command,
        check=True,
        timeout=_SECONDS,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", **variables},
    )


def main() -> int:
    """Unpack the packages, or print the purposes that may not be tested without them."""
    if available():
        unpack()
        return 0
    for package, purpose in PACKAGES.items():
        print(f"not Debian: without the package {package}, {purpose} may not be tested")
    return 0


if __name__ == "__main__":
    sys.exit(main())
