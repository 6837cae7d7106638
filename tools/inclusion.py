# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what the Ansible community package and Automation Hub require, and what of it holds.

    python -m tools.inclusion

`tools/inclusion.yml` has the requirements with their sections. A check returns the problems that it
found, as sentences without an end. `by hand` marks requirements that only people can judge, `open`
those that do not hold yet, with the reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tools import matrix
from tools.tree import ROOT

_REQUIREMENTS = (
    "https://docs.ansible.com/ansible/devel/community/collection_contributors/"
    "collection_requirements.html"
)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Folders of `plugins` that ansible-core loads from, and the two that the requirements add.
_PLUGIN_FOLDERS = {
    *("action", "become", "cache", "callback", "cliconf", "connection"),
    *("doc_fragments", "filter", "httpapi", "inventory", "lookup", "module_utils"),
    *("modules", "netconf", "plugin_utils", "shell", "strategy", "sub_plugins"),
    *("terminal", "test", "vars"),
}
#: Folders with documented plugins of which users see the results.
_RETURNING = ("modules", "lookup", "filter")
#: Categories of Automation Hub, of which galaxy-importer wants one.
_CATEGORIES = {
    *("application", "cloud", "database", "eda", "infrastructure", "linux"),
    *("monitoring", "networking", "security", "storage", "tools", "windows"),
}
_SECTIONS = (
    *("Description", "Requirements", "Installation", "Use Cases", "Testing", "Support"),
    *("Release Notes and Roadmap", "Related Information", "License Information"),
)
_TEMPORARY = re.compile(r"(?:~|\.(?:bak|orig|rej|sw[op]|tmp|pyc)|\.DS_Store)$")
#: Bytes of all files of the archive (Galaxy's limit is for the compressed ones), and of one file.
_ALL_BYTES, _FILE_BYTES = 20 * 2**20, 2 * 2**20
#: Folders of the archive.
_CONTENT = ("docs", "examples", "extensions", "meta", "playbooks", "plugins", "roles")
#: Keys of a task or block that are not the name of its module.
_KEYWORDS = {
    *("always", "args", "async", "become", "block", "changed_when", "check_mode"),
    *("delegate_to", "environment", "failed_when", "ignore_errors", "loop"),
    *("loop_control", "module_defaults", "name", "no_log", "notify", "poll"),
    *("register", "rescue", "retries", "run_once", "tags", "until", "vars", "when"),
}


@dataclass(frozen=True)
class Plugin:
    """A module, lookup or filter: the values of its documentation constants, from YAML."""

    kind: str
    name: str
    text: str
    constants: Mapping[str, Any]

    @property
    def documentation(self) -> Mapping[str, Any]:
        loaded = self.constants.get("DOCUMENTATION")
        return loaded if isinstance(loaded, Mapping) else {}

    @property
    def fragments(self) -> list[str]:
        named = self.documentation.get("extends_documentation_fragment", [])
        return [named] if isinstance(named, str) else list(named)

    @property
    def only_reads(self) -> bool:
        return any(name.endswith(".attributes.info") for name in self.fragments)

    def __str__(self) -> str:
        return f"plugins/{self.kind}/{self.name}.py"


