# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the architecture: which packages may import each other, and what a file may contain.

Every test reads the directories, so new files are tested automatically.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = "ansible_collections.delivery.toolchain.plugins"
DOCUMENTATION = {"DOCUMENTATION", "EXAMPLES", "RETURN"}
# `requests` installs urllib3; the other libraries are optional and named in an error if they are
# missing.
LIBRARIES = {
    "ansible",
    "cryptography",
    "markdown_it",
    "oauthlib",
    "requests",
    "requests_oauthlib",
    "urllib3",
}

UTILS = f"{PLUGINS}.module_utils._lib"
CORE = f"{UTILS}.core"
RUNNER = f"{CORE}.module.runner"
#: Packages by group, in order: a file may import its own package and the packages before it.
PACKAGES = {
    "core": (
        "core",
        "core/connection",
        "core/http",
        "core/module",
        "core/operations",
    ),
    "repo": (
        "repo",
        "repo/access",
        "repo/items",
        "repo/configuration",
        "repo/builds",
        "repo/bundles",
        "repo/transfer",
        "repo/images",
        "repo/cleanup",
    ),
    "atlassian": ("atlassian",),
    "tracker": (
        "tracker",
        "tracker/issues",
        "tracker/editing",
        "tracker/projects",
    ),
    "wiki": (
        "wiki/formats",
        "wiki",
        "wiki/pages",
        "wiki/tree",
    ),
    "ci": (
        "ci",
        "ci/builds",
        "ci/jobs",
        "ci/credentials",
        "ci/server",
    ),
    "analysis": (
        "analysis",
        "analysis/resources",
        "analysis/configuration",
        "analysis/issues",
    ),
}
#: What the tracker and the wiki share.
SHARED = {"tracker": "atlassian", "wiki": "atlassian"}
#: The files that may use private names of Ansible: on the controller, and in modules.
ANSIBLE_INTERNALS = (
    "plugins/plugin_utils/_lib/ansible_internals.py",
    "plugins/module_utils/_lib/core/module/ansible_internals.py",
)
#: The folders of a module and of its imports.
SENT = ("plugins/modules", "plugins/module_utils")
ATTRIBUTE_FUNCTIONS = {"getattr", "hasattr", "setattr", "delattr"}
PRIVATE_STRING = re.compile(r"_ansible_\w+$|_OmitType$")
#: Files without a match use no private name of Ansible.
SUSPICIOUS = r"_ansible_|_OmitType|attr\(|(?<!\bself)(?<!\bcls)\._[a-z]|(?:import|from) ansible[. ]"
SELF_ASSIGNED = re.compile(r"self\.(_\w+)(?=(?:: [^=\n]*)? = )")


def python_files(*folders: str, containing: str = "") -> Iterator[Path]:
    """Yield files; `containing` leaves out those that need no parse, because a parse takes long."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not containing or re.search(containing, path.read_text(encoding="utf-8")):
                yield path


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def dotted(path: Path) -> str:
    """Return the import name of a file: plugins as part of the collection."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    return f"ansible_collections.delivery.toolchain.{name}" if parts[0] == "plugins" else name


@functools.cache
def imports(path: Path) -> frozenset[str]:
    """Return the absolute names of all modules that a file imports, at any level of nesting."""
    package = dotted(path).split(".")
    if path.stem != "__init__":
        package = package[:-1]
    names: set[str] = set()
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    return frozenset(names)


def inside(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def own_imports(path: Path) -> set[str]:
    """Return the imports of a file that belong to this repository."""
    return {
        name
        for name in imports(path)
        if inside(name, "ansible_collections", "plugins", "sandbox", "tests", "tools")
    }


def strangers(folder: str, *allowed: str) -> list[str]:
    """Return the imports in a folder that lead to a disallowed package of the repository."""
    return [
        f"{shown(path)} imports {name}"
        for path in python_files(folder)
        for name in sorted(own_imports(path))
        if not inside(name, *allowed)
    ]


def operation_of(module: str) -> Path:
    """Return the file of a module's operation: the only file with its name in module_utils."""
    found = list((ROOT / "plugins/module_utils/_lib").rglob(f"{module}.py"))
    assert len(found) == 1, f"{module}: {found}"
    return found[0]


def camel(module: str) -> str:
    return "".join(part.capitalize() for part in module.split("_"))


def package_of(path: Path) -> str:
    """Return the package of a file in module_utils, as `repo/items`."""
    return path.parent.relative_to(ROOT / "plugins/module_utils/_lib").as_posix()


def target_package(name: str) -> str:
    """Return the package that an import of module_utils leads to."""
    path = ROOT / "plugins/module_utils/_lib" / name.removeprefix(f"{UTILS}.").replace(".", "/")
    while not path.with_suffix(".py").exists():
        path = path.parent
    return package_of(path.with_suffix(".py"))


def code_of(path: Path) -> list[str]:
    """Return the lines of a module without documentation, blank lines and comments."""
    documentation: set[int] = set()
    for node in parse(path).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id in DOCUMENTATION for target in node.targets
        ):
            assert node.end_lineno is not None
            documentation.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return [
        line
        for number, line in lines
        if number not in documentation and line.strip() and not line.strip().startswith("#")
    ]


