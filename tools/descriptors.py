# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptors of the modules of the checkout."""

from __future__ import annotations

from tools import tree

tree.make_importable()

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.descriptors import (
    descriptor_of,
)

_MODULES = sorted(path.stem for path in tree.ROOT.glob("plugins/modules/*.py"))
#: Module to its descriptor.
DESCRIPTORS = {module: descriptor_of(module) for module in _MODULES}
