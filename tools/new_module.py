# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the files of a new module, and all files that are generated from the modules.

    python -m tools.new_module wiki_label                          below module_utils/wiki
    python -m tools.new_module wiki_label --package wiki/pages     below module_utils/wiki/pages

Replace each FILL_IN. `python -m tools.module_check wiki_label` lists what is still missing.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from string import Template

from tools.tree import ROOT

#: Placeholder for the parts of a new module that the author must write.
MARK = "FILL_IN"
#: First word of a module to its service, if it is not the service itself.
_OWNERS = {
    "artifact": "repo",
    "build": "repo",
    "docker": "repo",
    "release": "repo",
    "jql": "tracker",
}
_SPDX = "# SPDX-License-Identifier: GPL-3.0-or-later\n"
_MODULE = r'''#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: $module
short_description: FILL_IN
version_added: $version
description:
  - FILL_IN
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.$service
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.$service
options:
  name:
    description: FILL_IN
    type: str
    required: true
"""

EXAMPLES = r"""
- name: FILL_IN
  delivery.toolchain.$module:
    name: example
"""

RETURN = r"""
$noun:
  description: FILL_IN
  returned: success
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.$package import (
    $module,
)


def main() -> None:
    runner.run(
        "$service",
        $module.${camel}Options,
        $module.${camel}Operation,
    )


if __name__ == "__main__":
    main()
'''
_OPERATION = '''# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `$module`: FILL_IN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ${dots}core.module.descriptor import Descriptor, reads, writes
from ${dots}core.module.task import Task
from ${dots}core.plan import Plan, plan


@dataclass(frozen=True)
class ${camel}Options:
    """The options of `$module`."""

    name: str


class ${camel}Operation:
    """FILL_IN"""

    # FILL_IN: every operation, and the permissions that it needs
    descriptor: ClassVar = Descriptor(
        "$service",
        {"read": reads(), "create": writes()},
        kind="$noun",
        name="{name}",
    )

    def __init__(self, task: Task, options: ${camel}Options) -> None:
        self._transport, self._options = task.transport(), options

    def plan(self) -> Plan:
        name = self._options.name
        # FILL_IN: the address, and what the server returns
        current = self._transport.read(f"reading the $noun '{name}'", "FILL_IN").json()
        wanted = {"name": name}
        return plan(current, wanted).with_result($noun=wanted)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        # FILL_IN: the request that writes, and with `verify` the read after a lost response
        what = f"creating the $noun '{self._options.name}'"
        self._transport.write(what, "POST", "FILL_IN", json=plan.after)
        return {}
'''
_CASE = """# SPDX-License-Identifier: GPL-3.0-or-later
# case.schema.json describes each key. FILL_IN: arguments that the sandbox understands
module: $module
service: $service
flavours: [real]
missing: {}
create:
  name: example
after_create:
  $noun: {name: example}
writes: {create: 1}
requests: {unchanged: 1}
"""
_TEST = '''# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the options of `$module`."""

from __future__ import annotations

import pytest


def test_each_option_of_$module() -> None:
    pytest.fail("FILL_IN: test each option of $module, as the tests in this folder do")
'''
_FRAGMENT = """# SPDX-License-Identifier: GPL-3.0-or-later
minor_changes:
  - $module - Add the module. FILL_IN
"""


def files(module: str, package: str = "") -> dict[Path, str]:
    """Return the files of a new module: path below the checkout to content.

    :param package: folder below module_utils; empty for the folder of the service
    """
    first, _underscore, rest = module.partition("_")
    service = _OWNERS.get(first, first)
    package = package or service
    version = re.search(r"(?m)^version: (\S+)", (ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    values = {
        "module": module,
        "service": service,
        "camel": "".join(word.capitalize() for word in module.split("_")),
        "noun": rest,
        "package": package.replace("/", "."),
        "dots": "." * (len(package.split("/")) + 1),
        "version": version[1] if version else MARK,
    }
    templates = {
        f"plugins/modules/{module}.py": _MODULE,
        f"plugins/module_utils/{package}/{module}.py": _OPERATION,
        f"tests/contract/cases/{module}.yml": _CASE,
        f"tests/unit/{service}/test_{module}.py": _TEST,
        f"changelogs/fragments/{module.replace('_', '-')}.yml": _FRAGMENT,
    }
    return {Path(path): Template(text).substitute(values) for path, text in templates.items()}


def main(arguments: list[str] | None = None) -> int:
    """Write the files, and print their names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", help="as wiki_label: the service, then the object")
    parser.add_argument("--package", default="", help="folder below plugins/module_utils")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[a-z]+(_[a-z]+)+", options.module):
        parser.error(f"{options.module} is no name of a module: write it as wiki_label")
    written = files(options.module, options.package)
    for path in written:
        if (ROOT / path).exists():
            parser.error(f"{path} exists already")
        if not (ROOT / path.parent).is_dir():
            parser.error(f"there is no folder {path.parent}: name another with --package")
    for path, text in written.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path, flush=True)
    subprocess.run([sys.executable, "-m", "tools.generated"], cwd=ROOT, check=True)
    print(f"Replace each {MARK}, then: python -m tools.module_check {options.module}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
