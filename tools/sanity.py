# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test sanity on the content of the archive, with the running Python.

    python -m tools.sanity                           all tests
    python -m tools.sanity --brief                   only those whose faults no other job finds
    python -m tools.sanity --test validate-modules   arguments are passed to ansible-test

Paths are relative to the archive.

The session of antsibull-nox installs ansible-core from GitHub and runs it in a container.

ansible-test runs pip without the environment variables of pip and of a proxy, and downloads that
pip from its own host. A temporary home directory therefore provides the settings of pip, and a copy
of pip. The environments of its tests remain in `.venv`; `tools/setup` creates them with
`--prime-venvs`, so that later runs need no network.
"""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tools import build, tree

# Copies the pip of this environment: an installation of pip takes ten seconds, seven times per run.
GET_PIP = """\
import pathlib, shutil, sysconfig
target = pathlib.Path(sysconfig.get_path("purelib"))
for source in {sources!r}:
    shutil.copytree(source, target / pathlib.Path(source).name, dirs_exist_ok=True)
"""
# File names that ansible-core 2.16 and 2.17, 2.18 and 2.19, 2.20 and newer expect.
GET_PIP_NAMES = ("get_pip_23_1_2.py", "get_pip_24_2.py", "get_pip_25_2.py")
# Other jobs find what these find, in a tenth of the time: galaxy-importer, antsibull-changelog,
# unit (test_imports.py), ruff and mypy, nox; `make test` has a job for validate-modules.
_ELSEWHERE = ("ansible-doc", "changelog", "import", "pylint", "validate-modules", "yamllint")
_ENVIRONMENTS = Path(sys.prefix) / "sanity"


def _pip(*arguments: str) -> str:
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _make_home(home: Path) -> None:
    """Write a home folder with a copy of pip and the current settings of pip: its files,
    environment variables, cache and proxy.
    """
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True)
    _ENVIRONMENTS.mkdir(exist_ok=True)
    (cache.parent / "venv").symlink_to(_ENVIRONMENTS, target_is_directory=True)
    packages = Path(sysconfig.get_path("purelib"))
    sources = [str(packages / "pip"), *map(str, packages.glob("pip-*.dist-info"))]
    for name in GET_PIP_NAMES:
        (cache / name).write_text(GET_PIP.format(sources=sources))
    settings = {"cache-dir": _pip("cache", "dir").strip(), "quiet": "1"}
    if proxy := os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy"):
        settings["proxy"] = proxy
    for line in _pip("config", "list").splitlines():
        key, value = line.split("=", 1)
        section, name = key.rsplit(".", 1)
        if section in ("global", "install", ":env:"):
            settings[name] = ast.literal_eval(value)
    config = configparser.RawConfigParser()
    config["global"] = settings
    (home / ".config" / "pip").mkdir(parents=True)
    with (home / ".config" / "pip" / "pip.conf").open("w") as stream:
        config.write(stream)


def main() -> int:
    """Return the exit status of ansible-test."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    programs = Path(sys.executable).parent
    command = [sys.executable, str(programs / "ansible-test"), "sanity", "--local"]
    command += ["--python", version, "--color", "no"]
    for argument in sys.argv[1:]:
        skipped = [word for name in _ELSEWHERE for word in ("--skip-test", name)]
        command += skipped if argument == "--brief" else [argument]
    # the shims of pyenv may stand for missing interpreters
    folders = [str(programs), *os.environ["PATH"].split(os.pathsep)]
    path = os.pathsep.join(folder for folder in folders if Path(folder).name != "shims")
    with tempfile.TemporaryDirectory(prefix="toolchain-sanity-") as home:
        _make_home(Path(home))
        # as users get it, without the collection's tests
        packed = build.pack_as_ansible_does(tree.ROOT, Path(home, "dist"))
        collection = Path(home, "collections", tree.COLLECTION)
        collection.mkdir(parents=True)
        # Debian's Python 3.11 has no filter for extractall; newer versions warn about its default
        subprocess.run(["tar", "--extract", "--file", str(packed)], cwd=collection, check=True)
        environment = {**os.environ, "HOME": home, "PATH": path}
        return subprocess.run(command, check=False, cwd=collection, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
