# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `analysis_config` with both flavours of the sandbox: large lists, and its own export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.client import (
    AnalysisClient,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.configuration import (
    analysis_config,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.analysis.configuration.object_kinds import (
    KINDS,
    Catalogue,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from sandbox.client import Sandbox
from tests.helpers import configuration, connections
from tests.helpers.options import build
from tests.unit.stub import connection_to

Fresh = Callable[[str], Sandbox]
both_flavours = pytest.mark.parametrize("flavour", ["written", "real"])


def task_on(sandbox: Sandbox) -> Task:
    login = {"username": "analyst", "password": Secret(connections.LTOKEN)}
    connection = connection_to(sandbox.urls["analysis"], "analysis", **login)
    return Task(connection, print, read_only=False)


def plan_on(sandbox: Sandbox, **lists: Any) -> Plan:
    given = build(analysis_config.AnalysisConfigOptions, **lists)
    return analysis_config.AnalysisConfigOperation(task_on(sandbox), given).plan()


@both_flavours
def test_large_configuration_takes_one_read_per_kind_and_project(
    fresh: Fresh, flavour: str
) -> None:
    sandbox = fresh(flavour)
    sandbox.seed(configuration.seed())
    sandbox.settings("analysis", flavour=flavour)
    mark = sandbox.mark()
    plan = plan_on(sandbox, **configuration.lists())
    assert not plan.changed
    assert plan.result["counts"]["unchanged"] == configuration.OBJECTS
    logged = sandbox.requests("analysis", since=mark)
    # roles, groups and projects once; the written flavour rejects list_users first
    assert len(logged) == 3 + configuration.PROJECTS + (flavour == "written")
    assert not any(request["write"] for request in logged)


@both_flavours
def test_configuration_read_from_the_server_is_unchanged(fresh: Fresh, flavour: str) -> None:
    sandbox = fresh(flavour)
    catalogue = Catalogue(AnalysisClient(task_on(sandbox)))
    projects = list(catalogue.projects())
    lists = {
        kind.option: [
            entry
            for place in (projects if kind.in_project else [None])
            for entry in catalogue.entries(kind, place)
        ]
        for kind in KINDS
    }
    assert all(lists.values())
    purge = [kind.option for kind in KINDS if kind.made]
    plan = plan_on(sandbox, **lists, purge=purge)
    assert plan.result["plan"] == []
