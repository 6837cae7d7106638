# SPDX-License-Identifier: GPL-3.0-or-later
"""Recognize folders, and computed folders, whose jobs the server finds by a scan [ci-29]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
_COMPUTED = ("MultiBranchProject", "OrganizationFolder")


def is_folder(shown: Mapping[str, Any]) -> bool:
    """Return whether an object of the server is a folder of any kind, whatever fields it shows."""
    name = str(shown.get("_class"))
    return "jobs" in shown or name == FOLDER or name.endswith(_COMPUTED)


def is_computed(shown: Mapping[str, Any]) -> bool:
    """Return whether it is a multibranch project, an organization folder or similar: only these
    folders show `buildable`.
    """
    named = str(shown.get("_class")).endswith(_COMPUTED)
    return is_folder(shown) and (named or "buildable" in shown)
