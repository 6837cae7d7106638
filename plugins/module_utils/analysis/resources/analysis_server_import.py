# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of another server ([W4.5]: C(import_server_configuration))."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.address import require_address
from ...core.errors import invalid
from ...core.module.task import Task
from ...core.plan import Plan
from ...core.secret import clean_url, secrets_of_url
from ..client import AnalysisClient, Call
from .import_polling import Import, ImportPolling, pace_of


class ServerImportOperation:
    """The task of C(analysis_server_import): started once, and waited for.

    Nothing on the server tells whether it has these settings already: every run is a change.
    """

    def __init__(self, task: Task) -> None:
        params = task.params
        for name in ("source_url", "source_username"):
            if params[name].strip() == "":
                raise invalid(f"{name} must not be empty")
        self._task, self._waits = task, params["wait"]
        for secret in secrets_of_url(params["source_url"]):
            task.hide(secret)
        require_address(params["source_url"], "in source_url")
        shown = clean_url(params["source_url"])
        source = {
            "sourceURL": params["source_url"],
            "sourceAdmin": params["source_username"],
            "sourcePassword": params["source_password"],
        }
        title = f"importing the settings of the server {shown}"
        wanted = Import(title, Call("import_server_configuration", source))
        self._imports = ImportPolling(AnalysisClient(task), wanted, pace_of(params))
        self._source = shown

    def plan(self) -> Plan:
        return Plan({}, {"imported_from": self._source}, "run").returning(status=[])

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self._imports.start()
        status = self._imports.finish() if self._waits else []
        if self._waits and not status:
            self._task.warn(
                f"The server shows nothing of the import from {self._source}: whether it went well"
                " is not known."
            )
        return {"status": status}
