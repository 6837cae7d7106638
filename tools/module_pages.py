# SPDX-License-Identifier: GPL-3.0-or-later
"""Arrange the pages that `antsibull-docs` generates for modules.

What only this module has comes first. The options of the connection have a page of their own.
"""

from __future__ import annotations

import re
from pathlib import Path

from ansible.module_utils.common.yaml import yaml_load

from tools import tree
from tools.reference import SERVICES

tree.make_importable()
from ansible_collections.delivery.toolchain.plugins.doc_fragments.connection import (
    ModuleDocFragment,
)
from tests.helpers import playbook

_MODULES = tree.ROOT / "plugins" / "modules"
_FRAGMENT = "delivery.toolchain.connection."
#: A row of the table of options.
_ROW = re.compile(r"^  \* - \.\. raw:: html\n(?:(?: {4}.*)?\n)+", re.MULTILINE)
_LABEL = re.compile(r"^ +(\.\. _ansible_collections\.\S+__parameter-([^:/\s]+):)\n+", re.MULTILINE)
_ACTION = re.compile(r"^\.\. note::\n    This module has a corresponding :ref:.*\n\n", re.MULTILINE)
_NAME = re.compile(r"^delivery\.toolchain\.(\w+) module -- (.+)\n\++\n", re.MULTILINE)
_OF_MODULE = re.compile(r":ansopt:`[^`]*#module:(\w[^`=]*)`")
_PARTS = re.compile(r"(.*?)(\.\. Aliases\n.*?)(\.\. Examples\n.*?)(\.\. Facts\n.*)", re.DOTALL)
_TABLE = """.. list-table::
  :width: 100%
  :widths: auto
  :header-rows: 1
  :class: longtable ansible-option-table

  * - Parameter
    - Comments

"""
_CONNECTION = """Options of the connection
=========================

Every module of a service has them. :doc:`Connections <../docs/connections>` explains where else
they can be set, and which credential counts.
"""


def arrange(folder: Path) -> None:
    """Rewrite the page of each module in the folder, and write the page of the connections."""
    connections: dict[str, str] = {}
    for module in sorted(_MODULES.glob("[a-z]*.py")):
        page = folder / f"{module.stem}_module.rst"
        documentation = yaml_load(playbook.documentation(module.stem, "DOCUMENTATION"))
        text = _ACTION.sub("", page.read_text("utf-8"))
        text = _NAME.sub(lambda found: f"{found[1]}\n{'+' * len(found[1])}\n\n{found[2]}\n", text)
        for fragment in documentation["extends_documentation_fragment"]:
            if fragment.startswith(_FRAGMENT):
                service = fragment.removeprefix(_FRAGMENT)
                own = set(documentation.get("options", ()))
                text, rows = _without_connection(text, service, own)
                # anchors of the service, and names instead of references
                rows = _LABEL.sub("", rows).replace("parameter-", f"{service}-")
                connections.setdefault(service, _OF_MODULE.sub(r"**\1**", rows))
        # the examples directly after the synopsis
        found = _PARTS.fullmatch(text)
        if not found:
            raise SystemExit(f"{page.name} has no examples where they are expected")
        page.write_text(found[1] + found[3] + found[2] + found[4], "utf-8")
    parts = [_CONNECTION]
    for service, name in SERVICES.items():
        title = name[0].upper() + name[1:]
        parts.append(f".. _connection-{service}:\n\n{title}\n{'-' * len(title)}\n")
        parts.append(_TABLE + connections[service])
    (folder / "connection.rst").write_text("\n".join(parts), "utf-8")


def _without_connection(text: str, service: str, own: set[str]) -> tuple[str, str]:
    """Return a page with a sentence instead of the options of the connection, and their rows.

    :param own: the options that the module documents itself
    """
    names = set(yaml_load(getattr(ModuleDocFragment, service.upper()))["options"]) - own
    rows = [row[0] for row in _ROW.finditer(text)]
    moved = [row for row in rows if (label := _LABEL.search(row)) and label[2] in names]
    for row in moved:
        text = text.replace(row, "", 1)
    labels = "\n".join(label[1] for row in moved for label in _LABEL.finditer(row))
    listed = ", ".join(f"``{name}``" for name in sorted(names))
    sentence = f":ref:`Options of the connection <connection-{service}>`: {listed}.\n\n"
    before, mark, after = text.partition(".. Attributes\n")
    if not mark or not moved:
        raise SystemExit(f"a page of a module of {service} has another form than expected")
    # a table without rows is an error
    if not _ROW.search(before.partition(".. Options\n")[2]):
        before = before.partition(".. tabularcolumns::")[0]
    return f"{before}\n{labels}\n\n{sentence}{mark}{after}", "".join(moved)
