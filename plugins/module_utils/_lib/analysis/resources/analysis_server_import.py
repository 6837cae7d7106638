# SPDX-License-Identifier: GPL-3.0-or-later
"""Import the settings of another server: `analysis_server_import` [W4.5].

Action: `import_server_configuration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from ...core.address import require_address
from ...core.module.descriptor import Descriptor, writes
from ...core.module.task import Task
from ...core.module.typed_options import Option
from ...core.plan import Plan
from ...core.secret import clean_url, secrets_of_url
from ..client import AnalysisClient, Call
from ..service import SERVICE
from .import_polling import Import, ImportPolling, ImportWaitOptions, state_of


@dataclass(frozen=True)
class AnalysisServerImportOptions(ImportWaitOptions):
    """The options of `analysis_server_import`."""

    source_url: str
    source_username: str
    source_password: Annotated[str | None, Option(secret=True)] = field(default=None, repr=False)


class AnalysisServerImportOperation:
    """Starts the import once, and waits for it.

    Every run is a change, because the server does not report whether it already has the settings.
    """

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"import": writes(unforeseen=("manage_roles",))},
        kind="server",
        name="{source_url}",
    )

    def __init__(self, task: Task, options: AnalysisServerImportOptions) -> None:
        self._task, self._waits = task, options.wait
        for secret in secrets_of_url(options.source_url):
            task.hide(secret)
        require_address(options.source_url, "in source_url")
        self._source = clean_url(options.source_url)
        source = {
            "sourceURL": options.source_url,
            "sourceAdmin": options.source_username,
            "sourcePassword": options.source_password,
        }
        title = f"importing the settings of the server {self._source}"
        wanted = Import(title, Call("import_server_configuration", source))
        self._polling = ImportPolling(AnalysisClient(task), wanted, options.interval())

    def plan(self) -> Plan:
        return Plan({}, {"imported_from": self._source}, "run").with_result(status=[])

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        self._polling.start()
        status = self._polling.finish() if self._waits else []
        if self._waits and {state_of(record) for record in status} != {"done"}:
            self._task.warn(
                f"it is unknown whether the import from {self._source} succeeded, because the"
                f" server reports {'an unknown status' if status else 'no import'}"
            )
        return {"status": status}
