# SPDX-License-Identifier: GPL-3.0-or-later
"""Leave out differences of a configuration that no write removes [C11.1].

The server adds some elements to each configuration, changes some, and does not take others. A write
without effect shows that. Its differences are remembered with their values.
"""

from __future__ import annotations

from ...core.module.task import Task
from ...core.verification import not_taken
from .configuration import ConfigurationDrift


def without_kept(task: Task, kind: str, name: str, found: ConfigurationDrift) -> ConfigurationDrift:
    """Return the comparison without the remembered differences.

    A warning names those that are wanted and that the server does not take.

    :param kind: kind of the object, such as `view`
    """
    left = found.without_known(task.server_values.known(kind, name))
    out = [each for each in found.differences if each not in left.differences]
    lost = [each.path for each in out if each.kind != "extra"]
    if lost:
        task.warn(not_taken(f"the {kind} '{name}'", lost))
    return left
