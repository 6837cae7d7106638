# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of objects that several options identify, such as `project/module` [C9].

Different objects of a kind have different names: a finding, a sealed plan and a chosen finding of
`adopt` know an object by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Options with paths, whose slashes are part of the path.
_PATHS = ("folder", "job", "path")
_GROUP = "group:"


def object_name(key: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the name of an object. Options without a value are left out.

    :param key: options that identify the object; `group` says that `account` is a group
    """
    used = [option for option in key if option != "group"]
    parts = []
    for option in used:
        value = values.get(option)
        if value in (None, "") or (option == "domain" and value == "_"):
            continue
        text = "/".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        if len(used) > 1 and option in _PATHS:
            text = text.strip("/")
        elif len(used) > 1 and (option != key[-1] or option == "id"):
            text = text.replace("%", "%25").replace("/", "%2F")
        if option == "account":
            text = f"{_GROUP}{text}" if values.get("group") else text.replace(":", "%3A")
        parts.append(f"domain:{text}" if option == "domain" else text)
    return "/".join(parts)
