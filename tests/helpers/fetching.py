# SPDX-License-Identifier: GPL-3.0-or-later
"""Download files in a separate process, and report the cost.

python -m tests.helpers.fetching URL PATH DEST    prints a line of JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_download,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.helpers.deploying import SETTINGS, peak


@dataclass(frozen=True)
class Fetched:
    """Cost of a download: bytes received, digest of the last file, and peak memory of the process
    in MiB.
    """

    changed: bool
    received: int
    sha256: str
    peak: float


def fetch(url: str, path: str, dest: str) -> Fetched:
    """Download a path in a child process."""
    command = [sys.executable, "-m", "tests.helpers.fetching", url, path, dest]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600)
    return Fetched(**json.loads(done.stdout))


def _fetch(url: str, path: str, dest: str) -> Fetched:
    options = artifact_download.ArtifactDownloadOptions(repo="repo", path=path, dest=dest)
    task = Task(
        Connection(service=SERVICES["repo"], url=url, settings=SETTINGS), print, read_only=False
    )
    operation = artifact_download.ArtifactDownloadOperation(task, options)
    plan = operation.plan()
    result = operation.apply(plan) if plan.changed else plan.result
    sha256 = result["files"][-1]["sha256"]
    return Fetched(plan.changed, task.accounting.bytes_received, sha256, peak())


if __name__ == "__main__":
    print(json.dumps(asdict(_fetch(*sys.argv[1:]))))