def test_inspected_folders_exist() -> None:
    for folder in ("plugins/modules", "plugins/module_utils/_lib/core", "sandbox", "tools"):
        assert list(python_files(folder)), folder
    packages = {
        path.name for path in (ROOT / "plugins/module_utils/_lib").iterdir() if path.is_dir()
    }
    assert packages - {"__pycache__"} == set(PACKAGES)


def test_every_package_has_a_place() -> None:
    packages = {package_of(path) for path in python_files("plugins/module_utils/_lib")}
    assert packages == {package for packages in PACKAGES.values() for package in packages}


def test_package_imports_earlier_packages_and_never_another_service() -> None:
    found = []
    for path in python_files("plugins/module_utils/_lib"):
        package = package_of(path)
        row = package.split("/")[0]
        before = PACKAGES[row][: PACKAGES[row].index(package) + 1]
        allowed = {*before, *(PACKAGES["core"] if row != "core" else ()), SHARED.get(row)}
        found += [
            f"{shown(path)} imports {name}"
            for name in sorted(own_imports(path))
            if not inside(name, UTILS) or target_package(name) not in allowed
        ]
    assert found == []


def test_core_names_no_service() -> None:
    """Verify that everything that only one service has is in its package."""
    packages = "|".join(row for row in PACKAGES if row not in ("core", "atlassian"))
    products = "jenkins|hudson|artifactory|jfrog|jira|confluence|klocwork|kwauth|atlassian|seraph"
    headers = "|".join(header for one in SERVICES.values() for header in one.headers)
    words = re.compile(
        rf"{products}|{headers}|CSRF|CAPTCHA|\bcrumb|ltoken|_oidc|[\"'`](?:{packages})[\"'`_]"
        rf"|\bthe (?:{packages}|repository manager|CI server|analysis server|issue tracker)\b",
        re.IGNORECASE,
    )
    assert [
        f"{shown(path)}:{number}: {line.strip()}"
        for path in python_files("plugins/module_utils/_lib/core")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if words.search(line)
    ] == []


def test_module_has_operation_and_options_in_the_file_of_its_name() -> None:
    found = []
    for path in python_files("plugins/modules"):
        operation = operation_of(path.stem)
        classes = {node.name for node in parse(operation).body if isinstance(node, ast.ClassDef)}
        for suffix in ("Options", "Operation"):
            if f"{camel(path.stem)}{suffix}" not in classes:
                found.append(f"{shown(operation)}: no class {camel(path.stem)}{suffix}")
    assert found == []


def test_module_imports_runner_and_operation_only() -> None:
    found = []
    for path in python_files("plugins/modules"):
        allowed = (RUNNER, dotted(operation_of(path.stem)))
        found += [
            f"{shown(path)} imports {name}"
            for name in sorted(own_imports(path))
            if not inside(name, *allowed)
        ]
    assert found == []


def test_module_utils_import_only_module_utils_of_ansible() -> None:
    assert [
        f"{shown(path)} imports {name}"
        for path in python_files("plugins/module_utils/_lib")
        for name in sorted(imports(path))
        if inside(name, "ansible") and not inside(name, "ansible.module_utils")
    ] == []


def test_action_imports_only_its_module_and_the_shared_base() -> None:
    shared = [f"{PLUGINS}.plugin_utils._lib.{name}" for name in ("bookkeeping", "in_process")]
    assert [
        f"{shown(path)} imports {name}"
        for path in python_files("plugins/action")
        for name in own_imports(path)
        if not inside(name, *shared, f"{PLUGINS}.modules.{path.stem}")
    ] == []


