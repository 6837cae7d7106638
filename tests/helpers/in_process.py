# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a module inside the test process, without a playbook, in milliseconds."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
from collections.abc import Mapping
from typing import Any, cast

from ansible.module_utils.common.parameters import remove_values

from tests.unit.arguments import given_to_a_module

_PLUGINS = "ansible_collections.delivery.toolchain.plugins"


def run(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Run a module with these arguments and return the result that it prints."""
    module = loaded(name)
    printed = io.StringIO()
    with (
        given_to_a_module(arguments),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        module.main()
    result: dict[str, Any] = json.loads(printed.getvalue())
    # since ansible-core 2.22 its controller masks them in the invocation
    secrets = result.pop("_ansible_new_secrets", [])
    return cast("dict[str, Any]", remove_values(result, secrets))


def loaded(name: str) -> Any:
    """Import a module, and the library that it loads with its first request."""
    importlib.import_module(f"{_PLUGINS}.module_utils._lib.core.http.connections")
    return importlib.import_module(f"{_PLUGINS}.modules.{name}")
