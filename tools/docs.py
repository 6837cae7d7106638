# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the documentation site: the guides of `docs`, and a page for every plugin and role.

    python -m tools.docs [FOLDER]    write the site to FOLDER; the default is dist/docs

A warning is an error, including a broken link between pages. Links to other sites are not checked:
their content is outside the control of this project.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tools import tree

ROOT = Path(__file__).resolve().parent.parent
_DOCSITE = ROOT / "docs" / "docsite"
#: Pages outside the guides, copied so that links to them work.
_PAGES = (
    *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md"),
    *("SECURITY.md", "docs/**/*.md", "docs/pictures/*", "examples/**/*.md", "roles/*/README.md"),
)
_NAME = "delivery.toolchain"


class BrokenError(Exception):
    """The site cannot be built; the message is the output of the program."""


def build(folder: Path) -> Path:
    """Empty the folder, write the site into it, and return its first page."""
    with tempfile.TemporaryDirectory(prefix="toolchain-docs-") as name:
        work = Path(name)
        collections = work / "collections"
        tree.link_tree(collections)
        site = work / "site"
        site.mkdir(mode=0o755)
        programs = str(Path(sys.executable).parent)
        path = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
        environment = {**os.environ, **tree.environment(collections), "PATH": path}
        source = site / "rst"
        source.mkdir(mode=0o755)
        _pages_of_plugins(source, environment)
        _copy_guides(source)
        for file in ("conf.py", "index.rst", "scorer.js"):
            shutil.copy(_DOCSITE / file, source / file)
        shutil.copytree(_DOCSITE / "static", source / "static")
        shutil.rmtree(folder, ignore_errors=True)
        galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))
        command = ["sphinx-build", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html"]
        command += ["-D", f"html_title={_NAME} {galaxy['version']}"]
        _run([*command, str(source), str(folder)], environment)
    return folder / "index.html"


def _pages_of_plugins(source: Path, environment: dict[str, str]) -> None:
    options = ["--use-current", "--squash-hierarchy", "--fail-on-error", "--no-indexes"]
    command = ["antsibull-docs", "collection", *options, "--dest-dir", str(source / "plugins")]
    (source / "plugins").mkdir(mode=0o755)
    _run([*command, _NAME], environment)


def _copy_guides(source: Path) -> None:
    """Copy the pages with their paths in the repository, so that their links work."""
    for pattern in _PAGES:
        for page in sorted(ROOT.glob(pattern)):
            target = source / page.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, target)


def _run(command: list[str], environment: dict[str, str]) -> None:
    program = Path(sys.executable).parent / command[0]
    done = subprocess.run(
        [str(program), *command[1:]],
        check=False,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    if done.returncode != 0 or "WARNING" in said:
        raise BrokenError(f"{command[0]}: {said}")


def main(arguments: list[str]) -> int:
    """Build the site, and print its first page."""
    try:
        first = build(Path(arguments[0] if arguments else ROOT / "dist" / "docs").resolve())
    except BrokenError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The documentation begins with {first}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
