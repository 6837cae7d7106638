# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy sources sequentially in a separate process, and report their costs.

python -m tests.helpers.deploying URL SOURCE...    prints a line of JSON per source
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import (
    artifact_deploy,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES

SETTINGS = {
    "dialect": "jfrog",
    "vendor": "Vendor",
    "timeout": 60,
    "retries": 0,
    "retry_max_wait": 60,
}


@dataclass(frozen=True)
class Deployed:
    """Cost of a deployment: bytes sent, peak memory of the process in MiB, and wall and
    processor seconds without the start of the process.
    """

    changed: bool
    sent: int
    peak: float
    seconds: float
    processor: float


def deploy_all(url: str, sources: list[Path]) -> list[Deployed]:
    """Deploy the sources in sequence, in a single child process."""
    command = [sys.executable, "-m", "tests.helpers.deploying", url, *map(str, sources)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return [Deployed(**json.loads(line)) for line in done.stdout.splitlines()]


def _deploy(url: str, source: str) -> Deployed:
    options = artifact_deploy.ArtifactDeployOptions(repo="repo", path="deployed/", src=source)
    connection = Connection(service=SERVICES["repo"], url=url, settings=SETTINGS)
    task = Task(connection, print, read_only=False)
    started, before = time.monotonic(), time.process_time()
    operation = artifact_deploy.ArtifactDeployOperation(task, options)
    plan = operation.plan()
    if plan.changed:
        operation.apply(plan)
    seconds, processor = time.monotonic() - started, time.process_time() - before
    return Deployed(plan.changed, task.accounting.bytes_sent, peak(), seconds, processor)


def peak() -> float:
    """Return the peak memory of this program in MiB. Memory that the process used before does not
    count.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        name, _colon, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) / 1024
    raise AssertionError("the system does not tell")


if __name__ == "__main__":
    for argument in sys.argv[2:]:
        print(json.dumps(asdict(_deploy(sys.argv[1], argument))), flush=True)