def test_plugin_utils_import_core_and_files_of_services_only() -> None:
    files = (
        "ci.xml_reader",
        "ci.jobs.configuration_file",
        "wiki.formats.comparison",
        "wiki.formats.front_matter",
        "wiki.formats.mentions",
        "wiki.formats.words",
        "wiki.tree.markdown_adoption",
    )
    services = (f"{name}.service" for name in ("repo", "tracker", "wiki", "ci", "analysis"))
    files_of_services = (f"{UTILS}.{name}" for name in (*files, *services))
    allowed = (CORE, f"{PLUGINS}.plugin_utils._lib", *files_of_services)
    assert strangers("plugins/plugin_utils", *allowed) == []


def test_private_names_of_ansible_are_in_two_files() -> None:
    """Verify that only one file on the controller and one file of modules use such names."""
    assert [
        f"{shown(path)}:{line} uses {name}"
        for path in python_files("plugins", "playbooks", "extensions/eda", containing=SUSPICIOUS)
        if shown(path) not in ANSIBLE_INTERNALS
        for line, name in private_names_of_ansible(path)
    ] == []


@pytest.mark.parametrize(
    "code",
    [
        "import ansible._internal",
        "from ansible.module_utils import _internal",
        "result['_ansible_no_log'] = True",
        "playbook._file_name",
        "getattr(task, '_uuid')",
        "class A(LookupBase):\n    def run(self, terms): return self._flatten(terms)",
        "class A(ActionBase):\n    def _execute_module(self): super()._execute_module()",
        "class A(AnsibleModule):\n    def run(self): return self._diff",
        "class A(CallbackBase):\n    def run(self): self._display.warning('')",
    ],
)
def test_private_name_of_ansible_is_detected(tmp_path: Path, code: str) -> None:
    bases = "from ansible.module_utils.basic import AnsibleModule\n" + "".join(
        f"from ansible.plugins.{kind} import {kind.capitalize()}Base\n"
        for kind in ("action", "callback", "lookup")
    )
    path = tmp_path / "probe.py"
    path.write_text(bases + code, encoding="utf-8")
    assert re.search(SUSPICIOUS, bases if "class" in code else code)
    assert list(private_names_of_ansible(path))


