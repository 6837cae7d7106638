# SPDX-License-Identifier: GPL-3.0-or-later
"""The descriptors of all modules of the checkout."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.delivery.toolchain.plugins.plugin_utils.descriptors import descriptor_of

_MODULES = Path(__file__).resolve().parents[2] / "plugins" / "modules"

#: Module to its descriptor.
DESCRIPTORS = {path.stem: descriptor_of(path.stem) for path in sorted(_MODULES.glob("*.py"))}
