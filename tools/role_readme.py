# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the README of each role from its argument specs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

from tools import role_options
from tools.tree import ROOT

_NOTE = "This file is written from `meta/argument_specs.yml` by `python -m tools.generated`."
_MARKUP = re.compile(r"\b([A-Z])\(([^)]*)\)")


def files() -> dict[Path, str]:
    """Return the path and content of every README."""
    found = {}
    for file in ROOT.glob("roles/*/meta/argument_specs.yml"):
        lines: list[str] = []
        role = file.parts[-3]
        for entry_point, spec in _specs(role).items():
            title = f"# delivery.toolchain.{role}"
            lines += [title if entry_point == "main" else f"{title}: {entry_point}", ""]
            lines += [f"{spec['short_description']}.", ""]
            lines += [f"{_markdown(text)}\n" for text in texts(spec["description"])]
            lines += ["| Option | Type | Default | Meaning |", "|---|---|---|---|"]
            lines += [*_rows(spec["options"], ""), ""]
        lines += [_NOTE, ""]
        found[ROOT / "roles" / role / "README.md"] = "\n".join(lines)
    return found


def options(role: str) -> dict[str, Any]:
    """Return the options of a role, by their name."""
    found: dict[str, Any] = _specs(role)["main"]["options"]
    return found


def _specs(role: str) -> dict[str, Any]:
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
    is_written = path == role_options.FILE
    text = role_options.text() if is_written else path.read_text(encoding="utf-8")
    specs: dict[str, Any] = yaml_load(text)["argument_specs"]
    return specs


def _rows(options: Mapping[str, Mapping[str, Any]], prefix: str) -> Iterator[str]:
    for name, option in options.items():
        kind = option["type"] + (f" of {option['elements']}" if "elements" in option else "")
        default = ""
        if option.get("default") is not None:
            given = yaml.safe_dump(option["default"], default_flow_style=True, width=10_000)
            default = f"`{given.strip().removesuffix('...').strip()}`"
        elif option.get("required"):
            default = "**required**"
        meaning = " ".join(texts(option["description"]))
        if "choices" in option:
            meaning += f" One of {', '.join(f'`{choice}`' for choice in option['choices'])}."
        yield f"| `{prefix}{name}` | {kind} | {default} | {_markdown(meaning)} |"
        inner = f"{prefix}{name}[]." if option["type"] == "list" else f"{prefix}{name}."
        yield from _rows(option.get("options", {}), inner)


def texts(description: str | list[str]) -> list[str]:
    """Return the paragraphs of a description."""
    return [description] if isinstance(description, str) else description


def _markdown(text: str) -> str:
    return _MARKUP.sub(lambda found: f"`{found.group(2)}`", text).replace("|", "\\|")
