# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the documentation site: the guides of `docs`, and a page for every plugin and role.

    python -m tools.docs [FOLDER]    write the site to FOLDER; the default is dist/docs

A warning is an error, including a broken link between pages. Links to other sites are not checked:
their content is outside the control of this project.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from tools import check
from tools.tree import ROOT, link_tree

_NAME = "delivery.toolchain"
#: Pages outside the guides, copied so that links to them work.
_PAGES = (
    *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "README.md"),
    *("SECURITY.md", "docs/**/*.md", "docs/pictures/*", "examples/**/*.md", "roles/*/README.md"),
    "tests/acceptance/compose/README.md",
)
#: The sections to which a page of a plugin links at its top.
_SECTIONS = ("Examples", "Parameters", "Return Values")
_CONTENTS = re.compile(r"\.\. contents::\n(?: +:.*\n)+")
_ROLE_OF_INDEX = re.compile(r"^    (\w+)_role$", re.M)
_ROLE = re.compile(r":ansplugin:`\w+ role <delivery\.toolchain\.(\w+)#role>`")


def build(folder: Path) -> Path:
    """Empty the folder, write the site into it, and return its first page."""
    with tempfile.TemporaryDirectory(prefix="toolchain-docs-") as name:
        source, collections = Path(name, "source"), Path(name, "collections")
        link_tree(collections)
        environment = check.environment(collections)
        # antsibull-docs accepts no folder that others may write to
        source.mkdir()
        (source / "plugins").mkdir(mode=0o755)
        options = ["--use-current", "--squash-hierarchy", "--fail-on-error", "--no-indexes"]
        options += ["--dest-dir", str(source / "plugins")]
        _run(["antsibull-docs", "collection", *options, _NAME], environment)
        _rewrite_pages(source / "plugins")
        _copy_pages(source)
        shutil.rmtree(folder, ignore_errors=True)
        version = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))["version"]
        command = ["sphinx-build", "-q", "-W", "--keep-going", "-b", "html"]
        command += ["-c", str(ROOT / "docs" / "docsite"), "-D", f"html_title={_NAME} {version}"]
        _run([*command, str(source), str(folder)], environment)
    return folder / "index.html"


def _rewrite_pages(folder: Path) -> None:
    """Adapt the generated pages: the theme has its own table of contents, and the page of a role is
    its README.
    """
    for page in folder.glob("*_role.rst"):
        page.unlink()
    for page in folder.glob("*.rst"):
        text = page.read_text("utf-8")
        there = [title for title in _SECTIONS if f"\n{title}\n---" in text]
        text = _CONTENTS.sub(" · ".join(f"`{title}`_" for title in there) + "\n", text)
        text = _ROLE.sub(r":doc:`\1 role <../roles/\1/README>`", text)
        text = _ROLE_OF_INDEX.sub(r"    ../roles/\1/README", text)
        if "contents::" in text:
            raise SystemExit(f"{page.name} has a table of contents, which the theme rejects")
        page.write_text(text, "utf-8")


def _copy_pages(source: Path) -> None:
    """Copy the pages with their paths in the repository, so that their links work."""
    shutil.copy(ROOT / "docs" / "docsite" / "index.rst", source)
    for pattern in _PAGES:
        for page in sorted(ROOT.glob(pattern)):
            target = source / page.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(page, target)


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    program = str(Path(sys.executable).parent / command[0])
    done = subprocess.run(
        [program, *command[1:]],
        check=False,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0 or "WARNING" in done.stdout:
        raise SystemExit(f"{command[0]}: {done.stdout}")


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "docs"
    print(f"The documentation begins with {build(given.resolve())}")
