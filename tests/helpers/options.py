# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the options of an operation for a test: user input, checked and completed as in a task."""

from __future__ import annotations

from typing import Any, TypeVar

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.input_check import (
    ansible_spec,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    argument_spec,
    constraints,
    parse,
)

Given = TypeVar("Given")


def build(options: type[Given], **given: Any) -> Given:
    """Return the typed options for user input; defaults and types come from the argument spec."""
    kind: type = options
    present = {name: value for name, value in given.items() if value is not None}
    spec = ansible_spec(argument_spec(kind))
    checked = ArgumentSpecValidator(spec, **constraints(kind)).validate(present)
    assert not checked.error_messages, checked.error_messages
    return parse(options, checked.validated_parameters)
