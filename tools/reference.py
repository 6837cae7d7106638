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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
    actions, modules = ROOT / "plugins" / "action", ROOT / "plugins" / "modules"
    found: dict[Path, str | None] = dict.fromkeys(
        # the action of the playbooks has only documentation
        path
        for path in actions.glob("*.py")
        if not (modules / f"{path.stem}.yml").exists()
    )
    for module, descriptor in DESCRIPTORS.items():
        service = f'"{descriptor.service_name}"' if descriptor.service else None
        found[actions / f"{module}.py"] = _ACTION.format(module=module, service=service)
    runtime, overview = ROOT / "meta/runtime.yml", ROOT / "docs/overview.md"
    text = runtime.read_text(encoding="utf-8").partition("action_groups:\n")[0] + "action_groups:\n"
    for service in SERVICES:
        text += f"  {service}:\n" + "".join(f"    - {name}\n" for name in _modules(service))
    return {**found, runtime: text, overview: between_marks(overview, _table())}


def between_marks(path: Path, lines: Iterable[str]) -> str:
    """Return the text of a page with other lines in its generated part."""
    head, rest = path.read_text(encoding="utf-8").split(_MARKS[0])
    return "\n".join([f"{head}{_MARKS[0]}", *lines, _MARKS[1] + rest.split(_MARKS[1])[1]])


def _modules(service: str) -> list[str]:
    return [name for name, one in DESCRIPTORS.items() if one.service_name == service]


def _table() -> Iterator[str]:
    plugins: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for kind in ("lookup", "inventory plugin", "filter"):
        for path in sorted((ROOT / "plugins" / kind.partition(" ")[0]).glob("*.py")):
            # several services or none count as all
            fragment = r"(?m)^ +- delivery\.toolchain\.connection\.(\w+)_plugin$"
            services = re.findall(fragment, path.read_text(encoding="utf-8"))
            service = services[0] if len(services) == 1 else _FILTERS.get(path.stem, "")
            plugins[service][kind].append(path.stem)
    specs = {
        file.parts[-3]: file.read_text(encoding="utf-8")
        for file in sorted(ROOT.glob("roles/*/meta/argument_specs.yml"))
    }
    yield "| service | action group | modules and other plugins | roles |"
    yield "|---|---|---|---|"
    for service, title in SERVICES.items():
        names = [_names("", _modules(service))]
        names += [_names(kind, found) for kind, found in plugins[service].items()]
        group = f"group/delivery.toolchain.{service})"
        roles = [f"[`{role}`](../roles/{role}/README.md)" for role in specs if group in specs[role]]
        action_group = f"`delivery.toolchain.{service}`"
        yield f"| {title} | {action_group} | {', '.join(names)} | {', '.join(roles)} |"
    callbacks = sorted(path.stem for path in (ROOT / "plugins" / "callback").glob("*.py"))
    names = [_names(kind, found) for kind, found in plugins[""].items()]
    yield f"| all services | none | {', '.join([_names('callback', callbacks), *names])} | |"
    yield f"| none (no server) | none | {_names('', _modules(''))} | |"


def _names(kind: str, names: Sequence[str]) -> str:
    """Return the names as a list; `kind` is the word before them."""
    *rest, last = [f"`{name}`" for name in names]
    if not kind:
        return ", ".join([*rest, last])
    return f"{kind}s {', '.join(rest)} and {last}" if rest else f"{kind} {last}"