class Checkout:
    """The files of a checkout.

    :ivar root: its folder
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def text(self, path: str) -> str:
        file = self.root / path
        return file.read_text(encoding="utf-8") if file.is_file() else ""

    def load(self, path: str) -> dict[str, Any]:
        loaded = yaml.load(self.text(path), _LOADER)  # noqa: S506 - a safe loader
        return loaded if isinstance(loaded, dict) else {}

    def files(self, *folders: str) -> Iterator[Path]:
        for folder in folders:
            for path in sorted((self.root / folder).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield path

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    @cached_property
    def galaxy(self) -> dict[str, Any]:
        return self.load("galaxy.yml")

    @cached_property
    def readme(self) -> str:
        return self.text("README.md")

    @cached_property
    def plugins(self) -> list[Plugin]:
        found = []
        for kind in (*_RETURNING, "callback"):
            for path in sorted((self.root / "plugins" / kind).glob("[!_]*.py")):
                text = path.read_text(encoding="utf-8")
                found.append(Plugin(kind, path.stem, text, _constants(text)))
        return found

    @cached_property
    def modules(self) -> list[Plugin]:
        return [plugin for plugin in self.plugins if plugin.kind == "modules"]


def _constants(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for target in node.targets:
                name = target.id if isinstance(target, ast.Name) else ""
                if name in ("DOCUMENTATION", "EXAMPLES", "RETURN"):
                    found[name] = yaml.load(str(node.value.value), _LOADER)  # noqa: S506
    return found


def _missing(text: str, file: str, *words: str) -> list[str]:
    return [f"{file} lacks {word!r}" for word in words if word not in text]


def readme_communication(checkout: Checkout) -> list[str]:
    section = checkout.readme.partition("\n## Communication\n")[2].partition("\n## ")[0]
    words = ("https://forum.ansible.com/c/help/6", "https://forum.ansible.com/tag/", "welcome")
    return _missing(section, "the section Communication of README.md", *words)


def public_addresses(checkout: Checkout) -> list[str]:
    return [
        f"galaxy.yml has no address of {name}"
        for name in ("repository", "issues", "documentation", "homepage")
        if not str(checkout.galaxy.get(name, "")).startswith("https://")
    ]


def code_of_conduct(checkout: Checkout) -> list[str]:
    address = "https://docs.ansible.com/projects/ansible/latest/community/code_of_conduct.html"
    return [
        problem
        for file in ("CODE_OF_CONDUCT.md", "README.md")
        for problem in _missing(checkout.text(file), file, address)
    ]


def version(checkout: Checkout) -> list[str]:
    found = str(checkout.galaxy.get("version"))
    if not re.fullmatch(r"\d+\.\d+\.\d+", found) or Version(found) < Version("1.0.0"):
        return [f"the version in galaxy.yml is {found}"]
    return []


def files(checkout: Checkout) -> list[str]:
    sizes = {path: path.stat().st_size for path in checkout.files(*_CONTENT)}
    problems = [
        f"{checkout.relative(path)} is temporary" for path in sizes if _TEMPORARY.search(path.name)
    ]
    large = [path for path, size in sizes.items() if size > _FILE_BYTES]
    problems += [f"{checkout.relative(path)} has {sizes[path]} bytes" for path in large]
    total = sum(sizes.values())
    return problems + ([f"all files have {total} bytes"] if total > _ALL_BYTES else [])


def controller_pythons(_checkout: Checkout) -> list[str]:
    """Compare the matrix with the Pythons that run ansible-core 2.16, 2.22 or a release between."""
    tested = {pair.python for pair in matrix.PAIRS}
    wanted = {f"3.{minor}" for minor in range(10, 16)}
    return [f"no pair of tools/matrix.py has Python {python}" for python in sorted(wanted - tested)]


def target_pythons(checkout: Checkout) -> list[str]:
    problems = _missing(checkout.readme, "README.md", "Python 3.10 or newer")
    fragment = checkout.text("plugins/doc_fragments/attributes.py")
    if fragment.count("  - python >= 3.10\n") != fragment.count("  check_mode:\n"):
        problems.append(
            "a section of plugins/doc_fragments/attributes.py does not name the oldest Python"
        )
    base = f"{_name(checkout)}.attributes"
    for module in checkout.modules:
        if not {base, f"{base}.info"} & set(module.fragments):
            problems.append(f"{module} does not name the oldest Python")
    return problems


def _name(checkout: Checkout) -> str:
    return f"{checkout.galaxy.get('namespace')}.{checkout.galaxy.get('name')}"


def private_utilities(checkout: Checkout) -> list[str]:
    return [
        f"{checkout.relative(path)} does not begin with an underscore"
        for folder in ("module_utils", "plugin_utils")
        for path in sorted((checkout.root / "plugins" / folder).iterdir())
        if not path.name.startswith("_")
    ]


def tags(checkout: Checkout) -> list[str]:
    found = checkout.galaxy.get("tags") or []
    problems = [f"the tag {tag} is not in lower case" for tag in found if tag != str(tag).lower()]
    return problems if _CATEGORIES & set(found) else [*problems, "no tag is a category"]


def dependencies(checkout: Checkout) -> list[str]:
    problems = []
    for name, wanted in (checkout.galaxy.get("dependencies") or {}).items():
        problems.append(f"somebody has to check that the package contains {name}")
        bounds = [
            each for each in SpecifierSet(str(wanted).replace("*", "")) if each.operator == ">="
        ]
        if not bounds or Version(bounds[0].version) < Version("1.0.0"):
            problems.append(f"{name} has no lower bound of 1.0.0")
    return problems


def requires_ansible(checkout: Checkout) -> list[str]:
    wanted = str(checkout.load("meta/runtime.yml").get("requires_ansible", ""))
    return [] if re.fullmatch(r">=2\.\d+(\.\d+)?", wanted) else [f"requires_ansible is {wanted!r}"]


def execution_environment(checkout: Checkout) -> list[str]:
    named = checkout.load("meta/execution-environment.yml").get("dependencies", {})
    missing = [f"{name} does not exist" for name in named.values() if not checkout.text(str(name))]
    return (
        missing if {"python", "system"} <= set(named) else [*missing, "a kind of file is missing"]
    )


def plugin_folders(checkout: Checkout) -> list[str]:
    folders = {path.name for path in (checkout.root / "plugins").iterdir() if path.is_dir()}
    return [f"plugins/{name} is no folder of plugins" for name in sorted(folders - _PLUGIN_FOLDERS)]


def other_folders(checkout: Checkout) -> list[str]:
    """Look for paths that leave the folders of the requirement."""
    start = {
        ".py": r"parents\[\d\]",
        ".yml": "playbook_dir|role_path",
        ".j2": "playbook_dir|role_path",
    }
    problems = []
    for path in checkout.files("plugins", "roles", "playbooks"):
        # examples of modules have the paths of their users
        if path.suffix in start and path.parent.name not in ("modules", "lookup"):
            outside = rf"(?:{start[path.suffix]})[^\n]*?\b(docs|examples|extensions|tests)\b"
            found = re.findall(outside, path.read_text(encoding="utf-8"))
            problems += [f"{checkout.relative(path)} uses {folder}" for folder in found]
    return problems


def documented(checkout: Checkout) -> list[str]:
    problems = []
    for plugin in checkout.plugins:
        wanted = ["DOCUMENTATION"]
        wanted += ["EXAMPLES", "RETURN"] if plugin.kind in _RETURNING else []
        problems += [f"{plugin} has no {name}" for name in wanted if not plugin.constants.get(name)]
    return problems


def full_names(checkout: Checkout) -> list[str]:
    problems = []
    for plugin in checkout.plugins:
        names = [*plugin.fragments, *_modules(plugin.constants.get("EXAMPLES"))]
        problems += [f"{plugin} names {name}" for name in names if name.count(".") < 2]
    return problems


def _modules(node: Any) -> Iterator[str]:
    """Yield the module names of the tasks of an example."""
    if isinstance(node, list):
        for each in node:
            yield from _modules(each)
    elif isinstance(node, Mapping):
        for key in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
            yield from _modules(node.get(key))
        if "name" in node and not {"hosts", "block", "import_playbook"} & set(node):
            yield from (str(key) for key in node if key not in _KEYWORDS)


def version_added(checkout: Checkout) -> list[str]:
    newest = Version(str(checkout.galaxy.get("version")))
    problems = []
    for plugin in checkout.plugins:
        found = plugin.documentation.get("version_added")
        if found is None or Version(str(found)) > newest:
            problems.append(f"{plugin} has the version_added {found}")
    return problems


def contributing(checkout: Checkout) -> list[str]:
    return [] if checkout.text("CONTRIBUTING.md") else ["there is no CONTRIBUTING.md"]


def changelog(checkout: Checkout) -> list[str]:
    releases = checkout.load("changelogs/changelog.yaml").get("releases", {})
    current = str(checkout.galaxy.get("version"))
    problems = (
        [] if current in releases else [f"changelogs/changelog.yaml has no release {current}"]
    )
    return problems + ([] if checkout.text("CHANGELOG.md") else ["there is no CHANGELOG.md"])


def semantic_versioning(checkout: Checkout) -> list[str]:
    return _missing(checkout.readme, "README.md", "https://semver.org")


def info_names(checkout: Checkout) -> list[str]:
    return [
        f"{module} only reads"
        for module in checkout.modules
        if module.only_reads and not module.name.endswith("_info")
    ]


def facts_names(checkout: Checkout) -> list[str]:
    return [
        f"{module} returns facts"
        for module in checkout.modules
        if "ansible_facts" in (module.constants.get("RETURN") or {})
        and not module.name.endswith("_facts")
    ]


def licences(checkout: Checkout) -> list[str]:
    problems = (
        []
        if "GNU GENERAL PUBLIC LICENSE" in checkout.text("LICENSE")
        else ["LICENSE is another one"]
    )
    if checkout.galaxy.get("license") != ["GPL-3.0-or-later"]:
        problems.append("galaxy.yml has another license")
    for path in checkout.files("plugins", "playbooks", "extensions"):
        if path.suffix == ".py" and path.stat().st_size:
            head = path.read_text(encoding="utf-8")[:400]
            if "SPDX-License-Identifier: GPL-3.0-or-later" not in head:
                problems.append(f"{checkout.relative(path)} names no licence")
    return problems


def tested_cores(checkout: Checkout) -> list[str]:
    """Compare the nightly pairs with the releases from the oldest supported to the newest."""
    oldest = str(checkout.load("meta/runtime.yml").get("requires_ansible", "")).split(".")[1]
    newest = matrix.PAIRS[-1].release.split(".")[1]
    jobs = checkout.load(".github/workflows/nightly.yml").get("jobs", {})
    pairs = jobs.get("pairs", {}).get("strategy", {}).get("matrix", {}).get("include", [])
    tested = {".".join(str(pair["release"]).split(".")[:2]) for pair in pairs}
    wanted = [f"2.{minor}" for minor in range(int(oldest), int(newest) + 1)]
    return [f"no workflow tests ansible-core {core}" for core in wanted if core not in tested]


def workflows(checkout: Checkout) -> list[str]:
    """Verify that tests run for a pull request, every night, and before a tag is published."""
    test, nightly, release = (
        checkout.load(f".github/workflows/{name}.yml") for name in ("test", "nightly", "release")
    )
    problems = []
    if "pull_request" not in test.get("on", {}):
        problems.append("no workflow runs on pull_request")
    crons = [str(each.get("cron")) for each in nightly.get("on", {}).get("schedule", [])]
    # minute, hour, any day of the month, any month, any weekday
    if not any(re.fullmatch(r"\d+ \d+ \* \* \*", cron) for cron in crons):
        problems.append("no workflow runs every night")
    called = [job.get("uses") for job in release.get("jobs", {}).values()]
    if not release.get("on", {}).get("push", {}).get("tags"):
        problems.append("no workflow runs on tags")
    if "./.github/workflows/nightly.yml" not in called:
        problems.append("a tag is published without tests")
    return problems


def sanity(checkout: Checkout) -> list[str]:
    ignored = (checkout.root / "tests" / "sanity").glob("ignore-*.txt")
    return [f"{checkout.relative(path)} ignores tests" for path in ignored if path.stat().st_size]


def _attributes(module: Plugin) -> Mapping[str, Any]:
    found = module.documentation.get("attributes")
    return found if isinstance(found, Mapping) else {}


def idempotence(checkout: Checkout) -> list[str]:
    problems = []
    for module in checkout.modules:
        attribute = _attributes(module).get("idempotent", {})
        if attribute.get("support", "full") != "full" and not attribute.get("details"):
            problems.append(f"{module} does not say why it is not idempotent")
    return problems


def states(checkout: Checkout) -> list[str]:
    reading = {"facts", "get", "gathered", "info", "list", "listed", "query", "read", "show"}
    problems = []
    for module in checkout.modules:
        choices = module.documentation.get("options", {}).get("state", {}).get("choices", [])
        problems += [f"{module} has the state {name}" for name in sorted(reading & set(choices))]
    return problems


def info_check_mode(checkout: Checkout) -> list[str]:
    problems = []
    for module in checkout.modules:
        support = _attributes(module).get("check_mode", {}).get("support", "full")
        if module.name.endswith(("_info", "_facts")) and support != "full":
            problems.append(f"{module} does not support check mode")
    return problems


def readme_sections(checkout: Checkout) -> list[str]:
    found = re.findall(r"^## (.+)$", checkout.readme, re.MULTILINE)
    return [f"README.md has no section {name}" for name in _SECTIONS if name not in found]


def readme_links(checkout: Checkout) -> list[str]:
    address = str(checkout.galaxy.get("repository"))
    text = re.sub(r"```.*?```|`[^`]*`", "code", checkout.readme, flags=re.DOTALL)
    links = re.findall(
        r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)|<img [^>]*src=\"([^\"]+)\"", text, re.MULTILINE
    )
    problems = []
    for link in sorted({"".join(parts) for parts in links}):
        own = re.fullmatch(rf"{re.escape(address)}/(?:blob|tree)/main/([^#]+)(?:#.*)?", link)
        if not link.startswith("https://"):
            problems.append(f"README.md has the relative link {link}")
        elif own and not (checkout.root / own[1]).exists():
            problems.append(f"README.md links to {own[1]}, which does not exist")
    defined = {label.lower() for label in re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE)}
    used = re.findall(r"\[([^\]\n]+)\](?:\[([^\]\n]+)\])?(?![(:\[])", text)
    named = {(label or words).lower() for words, label in used}
    return problems + [
        f"README.md does not define the link {name}" for name in sorted(named - defined)
    ]


def readme_pip(checkout: Checkout) -> list[str]:
    return re.findall(r"pip3? install ansible\S*", checkout.readme)


def python_requirements(checkout: Checkout) -> list[str]:
    problems = []
    for file in ("requirements.txt", "meta/ee-requirements.txt"):
        for line in checkout.text(file).splitlines():
            if line.startswith("ansible") or re.search(r"==|<|~=", line.partition("#")[0]):
                problems.append(f"{file} has the line {line}")
    return problems


CHECKS: dict[str, Callable[[Checkout], list[str]]] = {
    check.__name__: check
    for check in (
        *(readme_communication, public_addresses, code_of_conduct, version, files),
        *(controller_pythons, target_pythons, private_utilities, tags, dependencies),
        *(requires_ansible, execution_environment, plugin_folders, other_folders, documented),
        *(full_names, version_added, contributing, changelog, semantic_versioning, info_names),
        *(facts_names, licences, tested_cores, workflows, sanity, idempotence, states),
        *(info_check_mode, readme_sections, readme_links, readme_pip, python_requirements),
    )
}


def table() -> list[dict[str, Any]]:
    """Return the sections with their requirements."""
    text = (ROOT / "tools" / "inclusion.yml").read_text(encoding="utf-8")
    sections = list(yaml.load(text, _LOADER))  # noqa: S506
    for section in sections:
        section.setdefault("url", f"{_REQUIREMENTS}#{section.get('anchor')}")
    return sections


def main() -> int:
    """Print all requirements; return 0 if no check found a problem."""
    checkout, counts = Checkout(ROOT), dict.fromkeys(("pass", "FAIL", "open", "by hand"), 0)
    for section in table():
        print(f"\n{section['section']}: {section['url']}")
        for requirement in section["requirements"]:
            verdict, details = _judge(checkout, requirement)
            counts[verdict] += 1
            print(f"{verdict:8s}{requirement['text']}")
            for detail in details:
                print(f"        - {detail}")
    print(f"\n{counts['open']} open, {counts['by hand']} by hand")
    print(f"{counts['pass']} passed, {counts['FAIL']} failed")
    return int(counts["FAIL"] != 0)


def _judge(checkout: Checkout, requirement: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the verdict on a requirement, and what explains it."""
    if "by_hand" in requirement:
        return "by hand", [requirement["by_hand"]]
    problems = CHECKS[requirement["check"]](checkout)
    if problems and "open" in requirement:
        return "open", [requirement["open"]]
    return ("FAIL" if problems else "pass"), problems


if __name__ == "__main__":
    sys.exit(main())