def private_names_of_ansible(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and name of each private name of Ansible in a file."""
    tree = parse(path)
    nodes = list(ast.walk(tree))
    own = {
        name for node in nodes for name in (getattr(node, "name", None), getattr(node, "id", None))
    } | {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    origins = {
        alias.asname or alias.name: (origin_of(path, each), alias.name)
        for each in nodes
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and PRIVATE_STRING.match(str(node.value)):
            yield node.lineno, str(node.value)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from private_imports(node)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ATTRIBUTE_FUNCTIONS:
            if str(getattr(node.args[1], "value", "")).startswith("_"):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if getattr(node.value, "id", "") not in ("self", "cls"):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ClassDef):
            yield from inherited_names(node, origins)


def origin_of(path: Path, node: ast.ImportFrom) -> str:
    """Return the absolute name of the module that a file imports from."""
    package = dotted(path).split(".")[: -node.level] if node.level else []
    return ".".join([*package, *filter(None, [node.module])])


def private_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[int, str]]:
    names = [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{name}" for name in names]
    yield from ((node.lineno, name) for name in names if re.match(r"ansible\.(.*\.)?_(?!_)", name))


def inherited_names(
    kind: ast.ClassDef, origins: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[int, str]]:
    """Yield the private names that a class uses or overrides and that its base class defines."""
    foreign: set[str] = set()
    for base in kind.bases:
        first, _dot, rest = ast.unparse(base).partition(".")
        if first in origins:
            foreign |= private_names_of_class(*origins[first], rest)
    for node in ast.walk(kind):
        name = getattr(node, "attr", None) or getattr(node, "name", None)
        if name in foreign:
            yield getattr(node, "lineno", 0), str(name)


@functools.cache
def private_names_of_class(module: str, name: str, inner: str) -> frozenset[str]:
    """Return the private names of an Ansible class: methods and attributes."""
    if not module.startswith("ansible"):
        return frozenset()
    with contextlib.suppress(ImportError):
        importlib.import_module(f"{module}.{name}")  # `name` may be a module of a package
    kind = getattr(importlib.import_module(module), name)
    found: set[str] = set()
    for parent in (getattr(kind, inner) if inner else kind).__mro__:
        if parent.__module__.startswith("ansible."):
            text = inspect.getsource(parent)
            found.update(filter(is_private, (*vars(parent), *SELF_ASSIGNED.findall(text))))
    return frozenset(found)


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_other_plugins_import_only_the_collection_and_fragments_nothing() -> None:
    assert strangers("plugins", PLUGINS) == []
    assert strangers("plugins/doc_fragments") == []


def test_plugins_import_only_required_libraries() -> None:
    # Code that runs on the controller only may use the requirements of Ansible on the controller.
    controller = {"action", "callback", "doc_fragments", "filter", "lookup", "plugin_utils"}
    allowed = {*sys.stdlib_module_names, *LIBRARIES, "ansible_collections"}
    assert [
        f"{shown(path)} imports {name}"
        for path in python_files("plugins")
        for name in sorted(imports(path))
        if name.split(".")[0] not in allowed
        and not (path.relative_to(ROOT).parts[1] in controller and inside(name, "yaml"))
    ] == []


def test_ansible_finds_all_files_that_a_module_needs() -> None:
    """Ansible sends the files that import statements name, no data and no other imports."""
    hidden = r"\bimport_module\b|__import__|\bget_data\b|__file__"
    assert list(map(shown, python_files(*SENT, containing=hidden))) == []
    files = [path for folder in SENT for path in (ROOT / folder).rglob("*") if path.is_file()]
    kinds = {path.suffix for path in files if path.parent.name != "__pycache__"}
    assert kinds == {".py", ".yml"}  # the documentation of an action without a module


def test_sandbox_never_imports_collection_or_ansible() -> None:
    assert strangers("sandbox", "sandbox") == []
    assert [
        f"{shown(path)} imports {name}"
        for path in python_files("sandbox")
        for name in sorted(imports(path))
        if inside(name, "ansible")
    ] == []


def test_tools_import_only_descriptions_of_plugins() -> None:
    described = (
        f"{PLUGINS}.doc_fragments.connection",
        f"{PLUGINS}.plugin_utils._lib.descriptors",
        f"{PLUGINS}.plugin_utils._lib.services",
        f"{PLUGINS}.plugin_utils._lib.kinds",
        f"{CORE}.connection.options",
        f"{CORE}.module",
    )
    assert strangers("tools", "tools", "sandbox", "tests.helpers", *described) == []


def test_operations_and_kinds_keep_no_state() -> None:
    """Verify that what a plan has read is in the plan, or in the item of an object."""
    found = []
    planner = r"class \w+Operation\b|ItemKind|def apply\("
    for path in python_files("plugins/module_utils/_lib", containing=planner):
        for node in ast.walk(parse(path)):
            if not isinstance(node, ast.ClassDef) or not is_planner(node):
                continue
            found += [
                f"{shown(path)}: {node.name}.{method.name} assigns self.{target.attr}"
                for method in node.body
                if isinstance(method, ast.FunctionDef) and method.name != "__init__"
                for target in ast.walk(method)
                if isinstance(target, ast.Attribute)
                and isinstance(target.ctx, ast.Store)
                and ast.unparse(target.value) == "self"
            ]
    assert found == []


def is_planner(node: ast.ClassDef) -> bool:
    """Return whether a class is an operation, a part of one with a plan, or a kind of objects."""
    methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    bases = {ast.unparse(base).partition("[")[0] for base in node.bases}
    return node.name.endswith("Operation") or "ItemKind" in bases or {"plan", "apply"} <= methods


def test_modules_contain_no_logic() -> None:
    words = re.compile(
        r"check_mode|\bchanged\s*=|[\"']changed[\"']|\b(requests|urllib\w*|http|open_url|fetch_url)\b"
    )
    assert [
        f"{shown(path)}: {line.strip()}"
        for path in python_files("plugins/modules")
        for line in code_of(path)
        if words.search(line)
    ] == []


def test_only_the_runner_exits_or_fails() -> None:
    assert [
        f"{shown(path)}:{node.lineno}"
        for path in python_files("plugins", containing="exit_json|fail_json")
        if shown(path) != "plugins/module_utils/_lib/core/module/runner.py"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"exit_json", "fail_json"}
    ] == []


def test_every_file_names_its_licence() -> None:
    found = []
    for path in python_files("plugins", "sandbox", "tests", "tools"):
        head = path.read_text(encoding="utf-8").splitlines()[:6]
        if not any("SPDX-License-Identifier: GPL-3.0-or-later" in line for line in head):
            found.append(shown(path))
    assert found == []
