# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that modules return, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import reported
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.finding import (
    ReportingFailure,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.descriptors import (
    operation_of,
)
from tests.helpers.options import build
from tests.unit.stub import connection_to


def reporting(
    module: str, values: Mapping[str, Any], options: Mapping[str, Any], *, data: Any = None
) -> dict[str, Any]:
    """Return a result with the findings of its module.

    :param values: return values
    :param data: data of the plan
    """
    kind = operation_of(module)
    settings = {"dialect": "jfrog", "vendor": "acme"}
    service = kind.descriptor.service_name
    connection = connection_to("http://127.0.0.1:9", service, settings=settings)
    file, name = import_module(kind.__module__), kind.__name__.removesuffix("Operation")
    options_type = getattr(file, f"{name}Options")
    operation = kind(Task(connection, print, read_only=True), build(options_type, **options))
    if values.get("failed"):
        failing = isinstance(operation, ReportingFailure)
        found = operation.findings_of_failure(values) if failing else []
    else:
        values = {"changed": False, **values}
        plan = Plan({}, {}, data=data)
        found = reported.findings_of(operation, plan, values, options, ())
    return {**values, "findings": reported.rows(found, kind.descriptor.kind)}
