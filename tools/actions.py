# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the action plugin of every module, `plugins/action/<module>.py`.

All action plugins are alike; the service of a module follows from its action group. Ansible finds
an action plugin by the name of the module. The process that forks the workers loads the plugin, and
with it the module, only once.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from tools import generated
from tools.tree import ROOT

_ACTION = """\
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This file is written by `python -m tools.actions`.
\"\"\"Run the module; ansible-lint finds its arguments by `main`.\"\"\"

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.modules.{module} import main
from ansible_collections.delivery.toolchain.plugins.plugin_utils.in_process import Action

__all__ = ["ActionModule", "main"]


class ActionModule(Action):
    service = {service}
"""


def files() -> dict[Path, str | None]:
    """Return the path and content of every action; None for an action without a module."""
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    services = {
        module: f'"{service}"'
        for service, modules in runtime["action_groups"].items()
        for module in modules
    }
    folder = ROOT / "plugins" / "action"
    found: dict[Path, str | None] = dict.fromkeys(folder.glob("*.py"))
    for path in sorted((ROOT / "plugins" / "modules").glob("*.py")):
        found[folder / path.name] = _ACTION.format(
            module=path.stem, service=services.get(path.stem)
        )
    return found


if __name__ == "__main__":
    generated.write(files())
