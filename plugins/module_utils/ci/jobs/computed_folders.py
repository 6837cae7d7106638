# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize folders and computed folders. A scan of the server fills a computed folder [ci-29]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
_COMPUTED = ("MultiBranchProject", "OrganizationFolder")


def is_folder(shown: Mapping[str, Any]) -> bool:
    """Return whether a JSON object describes a folder of any kind."""
    name = str(shown.get("_class"))
    return "jobs" in shown or name == FOLDER or name.endswith(_COMPUTED)


def is_computed(shown: Mapping[str, Any]) -> bool:
    """Return whether a JSON object describes a computed folder, such as a multibranch project.

    Only computed folders have the field `buildable`.
    """
    named = str(shown.get("_class")).endswith(_COMPUTED)
    return is_folder(shown) and (named or "buildable" in shown)
