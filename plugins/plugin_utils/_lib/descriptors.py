# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the descriptor of a module by its name."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ...module_utils._lib.core.module.descriptor import Descriptor

_MODULES = "ansible_collections.delivery.toolchain.plugins.modules"


@cache
def operation_of(module: str) -> type[Any]:
    """Return the class `<Module>Operation`.

    The import is cheap, because the action has imported the module before Ansible forks workers.

    :raises ImportError: if the collection has no such module
    """
    operation_file = getattr(import_module(f"{_MODULES}.{module}"), module)
    name = "".join(word.capitalize() for word in module.split("_")) + "Operation"
    operation: type[Any] = getattr(operation_file, name)
    return operation


def descriptor_of(module: str) -> Descriptor:
    """Return the `descriptor` of `<Module>Operation`."""
    descriptor: Descriptor = operation_of(module).descriptor
    return descriptor
