# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the documentation site: the guides of `docs`, and a page for every plugin and role.

    python -m tools.docs [FOLDER]    write the site to FOLDER; the default is dist/docs

A warning is an error, including a broken link between pages. Links to other sites are not checked:
their content is outside the control of this project.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import yaml

from tools import check, module_pages
from tools.tree import ROOT, link_tree

_NAME = "delivery.toolchain"
_SITE = ROOT / "docs" / "docsite"
#: The files of the site: what users read. A link to any other file leads to the repository.
_PAGES = (
    *("CHANGELOG.md", "README.md", "docs/*.md", "docs/pictures/*", "examples/**/*.md"),
    "roles/*/README.md",
)
FOR_CONTRIBUTORS = ("architecture", "contract", "glossary", "requests")
_LINK = re.compile(r"\]\((?!\w+:)([^)#]+)(#[^)]*)?\)")
#: The sections to which a page of a plugin links at its top.
_SECTIONS = ("Examples", "Parameters", "Return Values")
_CONTENTS = re.compile(r"\.\. contents::\n(?: +:.*\n)+")
_TREE = re.compile(r"^\.\. toctree::\n(?:(?: {4}.*)?\n)+", re.M)
_ROLE = re.compile(r":ansplugin:`\w+ role <delivery\.toolchain\.(\w+)#role>`")
_BLOCK = re.compile(r"(^```.*?^```$|^#[^\n]*$)", re.M | re.S)
_MODULES = {path.stem for path in (ROOT / "plugins" / "modules").glob("[a-z]*.py")}
_ROLES = {path.name for path in (ROOT / "roles").iterdir()}
#: The name of a module outside of a link, unless a role has the same name.
_CODE = re.compile(rf"(?<!\[)`({'|'.join(sorted(_MODULES - _ROLES))})`(?!\])")


def build(folder: Path) -> Path:
    """Empty the folder, write the site into it, and return its first page."""
    collection = yaml.safe_load((ROOT / "galaxy.yml").read_text("utf-8"))
    keywords = yaml.safe_load((_SITE / "keywords.yml").read_text("utf-8"))
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
        module_pages.arrange(source / "plugins")
        _copy_pages(source, f"{collection['repository']}/blob/main", keywords)
        # ranks the results of a search
        scorer, script = Path(name, "scorer.js"), (_SITE / "scorer.js").read_text("utf-8")
        scorer.write_text(f"const KEYWORDS = {json.dumps(keywords)};\n{script}", "utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        command = ["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "-c", str(_SITE)]
        command += ["-D", f"html_title={_NAME} {collection['version']}"]
        command += ["-D", f"html_search_scorer={scorer}", str(source), str(folder)]
        _run(command, environment)
    return folder / "index.html"


def _rewrite_pages(folder: Path) -> None:
    """Adapt the generated pages: the theme has its own table of contents, the page of a role is its
    README, and the side bar of every page would list all plugins, as their index does.
    """
    for page in folder.glob("*_role.rst"):
        page.unlink()
    for page in folder.glob("*.rst"):
        text = page.read_text("utf-8")
        there = [f"`{title}`_" for title in _SECTIONS if f"\n{title}\n---" in text]
        text = _TREE.sub("", _CONTENTS.sub(" · ".join(there) + "\n", text))
        text = _ROLE.sub(r":doc:`\1 role <../roles/\1/README>`", text)
        if "contents::" in text:
            raise SystemExit(f"{page.name} has a table of contents, which the theme rejects")
        page.write_text(text, "utf-8")


def _copy_pages(source: Path, repository: str, keywords: Mapping[str, str]) -> None:
    """Copy the pages with their paths in the repository, so that their links work. Names of modules
    become links, and links to other files lead to the repository.

    :param keywords: words to find a page by, separated by blanks, by the path of the page
    """
    shutil.copy(_SITE / "index.rst", source)
    internal = {ROOT / "docs" / f"{name}.md" for name in FOR_CONTRIBUTORS}
    pages = {page for pattern in _PAGES for page in ROOT.glob(pattern)} - internal

    def link(page: Path, found: re.Match[str]) -> str:
        file = (page.parent / found[1]).resolve()
        if file in pages or not file.exists():
            return found[0]
        return f"]({repository}/{file.relative_to(ROOT)}{found[2] or ''})"

    for page in sorted(pages):
        target = source / page.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copy(page, target)
            continue
        module = rf"[`\1`]({os.path.relpath(ROOT, page.parent)}/plugins/\1_module.rst)"
        parts = _BLOCK.split(_LINK.sub(partial(link, page), page.read_text("utf-8")))
        parts[::2] = (_CODE.sub(module, part) for part in parts[::2])
        text = "".join(parts)
        if words := keywords.get(str(page.relative_to(ROOT).with_suffix(""))):
            meta = {"html_meta": {"keywords": words.replace(" ", ", ")}}
            text = f"---\n{yaml.safe_dump({'myst': meta}, width=1000)}---\n\n{text}"
        target.write_text(text, "utf-8")


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    """Run a program of this environment. A warning is an error."""
    program = [str(Path(sys.executable).parent / command[0]), *command[1:]]
    out, error = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(
        program, check=False, env=environment, stdout=out, stderr=error, text=True
    )
    if done.returncode != 0 or "WARNING" in done.stdout:
        raise SystemExit(f"{command[0]}: {done.stdout}")


if __name__ == "__main__":
    given = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist" / "docs"
    print(f"The documentation begins with {build(given.resolve())}")
