# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptors of the modules of the checkout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tools import tree

if TYPE_CHECKING:
    from ansible_collections.delivery.toolchain.plugins.module_utils.core.module.descriptor import (
        Descriptor,
    )


def _read() -> Mapping[str, Descriptor]:
    tree.make_importable()
    from ansible_collections.delivery.toolchain.plugins.plugin_utils.descriptors import (
        descriptor_of,
    )

    modules = sorted((tree.ROOT / "plugins" / "modules").glob("*.py"))
    return {path.stem: descriptor_of(path.stem) for path in modules}


#: Module to its descriptor.
DESCRIPTORS = _read()
