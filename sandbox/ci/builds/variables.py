# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters and variables of a build as strings."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote


def variables(build: dict[str, Any]) -> dict[str, str]:
    """Return the variables of a build: its parameters, `JOB_NAME`, `BUILD_NUMBER`, `BUILD_URL`."""
    found = {entry["name"]: _shown(entry) for entry in build["parameters"]}
    path = "".join(f"/job/{quote(part, safe='')}" for part in build["job"].split("/"))
    return {
        **found,
        "JOB_NAME": build["job"],
        "BUILD_NUMBER": str(build["number"]),
        "BUILD_URL": f"{build['base']}{path}/{build['number']}/",
    }


def _shown(entry: dict[str, Any]) -> str:
    if entry["type"] == "file":
        return str(entry["filename"])
    return "****" if entry["type"] == "password" else as_text(entry["value"])


def as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def filled(text: str, names: dict[str, str]) -> str:
    """Replace `${NAME}` in a string by the variable of that name."""
    return re.sub(r"\$\{(\w+)\}", lambda found: names.get(found[1], found[0]), text)
