# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the documentation site: it contains every guide, and a broken link is an error."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs import FOR_CONTRIBUTORS

ROOT = Path(__file__).resolve().parents[3]
DOCSITE = ROOT / "docs" / "docsite"
#: Modules, lookups and filters, as named in the guides.
PLUGINS = {
    path.stem
    for kind in ("modules", "lookup", "filter")
    for path in (ROOT / "plugins" / kind).glob("*.py")
}
#: Options of modules, and keys in their documentation.
OPTIONS = {
    name
    for kind in ("modules", "doc_fragments")
    for path in (ROOT / "plugins" / kind).rglob("*.py")
    for name in re.findall(r"^ +(\w+):(?: &\w+)?$", path.read_text(encoding="utf-8"), re.MULTILINE)
}
KINDS = (
    *("auth", "permission", "not_found", "conflict", "rejected", "rate_limited", "server"),
    *("network", "timeout", "protocol", "failed", "waiting", "invalid"),
)


def _build(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Build a site of two pages with the configuration of the real site."""
    source = folder / "source"
    (source / "static").mkdir(parents=True)
    (source / "conf.py").write_bytes((DOCSITE / "conf.py").read_bytes())
    (source / "index.md").write_text(text, encoding="utf-8")
    (source / "other.md").write_text(
        "---\norphan: true\n---\n# Other\n\n## Part\n", encoding="utf-8"
    )
    program = str(Path(sys.executable).parent / "sphinx-build")
    command = [program, "-q", "-W", "-b", "dummy", str(source), str(folder / "site")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("link", ["missing.md", "other.md#missing"])
def test_broken_link_is_an_error(tmp_path: Path, link: str) -> None:
    done = _build(tmp_path, f"# Title\n\n[one]({link})\n")
    assert done.returncode != 0
    assert "missing" in done.stderr


def test_every_guide_is_in_the_site() -> None:
    index = (DOCSITE / "index.rst").read_text(encoding="utf-8")
    guides = {f"docs/{path.stem}" for path in (ROOT / "docs").glob("*.md")}
    guides -= {f"docs/{name}" for name in FOR_CONTRIBUTORS}
    assert guides - set(re.findall(r"^   (docs/\S+)$", index, re.MULTILINE)) == set()


def test_plugins_named_in_the_migration_guide_exist() -> None:
    """Verify that the modules, lookups and filters named in the second column of the
    tables exist.
    """
    found = set()
    for line in (ROOT / "docs/migration.md").read_text(encoding="utf-8").splitlines():
        cells = line.strip("|").split("|")
        if line.startswith("|") and len(cells) > 1:
            found |= set(re.findall(r"`((?:[a-z]+_)+[a-z]+)`", cells[1]))
    assert found - OPTIONS - PLUGINS - {"module_defaults"} == set()
    assert len(found) > 20


def test_troubleshooting_explains_every_kind() -> None:
    text = (ROOT / "docs/troubleshooting.md").read_text(encoding="utf-8")
    kinds, messages = text.split("## Messages")
    assert tuple(re.findall(r"^\| `(\w+)` \|", kinds, re.MULTILINE)) == KINDS
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "plugins").rglob("*.py"))
    shown = re.findall(r"^\| `(.+?)` \|", messages, re.MULTILINE)
    assert [message for message in shown if message not in sources] == []
    assert len(shown) > 10
