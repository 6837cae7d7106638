# SPDX-License-Identifier: GPL-3.0-or-later
"""Show changes of files as a patch, with the secrets of the files masked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

import yaml

from ...module_utils._lib.ci.jobs import configuration_file
from ...module_utils._lib.core.free_text import mask_free_text
from ...module_utils._lib.core.secret import MASK, is_secret_name

_CONTEXT = 3
_LINE = re.compile(r"[^\n]+")
_PRIVATE_KEY = re.compile(r"(BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----)([\s\S]*?)(?=-----END|\Z)")
_WORDS = re.compile(r"[^\s][^\n]*")
#: Tags of values that are no secrets, or are encrypted.
_NO_SECRETS = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:bool", "!vault")
#: Keys with the name of a variable, whose value is in `value`.
_NAMES = ("key", "name", "id")


def patch(name: str, before: str | None, after: str | None) -> str:
    """Return the changes of a file as a unified diff. `None` stands for a missing file.

    Lines are compared as they are and shown with their secrets masked.
    """
    old, new = _lines(before), _lines(after)
    groups = SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    shown_old, shown_new = _masked(before), _masked(after)
    parts: list[str] = []
    for group in groups:
        (_kind, one, _two, three, _four), (_last, _one, two, _three, four) = group[0], group[-1]
        parts.append(f"@@ -{_range(one, two)} +{_range(three, four)} @@\n")
        for kind, one, two, three, four in group:
            if kind == "equal":
                parts += [f" {line}" for line in shown_old[one:two]]
                continue
            parts += [f"-{line}" for line in shown_old[one:two]]
            parts += [f"+{line}" for line in shown_new[three:four]]
    if not parts:
        return ""
    heads = [
        f"{sign} {'/dev/null' if text is None else f'{side}/{name}'}\n"
        for sign, side, text in (("---", "a", before), ("+++", "b", after))
    ]
    ended = [
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in parts
    ]
    return "".join([*heads, *ended])


def _range(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1}" if length == 1 else f"{start + bool(length)},{length}"


def _lines(text: str | None) -> list[str]:
    return [line for line in re.split(r"(?<=\n)", text or "") if line]


def _masked(text: str | None) -> list[str]:
    """Return the lines of a file with the secrets masked."""
    masked = _PRIVATE_KEY.sub(
        lambda key: key[1] + _LINE.sub(MASK, key[2]), _masked_document(text or "")
    )
    lines, whole = _lines(masked), _lines(mask_free_text(masked))
    # a secret of several lines is masked as one
    return whole if len(whole) == len(lines) else [mask_free_text(line) for line in lines]


def _masked_document(text: str) -> str:
    """Mask the secrets in XML or YAML. The lines stay."""
    is_xml = text.lstrip("\ufeff \t\r\n").startswith("<")
    return configuration_file.masked(text) if is_xml else _masked_yaml(text)


def _masked_yaml(text: str) -> str:
    """Mask the values with the names of secrets, and the secrets in XML. The lines stay."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return text
    # aliases repeat a node
    nodes = {node.start_mark.index: (node, name) for node, name in _scalars(root, "")}
    for start, (node, name) in sorted(nodes.items(), reverse=True):
        raw, value = text[start : node.end_mark.index], str(node.value)
        if is_secret_name(name) and value and node.tag not in _NO_SECRETS:
            shown = _without_value(raw)
        elif "\n" in value or value.startswith("<"):
            shown = _with_value(raw, value, _masked_document(value))
        else:
            continue
        text = f"{text[:start]}{shown}{text[start + len(raw) :]}"
    return text


def _without_value(raw: str) -> str:
    """Return the text of a scalar with its value masked. The indicators of a block stay."""
    if raw[:1] in ("|", ">", "!", "&"):
        head, line, body = raw.partition("\n")
        return f"{head if line else MASK}{line}{_WORDS.sub(MASK, body)}"
    return _LINE.sub(MASK, raw)


def _with_value(raw: str, value: str, masked: str) -> str:
    """Return the text of a scalar with another value of as many lines."""
    if masked == value:
        return raw
    if raw.startswith("|"):
        head, *lines = raw.split("\n")
        pairs = zip_longest(lines, value.split("\n"), masked.split("\n"), fillvalue="")
        shown = [line.replace(old, new) if old else line for line, old, new in pairs]
        return "\n".join([head, *shown[: len(lines)]])
    for form in (str, _quoted):
        if form(value) in raw:
            return raw.replace(form(value), form(masked))
    return _without_value(raw)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


def _scalars(node: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Yield each scalar with the name that decides whether it is a secret."""
    if isinstance(node, yaml.ScalarNode):
        yield node, name
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _scalars(item, name)
    elif isinstance(node, yaml.MappingNode):
        named = {key.value: value.value for key, value in node.value}
        variable = next((named[each] for each in _NAMES if isinstance(named.get(each), str)), "")
        for key, value in node.value:
            yield from _scalars(value, variable if key.value == "value" else str(key.value))
