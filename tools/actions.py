# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the action plugin of every module, `plugins/action/<module>.py`; `--check` only compares.

All action plugins are alike; the service of a module follows from its action group. Ansible finds
an action plugin by the name of the module. The process that forks the workers loads the plugin, and
with it the module, only once.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
_ACTION = """\
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# This file is written by `python -m tools.actions`.
\"\"\"The action of the module, as all are, with the `main` of the module for ansible-lint.\"\"\"

from __future__ import annotations

from ansible_collections.delivery.toolchain.plugins.modules.{module} import main
from ansible_collections.delivery.toolchain.plugins.plugin_utils.in_process import Action

__all__ = ["ActionModule", "main"]


class ActionModule(Action):
    service = {service}
"""


def actions() -> dict[Path, str]:
    """Return the path and content of every generated file."""
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    services = {
        module: f'"{service}"'
        for service, modules in runtime["action_groups"].items()
        for module in modules
    }
    return {
        ROOT / "plugins" / "action" / path.name: _ACTION.format(
            module=path.stem, service=services.get(path.stem)
        )
        for path in sorted((ROOT / "plugins" / "modules").glob("*.py"))
    }


def main(arguments: list[str]) -> int:
    """Write the files; with `--check` report the stale files instead."""
    wanted = actions()
    found = {path: path.read_text(encoding="utf-8") for path in _there()}
    stale = [path for path in {*wanted, *found} if wanted.get(path) != found.get(path)]
    for path in sorted(stale):
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is stale: run python -m tools.actions")
        elif path in wanted:
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 1 if stale and "--check" in arguments else 0


def _there() -> list[Path]:
    return sorted((ROOT / "plugins" / "action").glob("*.py"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
