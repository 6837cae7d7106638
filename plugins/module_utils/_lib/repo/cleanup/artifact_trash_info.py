# SPDX-License-Identifier: GPL-3.0-or-later
"""List the repositories with items in the trash [C2.5]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...core.module.descriptor import Descriptor, reads
from ...core.module.task import Task
from ...core.plan import Plan, ReadOnly, unchanged
from ..client import RepoClient
from ..service import SERVICE
from .artifact_trash import children


@dataclass(frozen=True)
class ArtifactTrashInfoOptions:
    """`artifact_trash_info` has only the options of the connection."""


class ArtifactTrashInfoOperation(ReadOnly):
    """List the trash."""

    descriptor: ClassVar = Descriptor(SERVICE, {"list": reads("admin")})

    def __init__(self, task: Task, options: ArtifactTrashInfoOptions) -> None:
        self._client = RepoClient(task)

    def plan(self) -> Plan:
        return unchanged({"children": children(self._client)})
