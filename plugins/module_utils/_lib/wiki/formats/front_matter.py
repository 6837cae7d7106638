# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the front matter of a file: YAML between two lines of dashes, or TOML between `+++`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.common.yaml import HAS_YAML

from ...core.errors import excerpt, invalid
from ...core.yaml_text import UnreadableYaml, parse_yaml

_BLOCK = re.compile(
    r"\ufeff?---[ \t]*\r?\n(?P<yaml>(?:(?!---|\.\.\.).*\n)*)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
)
_TOML = re.compile(r"\ufeff?\+\+\+[ \t]*\r?\n(?P<toml>(?:(?!\+\+\+).*\n)*)\+\+\+[ \t]*(?:\r?\n|\Z)")
_LINE = re.compile(r" \(at line (\d+), column \d+\)|$")
_QUOTES = "put it in quotation marks"
#: Words for values that generators of sites also read from strings.
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
}


@dataclass(frozen=True)
class Block:
    """Place of front matter in YAML in a file.

    :param values: values of its YAML, which is `source[start:end]`
    :param content: index of the first character below
    """

    values: Mapping[Any, Any]
    start: int
    end: int
    content: int


@dataclass(frozen=True)
class FrontMatter:
    """Parsed front matter.

    `text`: the content below, after empty lines that preserve the line numbers of the file.
    `attachments`: path by attachment name; None for an attachment that is not managed.
    `draft`: whether the page is not to be published.
    """

    text: str
    title: str | None = None
    labels: list[str] | None = None
    attachments: dict[str, str | None] = field(default_factory=dict)
    draft: bool = False


def block_of(source: str) -> Block | None:
    """Find front matter in YAML. A block that is not a YAML mapping is content.

    Raises `invalid` if it is not valid YAML.
    """
    found = _BLOCK.match(source)
    if found is None:
        return None
    if not HAS_YAML:
        raise invalid("front matter requires the Python library PyYAML")
    try:
        values = parse_yaml(found["yaml"])
    except UnreadableYaml as error:
        line = (error.line or 1) + 1
        raise invalid(f"line {line}: cannot parse the front matter: {error}") from None
    return Block(values, *found.span("yaml"), found.end()) if isinstance(values, Mapping) else None


def split_front_matter(source: str) -> FrontMatter:
    """Split front matter and content.

    Raises `invalid` if it is not valid YAML or TOML, or has an invalid title, labels, attachments
    or draft.
    """
    block = block_of(source) or _toml_of(source)
    if block is None:
        return FrontMatter(source)
    values = block.values
    text = "\n" * source.count("\n", 0, block.content) + source[block.content :]
    title = values.get("title")
    is_given = title is not None and (not isinstance(title, str) or title.strip() != "")
    shown = _text("title", title) if is_given else None
    return FrontMatter(text, shown, _labels(values), _attachments(values), _is_draft(values))


def _toml_of(source: str) -> Block | None:
    """Find front matter in TOML. Raises `invalid` if it is not valid TOML."""
    found = _TOML.match(source)
    if found is None:
        return None
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            values = tomllib.loads(found["toml"].replace("\r\n", "\n"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            at = _LINE.search(str(error))
            line = int(at[1]) + 1 if at is not None and at[1] else 1
            reason = _LINE.sub("", str(error))
            raise invalid(f"line {line}: cannot parse the front matter: {reason}") from None
        return Block(values, *found.span("toml"), found.end())
    raise invalid("front matter in TOML requires Python 3.11: use YAML between lines of ---")


def _is_draft(values: Mapping[Any, Any]) -> bool:
    """Return whether `draft` is true, or `published` is false. `published` may also be a date."""
    draft, published = values.get("draft"), values.get("published")
    if isinstance(draft, str) and draft.strip():
        draft = _BOOLEANS.get(draft.strip().lower(), draft)
        if isinstance(draft, str):
            raise invalid(
                f"line 1: draft in the front matter is {excerpt(draft)}, not true or false"
            )
    if isinstance(published, str):
        published = _BOOLEANS.get(published.strip().lower(), True)
    return bool(draft) or published is False


def _labels(values: Mapping[Any, Any]) -> list[str] | None:
    labels = values.get("labels")
    if labels is None:
        return None
    entries = labels.split(",") if isinstance(labels, str) else labels
    if not isinstance(entries, list):
        raise invalid("line 1: labels in the front matter must be a list of strings")
    return [_text(f"labels[{index}]", entry) for index, entry in enumerate(entries)]


def _attachments(values: Mapping[Any, Any]) -> dict[str, str | None]:
    value = values.get("attachments")
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise invalid(
            "line 1: attachments in the front matter must be a mapping of names to files or null"
        )
    found: dict[str, str | None] = {}
    for name, path in value.items():
        text = _text("a name in attachments", name)
        found[text] = None if path is None else _text(f"attachments['{text}']", path)
    return found


def _text(name: str, value: Any) -> str:
    """Return a string or an integer as a string. Raises `invalid` for other types.

    YAML would read the title 1.10 as the number 1.1, and `no` as a boolean.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise invalid(
            f"line 1: {name} in the front matter is {excerpt(value)}, not a string: {_QUOTES}"
        )
    if not value.strip():
        raise invalid(f"line 1: {name} in the front matter is empty")
    return value.strip()
