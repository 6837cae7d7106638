# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the secrets in a configuration as code, and mask them [ci-43]."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...core.module.task import Task
from ...core.secret import is_secret_name, mask_free_text, members_of, secrets_of_url
from .list_items import label_of

_ENCRYPTED = re.compile(r"\{AQAA[A-Za-z0-9+/]{8,}={0,2}\}")
_SECRET = "(secret)"
#: Shorter secrets occur in other strings by chance.
_SHORTEST_SECRET = 4


def hide_secrets(task: Task, *configurations: Any) -> None:
    """Mask the secrets of configurations in all output, except those that are a part of a path."""
    words = {word for value in configurations for word in _path_words(value)}
    for secret in {text for value in configurations for text in _secrets_in("", value)}:
        if len(secret) >= _SHORTEST_SECRET and not any(secret in word for word in words):
            task.hide(secret)


def shown_value(name: str, value: Any) -> Any:
    """Return a value with masked secrets."""
    if isinstance(value, Mapping):
        return {key: shown_value(member, item) for key, member, item in members_of(value)}
    if isinstance(value, list):
        return [shown_value(name, item) for item in value]
    if value in (None, "") or isinstance(value, bool):
        return value
    if is_secret_name(name) or is_encrypted(value):
        return _SECRET
    return mask_free_text(value) if isinstance(value, str) else value


def is_encrypted(value: Any) -> bool:
    return isinstance(value, str) and _ENCRYPTED.fullmatch(value.strip()) is not None


def _secrets_in(name: str, value: Any) -> Iterator[str]:
    """Yield the strings whose names are those of secrets, and the secrets in addresses."""
    if isinstance(value, Mapping):
        for _key, member, item in members_of(value):
            yield from _secrets_in(member, item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets_in(name, item)
    elif isinstance(value, str):
        yield from [value] if is_secret_name(name) else secrets_of_url(value)


def _path_words(value: Any) -> Iterator[str]:
    """Yield the keys and the names of items, of which paths consist."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _path_words(item)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, Mapping):
                yield label_of(item) or ""
            yield from _path_words(item)
