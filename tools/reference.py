# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the parts that follow from the modules.

These parts are the common return values `http` and `error` of all modules, the action groups of
`meta/runtime.yml`, and the table of services in docs/overview.md. The service of a module follows
from the fragment of its connection options, the service of a role from the group that it names.
"""

from __future__ import annotations

import ast
import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from tools import generated
from tools.tree import ROOT

_COMMON = {
    "http": (
        (
            "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent),"
            " C(bytes_received) and C(seconds)."
        ),
        "always",
    ),
    "error": (
        "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).",
        "on failure",
    ),
}
_WIDTH = 135
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
    "ci_build_results": "ci",
    "ci_java_support": "ci",
    "jql": "tracker",
    "jql_quote": "tracker",
    "storage_format": "wiki",
}
_MARKS = ("<!-- written by python -m tools.reference -->", "<!-- end -->")


def files() -> dict[Path, str]:
    """Return the path and content of every generated file."""
    modules = {path: _with_returns(path) for path in _plugins("modules")}
    runtime, overview = ROOT / "meta/runtime.yml", ROOT / "docs/overview.md"
    return {**modules, runtime: _with_groups(runtime), overview: _with_table(overview)}


def _plugins(kind: str) -> list[Path]:
    return sorted((ROOT / "plugins" / kind).glob("*.py"))


def _documented(path: Path, part: str) -> str:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == part:
            text: str = ast.literal_eval(node.value)
            return text
    return ""


def _with_returns(path: Path) -> str:
    """Return the module with its common return values last; its additions to them are kept."""
    text = path.read_text(encoding="utf-8")
    old = _documented(path, "RETURN")
    values = yaml_load(old) or {}
    own = old
    for name in _COMMON:
        own = re.sub(rf"^{name}:\n(?:(?: .*)?\n)*", "", own, flags=re.MULTILINE)
    new = own.rstrip("\n") + "\n" + "".join(_value(name, values.get(name, {})) for name in _COMMON)
    return text.replace(old, new)


def _value(name: str, known: dict[str, Any]) -> str:
    first, when = _COMMON[name]
    said = known.get("description", first)
    more = said[1:] if isinstance(said, list) else []
    lines = [f"{name}:"]
    if more:
        lines.append("  description:")
        for text in (first, *more):
            lines += textwrap.wrap(
                text, _WIDTH, initial_indent="    - ", subsequent_indent="      "
            )
    else:
        lines.append(f"  description: {first}")
    return "\n".join([*lines, f"  returned: {when}", "  type: dict", ""])


def _services_of(kind: str, suffix: str = "") -> dict[str, list[str]]:
    """Return the plugins that use a single service, by the fragment of their connection options."""
    found: dict[str, list[str]] = {service: [] for service in SERVICES}
    for path in _plugins(kind):
        text = _documented(path, "DOCUMENTATION")
        for service in SERVICES:
            name = rf"delivery\.toolchain\.connection\.{service}{suffix}$"
            if re.search(name, text, re.MULTILINE):
                found[service].append(path.stem)
    every = list(itertools.chain.from_iterable(found.values()))
    several = {name for name in every if every.count(name) > 1}
    return {
        service: [name for name in names if name not in several] for service, names in found.items()
    }


def _with_groups(path: Path) -> str:
    head, _mark, _rest = path.read_text(encoding="utf-8").partition("action_groups:\n")
    lines = [f"{head}action_groups:"]
    for service, modules in _services_of("modules").items():
        lines += [f"  {service}:", *(f"    - {module}" for module in modules)]
    return "\n".join(lines) + "\n"


def _with_table(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    before, _mark, rest = text.partition(_MARKS[0])
    _old, _mark, after = rest.partition(_MARKS[1])
    return "\n".join([f"{before}{_MARKS[0]}", *_table(), f"{_MARKS[1]}{after}"])


def _table() -> Iterator[str]:
    modules, lookups = _services_of("modules"), _services_of("lookup", "_plugin")
    filters: dict[str, list[str]] = {service: [] for service in SERVICES}
    shared: list[str] = []
    for path in _plugins("filter"):
        place = filters.get(_FILTERS.get(path.stem, ""))
        (shared if place is None else place).append(path.stem)
    yield "| service | action group | modules, lookups and filters | roles |"
    yield "|---|---|---|---|"
    for service, title in SERVICES.items():
        cells = [
            _names("", modules[service]),
            _names("lookup", lookups[service]),
            _names("filter", filters[service]),
        ]
        named = ", ".join(cell for cell in cells if cell)
        yield f"| {title} | `delivery.toolchain.{service}` | {named} | {_roles(service)} |"
    grouped = {name for names in lookups.values() for name in names}
    callbacks = _names("callback", [path.stem for path in _plugins("callback")])
    others = [path.stem for path in _plugins("lookup") if path.stem not in grouped]
    cells = [callbacks, _names("lookup", others), _names("filter", shared)]
    yield f"| all services | none | {', '.join(cell for cell in cells if cell)} | |"
    grouped = {name for names in modules.values() for name in names}
    local = [path.stem for path in _plugins("modules") if path.stem not in grouped]
    yield f"| none (no server) | none | {_names('', local)} | |"


def _names(kind: str, names: Iterable[str]) -> str:
    listed = [f"`{name}`" for name in names]
    if not listed or not kind:
        return ", ".join(listed)
    many = "s" if len(listed) > 1 else ""
    *rest, last = listed
    return f"{kind}{many} " + (f"{', '.join(rest)} and {last}" if rest else last)


def _roles(service: str) -> str:
    """Return the roles whose description names the group of a service."""
    found = []
    for specs in sorted((ROOT / "roles").glob("*/meta/argument_specs.yml")):
        if f"group/delivery.toolchain.{service})" in specs.read_text(encoding="utf-8"):
            role = specs.parent.parent.name
            found.append(f"[`{role}`](../roles/{role}/README.md)")
    return ", ".join(found)


if __name__ == "__main__":
    generated.write(files())
