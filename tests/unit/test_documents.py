# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that every YAML block of the documentation loads: users copy them."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.yaml import SafeLoader

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (
    *("changelogs", "docs", "examples", "extensions", "playbooks", "plugins", "roles"),
    *("sandbox", "tests", "tools"),
)
#: A fence of Markdown, or a literal block of reStructuredText.
FENCE = re.compile(r"^( *)(`{3,}|~{3,}) *ya?ml\b[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^( *)\.\. code-block:: *ya?ml\n((?:\1 +[^\n]*\n|\s*\n)+)", re.MULTILINE)
STRINGS = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
#: Files of Python without a match have no block: most files, whose parse takes long.
LIKELY = re.compile(rf"^({'|'.join(STRINGS)})\b|`{{3}}|~{{3}}|code-block", re.MULTILINE)


class Loader(SafeLoader):
    """A loader that accepts the tags of Ansible, and no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _value in node.value if key.value != "<<"]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise yaml.constructor.ConstructorError(problem=f"{twice} twice")
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


Loader.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def _blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the YAML blocks of a file with their line, also those in strings of Python."""
    text = path.read_text(encoding="utf-8")
    texts = [(0, text)]
    if path.suffix == ".py" and not LIKELY.search(text):
        return
    if path.suffix == ".py":
        texts = []
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if node.targets[0].id in STRINGS and isinstance(node.value, ast.Constant):
                    yield node.lineno, str(node.value.value)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                texts.append((getattr(node, "lineno", 0), ast.get_docstring(node) or ""))
    for begin, part in texts:
        for pattern in (FENCE, BLOCK):
            for found in pattern.finditer(part):
                line = begin + part.count("\n", 0, found.start()) + 1
                yield line, textwrap.dedent(found[found.re.groups])


@pytest.mark.parametrize("ending", ["md", "rst", "py"])
def test_every_yaml_block_loads(ending: str) -> None:
    files = [*ROOT.glob(f"*.{ending}")]
    for folder in FOLDERS:
        files += (ROOT / folder).rglob(f"*.{ending}")
    blocks, wrong = 0, []
    for path in files:
        for line, block in _blocks(path):
            blocks += 1
            try:
                list(yaml.load_all(block, Loader))
            except yaml.YAMLError as error:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {error}")
    assert wrong == []
    assert blocks >= {"md": 60, "rst": 0, "py": 150}[ending]


@pytest.mark.parametrize("text", ["a: 1 b: 2\n", "a: 1\na: 2\n"])
def test_joined_and_repeated_lines_do_not_load(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.md"
    path.write_text(
        f"- item\n\n  ```yaml\n  {text.strip().replace(chr(10), chr(10) + '  ')}\n  ```\n"
    )
    ((line, block),) = _blocks(path)
    assert (line, block) == (3, text)
    with pytest.raises(yaml.YAMLError):
        yaml.load(block, Loader)
