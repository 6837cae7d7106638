# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve the folder of the desired state, and the variables that its files refer to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils import ansible_internals
from ansible_collections.delivery.toolchain.plugins.plugin_utils.report import writing

from .desired_state import DesiredStateError, Reading


def path_of(name: str, variables: Mapping[str, Any]) -> Path:
    """Return the absolute path of a folder. Raises DesiredStateError if it is in the collection."""
    folder = writing.resolved(name, variables)
    if writing.is_in_collection(folder):
        raise DesiredStateError(
            f"{folder} is in the installed collection: use a folder of your own; in an imported"
            " playbook use inventory_dir instead of playbook_dir"
        )
    return folder


def reading(lookup: LookupBase, variables: Mapping[str, Any]) -> Reading:
    """Return the functions with which a lookup loads files and reads variables."""
    template = ansible_internals.template_of(lookup)

    def variable(name: str) -> Any:
        return template(variables[name]) if name in variables else None

    return Reading(ansible_internals.load_of(lookup), variable)
