# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the variables of the playbook `awx_setup`, also those of the templates of sliced jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


class _Loader(yaml.SafeLoader):
    """Load strings that Ansible must not template as plain strings."""


_Loader.add_constructor("!unsafe", lambda _loader, node: str(node.value))


def load(file: str) -> Any:
    """Read a YAML file of Ansible."""
    return yaml.load((ROOT / file).read_text(encoding="utf-8"), Loader=_Loader)


_SETUP: dict[str, Any] = load("playbooks/vars/awx_setup.yml")
#: The template of the first server of a slice, which names its report.
FIRST_HOST: str = _SETUP["awx_setup_slice"]


def sliced(name: str) -> dict[str, Any]:
    """Return the variables of the sliced template of a playbook."""
    found: dict[str, Any] = _SETUP["awx_setup_extra_variables"][name]
    return found
