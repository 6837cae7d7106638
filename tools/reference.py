# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the parts that follow from the modules: the action plugin of each module, the action groups
of `meta/runtime.yml`, and the table of services in docs/overview.md.

The service of a module comes from its descriptor, the service of a lookup from the fragment of its
connection options, and the service of a role from the group that its description names. All action
plugins are alike. Ansible finds an action plugin by the name of the module. The process that forks
the workers loads the plugin, and with it the module, only once. A single action plugin, to which
`plugin_routing` directs all modules, is not loaded there: a task takes five times the processor
time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.descriptors import DESCRIPTORS
from tools.tree import ROOT

_ACTION = """\
# SPDX-License-Identifier: GPL-3.0-or-later
\"\"\"Written by `python -m tools.generated`. ansible-lint reads the arguments from `main`.\"\"\"

from ansible_collections.delivery.toolchain.plugins.modules.{module} import main
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.in_process import action_of

ActionModule = action_of(main, {service})
"""
SERVICES = {
    "repo": "artifact repository manager",
    "tracker": "issue tracker",
    "wiki": "wiki",
    "ci": "CI server",
    "analysis": "code analysis server",
}
#: Service of each filter: a filter has no connection, and so no fragment that names its service.
_FILTERS = {
    "analysis_query": "analysis",
    "ci_java_support": "ci",
    "jql": "tracker",
    "field_text": "tracker",
    "jql_quote": "tracker",
    "storage_format": "wiki",
}
_MARKS = ("<!-- written by python -m tools.generated -->", "<!-- end -->")


def files() -> dict[Path, str | None]:
    """Return path and content of every generated file; None for an action without a module."""
    actions = ROOT / "plugins" / "action"
    found: dict[Path, str | None] = dict.fromkeys(
        # the action of the playbooks has only documentation
        path
        for path in actions.glob("*.py")
        if not _module(path).with_suffix(".yml").exists()
    )
    for module, descriptor in DESCRIPTORS.items():
        service = f'"{descriptor.service_name}"' if descriptor.service else None
        found[actions / f"{module}.py"] = _ACTION.format(module=module, service=service)
    runtime, overview = ROOT / "meta/runtime.yml", ROOT / "docs/overview.md"
    return {**found, runtime: _with_groups(runtime), overview: _with_table(overview)}


def _module(action: Path) -> Path:
    return ROOT / "plugins" / "modules" / action.name


def _with_groups(path: Path) -> str:
    head, _mark, _rest = path.read_text(encoding="utf-8").partition("action_groups:\n")
    lines = [f"{head}action_groups:"]
    for service in SERVICES:
        lines += [f"  {service}:", *(f"    - {module}" for module in _modules(service))]
    return "\n".join(lines) + "\n"


def _modules(service: str | None) -> list[str]:
    return [name for name, one in DESCRIPTORS.items() if one.service_name == (service or "")]


def _with_table(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    before, _mark, rest = text.partition(_MARKS[0])
    _old, _mark, after = rest.partition(_MARKS[1])
    return "\n".join([f"{before}{_MARKS[0]}", *_table(), f"{_MARKS[1]}{after}"])


def _table() -> Iterator[str]:
    queries = {
        kind: {path.stem: _service_of_query(path) for path in _plugins(kind)}
        for kind in ("lookup", "inventory plugin")
    }
    filters = {path.stem: _FILTERS.get(path.stem) for path in _plugins("filter")}

    def plugins(service: str | None) -> list[str]:
        return [
            _names(kind, [name for name, one in named.items() if one == service])
            for kind, named in {**queries, "filter": filters}.items()
        ]

    yield "| service | action group | modules and other plugins | roles |"
    yield "|---|---|---|---|"
    for service, title in SERVICES.items():
        group = f"`delivery.toolchain.{service}`"
        named = ", ".join(filter(None, [_names("", _modules(service)), *plugins(service)]))
        yield f"| {title} | {group} | {named} | {_roles(service)} |"
    callbacks = _names("callback", [path.stem for path in _plugins("callback")])
    named = ", ".join(filter(None, [callbacks, *plugins(None)]))
    yield f"| all services | none | {named} | |"
    yield f"| none (no server) | none | {_names('', _modules(None))} | |"


def _plugins(kind: str) -> list[Path]:
    return sorted((ROOT / "plugins" / kind.partition(" ")[0]).glob("*.py"))


def _service_of_query(path: Path) -> str | None:
    """Return the service of a lookup; None if it uses several services or no service."""
    fragment = r"(?m)^ +- delivery\.toolchain\.connection\.(\w+)_plugin$"
    services = re.findall(fragment, path.read_text(encoding="utf-8"))
    return services[0] if len(services) == 1 else None


def _names(kind: str, names: Iterable[str]) -> str:
    """Return the names as a list; `kind` is the word before them."""
    listed = [f"`{name}`" for name in names]
    if not listed or not kind:
        return ", ".join(listed)
    many = "s" if len(listed) > 1 else ""
    *rest, last = listed
    return f"{kind}{many} " + (f"{', '.join(rest)} and {last}" if rest else last)


def _roles(service: str) -> str:
    """Return the roles with the group of the service in their description."""
    found = []
    for specs in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        if f"group/delivery.toolchain.{service})" in specs.read_text(encoding="utf-8"):
            role = specs.parent.parent.name
            found.append(f"[`{role}`](../roles/{role}/README.md)")
    return ", ".join(found)
