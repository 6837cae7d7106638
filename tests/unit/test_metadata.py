# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that files of the repository agree.

Modules are read from the directory, so that a new module without its entry in the metadata, its
fragment or its contract case is found.
"""

from __future__ import annotations

import fnmatch
import importlib
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    settings_options,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.input_check import (
    Place,
    check_options,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.helpers import operations
from tests.helpers.cases import CASES, problems
from tests.unit import test_slips
from tools import generated, lock

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = "ansible_collections.delivery.toolchain"
NAME = "delivery.toolchain"
# Content of the collection's archive; everything else in the root is on the list of exceptions.
CONTENT = {
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "bindep.txt",
    "changelogs",
    "docs",
    "examples",
    "execution-environment.yml",
    "extensions",
    "galaxy.yml",
    "meta",
    "playbooks",
    "plugins",
    "requirements.txt",
    "roles",
    "tests",
}


def load(path: str | Path) -> Any:
    return yaml_load((ROOT / path).read_text(encoding="utf-8"))


def names(folder: str, pattern: str = "*.py") -> set[str]:
    found = {path.stem for path in (ROOT / folder).glob(pattern)}
    return found - {"__init__"}


MODULES = names("plugins/modules")
RUNTIME = load("meta/runtime.yml")
GROUPS: dict[str, list[str]] = RUNTIME["action_groups"]
#: Modules without a server: connection options, the purpose of a group, would have no effect.
LOCAL = {"oauth_consumer"}
#: The common return values: their description, to which a module may add, and their condition.
COMMON = {
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


def documentation(kind: str, name: str) -> dict[str, Any]:
    module = importlib.import_module(f"{COLLECTION}.plugins.{kind}.{name}")
    loaded = yaml_load(module.DOCUMENTATION)
    assert isinstance(loaded, dict), name
    return loaded


def section_of_fragment(section: str) -> dict[str, Any]:
    """Return a section of the connection fragment."""
    module = importlib.import_module(f"{COLLECTION}.plugins.doc_fragments.connection")
    loaded = yaml_load(getattr(module.ModuleDocFragment, section.upper()))
    assert isinstance(loaded, dict), section
    return loaded


def fragment(section: str) -> dict[str, Any]:
    """Return the options of a section of the connection fragment."""
    found = section_of_fragment(section)["options"]
    assert isinstance(found, dict), section
    return found


def test_every_service_has_a_group() -> None:
    assert sorted(GROUPS) == sorted(SERVICES)


def test_every_module_is_in_one_group() -> None:
    grouped = [name for group in GROUPS.values() for name in group]
    assert sorted([*grouped, *LOCAL]) == sorted(MODULES)


def test_every_module_has_an_action_and_nothing_is_routed() -> None:
    assert "plugin_routing" not in RUNTIME
    assert names("plugins/action") == MODULES | names("plugins/modules", "*.yml")


def test_action_calls_main_of_its_module_with_the_service_of_its_group() -> None:
    services = {module: service for service, group in GROUPS.items() for module in group}
    for module in MODULES:
        action = importlib.import_module(f"{COLLECTION}.plugins.action.{module}")
        declared = importlib.import_module(f"{COLLECTION}.plugins.modules.{module}")
        assert action.main is declared.main
        assert action.ActionModule.service == services.get(module), module


def test_common_return_values_have_the_same_documentation() -> None:
    for name in sorted(MODULES):
        module = importlib.import_module(f"{COLLECTION}.plugins.modules.{name}")
        returned = yaml_load(module.RETURN)
        for key, (words, when) in COMMON.items():
            text = returned[key]["description"]
            first = text if isinstance(text, str) else text[0]
            assert (first, returned[key]["returned"]) == (words, when), f"{name}: {key}"
            assert returned[key]["type"] == "dict", f"{name}: {key}"


def test_no_generated_file_is_stale() -> None:
    assert generated.problems() == []


def test_module_uses_the_fragments_of_its_group() -> None:
    for service, modules in GROUPS.items():
        for module in modules:
            used = documentation("modules", module)["extends_documentation_fragment"]
            services = [each for each in SERVICES if f"{NAME}.connection.{each}" in used]
            assert services == [service], module
        attributes = section_of_fragment(service)["attributes"]
        assert attributes["action_group"]["membership"] == [f"{NAME}.{service}"], service


def test_module_that_is_not_idempotent_says_why() -> None:
    limited = set()
    for module in MODULES:
        found = documentation("modules", module).get("attributes", {}).get("idempotent")
        if found:
            assert found["support"] in ("none", "partial"), module
            assert found["details"], module
            limited.add(module)
    assert {case["module"] for case in CASES.values() if case.get("again_changed")} <= limited


def test_module_that_only_reads_is_called_info() -> None:
    reading = set()
    for module in MODULES:
        documented = documentation("modules", module)
        if f"{NAME}.attributes.info" in documented["extends_documentation_fragment"]:
            reading.add(module)
            assert "state" not in documented.get("options", {}), module
    # ci_plugin_info also writes its lock file
    assert reading | {"ci_plugin_info"} == {name for name in MODULES if name.endswith("_info")}


def test_local_module_has_no_connection_options() -> None:
    for module in LOCAL:
        used = documentation("modules", module)["extends_documentation_fragment"]
        assert used == [f"{NAME}.attributes"], module


def test_fragment_documents_exactly_the_connection_options() -> None:
    for service in SERVICES:
        spec = options.argument_spec(SERVICES[service])
        assert sorted(fragment(service)) == sorted(spec), service
        assert sorted(fragment(f"{service}_plugin")) == sorted(spec), service


def test_entries_have_the_option_names_of_the_task_and_none_of_the_connection() -> None:
    for service in SERVICES:
        connection = options.argument_spec(SERVICES[service])
        for module in names("plugins/modules") - {"__init__"}:
            fragments = documentation("modules", module)["extends_documentation_fragment"]
            own = test_slips.options_of(module)
            if f"{NAME}.connection.{service}" in fragments and "entries" in own:
                entry = set(own["entries"]["options"])
                assert entry <= set(own), module
                assert not entry & {*connection, *connection["username"]["aliases"]}, module


@pytest.mark.parametrize(
    ("module", "old", "meant"),
    [
        ("repo_repository", "url", "remote_url"),
        ("repo_repository", "username", "remote_username"),
        ("repo_repository", "password", "remote_password"),
        ("repo_user", "password", "user_password"),
        ("ci_credential", "username", "login_username"),
        ("ci_credential", "password", "login_password"),
    ],
)
def test_connection_option_in_entries_is_rejected(module: str, old: str, meant: str) -> None:
    own = test_slips.options_of(module)["entries"]["options"]
    with pytest.raises(ToolchainError) as caught:
        check_options(own, {old: "pass-word-12345"}, Place("entries[0]"))
    expected = f"entries[0].{old} is not an option: did you mean {meant}?"
    assert caught.value.message == expected


def test_fragment_names_the_variables_of_a_connection() -> None:
    for service, suffix in itertools.product(SERVICES, ("", "_plugin")):
        (note,) = section_of_fragment(service + suffix)["notes"]
        assert f"C({options.variable_name(service, 'url')})" in note, service
        assert f"E({options.environment_name(service, 'url')})" in note, service
        assert ("module_defaults" in note) is (suffix == ""), service


def test_connection_option_takes_a_line_of_a_manual() -> None:
    # they are two thirds of the options of most modules
    for service in SERVICES:
        for name, option in fragment(service).items():
            text = option["description"]
            assert isinstance(text, str), f"{service}: {name}"
            assert len(text) <= 120, f"{service}: {name}"


def test_lookups_name_the_variable_of_every_connection_option() -> None:
    for service in SERVICES:
        for name, option in fragment(f"{service}_plugin").items():
            expected = [{"name": options.variable_name(service, name)}]
            assert option["vars"] == expected, f"{service}: {name}"


def test_lookups_read_only_settings_from_the_environment() -> None:
    for service in SERVICES:
        environment = {
            name: [each["name"] for each in option.get("env", [])]
            for name, option in fragment(f"{service}_plugin").items()
        }
        settings = settings_options(SERVICES[service])
        assert environment == {
            name: [options.environment_name(service, name)] if name in settings else []
            for name in options.argument_spec(SERVICES[service])
        }, service


def test_lookup_has_the_connection_options_of_one_service() -> None:
    asks_nobody = {
        "desired_state",
        "drift_findings",
        "drift_reports",
        "drift_tickets",
        "enforcement",
        "report_folder",
        "report_settings",
        "sealed_plan",
        "survey_answers",
        "unmanaged",
        "unknown_variables",
    }
    for lookup in sorted(names("plugins/lookup") - asks_nobody):
        used = documentation("lookup", lookup)["extends_documentation_fragment"]
        fragments = [f"{NAME}.connection.{service}_plugin" for service in SERVICES]
        assert len([each for each in fragments if each in used]) == 1, lookup


def test_every_module_has_a_contract_case_and_every_case_a_module() -> None:
    cases = (ROOT / "tests" / "contract" / "cases").glob("*.yml")
    assert {load(case)["module"] for case in cases} == MODULES


def test_case_matches_its_schema() -> None:
    assert {name: found for name, case in CASES.items() if (found := problems(case))} == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"flavour": ["real"]}, "'flavour' was unexpected"),
        ({"writes": {"created": 1}}, "$.writes: 'created' does not match"),
        ({"permissions": [{"operations": []}]}, "$.permissions[0].operations: [] "),
        ({"permissions": [{"operation": ["create"]}]}, "'operation' was unexpected"),
    ],
)
def test_invalid_case_is_detected(change: dict[str, Any], words: str) -> None:
    assert words in " ".join(problems({**CASES["wiki_page"], **change}))


def test_every_key_of_a_case_is_described() -> None:
    def members(schema: Any) -> Iterator[tuple[str, Any]]:
        for name, value in schema.items() if isinstance(schema, dict) else ():
            if name == "properties":
                yield from value.items()
            yield from members(value)

    schema = load("tests/contract/case.schema.json")
    assert [name for name, one in members(schema) if "description" not in one] == []


def test_overview_names_every_plugin_and_role() -> None:
    overview = (ROOT / "docs/overview.md").read_text(encoding="utf-8")
    others = {kind: names(f"plugins/{kind}") for kind in ("filter", "inventory", "lookup")}
    every, found, roles = set().union(*others.values()), set(), set()
    for service, modules in GROUPS.items():
        (row,) = [line for line in overview.splitlines() if f"| `{NAME}.{service}` |" in line]
        plugins_cell, roles_cell = row.strip("|").split("|")[2:4]
        named = set(re.findall(r"`(\w+)`", plugins_cell))
        plugins = named & every
        assert named - (plugins - set(modules)) == set(modules)
        found |= plugins
        roles |= set(re.findall(r"`(\w+)`", roles_cell))
    (row,) = [line for line in overview.splitlines() if line.startswith("| none (no server) ")]
    assert set(re.findall(r"`(\w+)`", row)) == LOCAL
    (row,) = [line for line in overview.splitlines() if line.startswith("| all services ")]
    assert found | (set(re.findall(r"`(\w+)`", row)) & every) == every
    assert roles == {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()}


def test_minimum_ansible_version_agrees_everywhere() -> None:
    assert RUNTIME["requires_ansible"] == ">=2.16.0"
    assert "ansible-core 2.16 or newer" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert load("tests/config.yml")["modules"]["python_requires"] == ">=3.10"


def test_execution_environment_contains_the_archive_of_this_version() -> None:
    galaxy, definition = load("galaxy.yml"), load("execution-environment.yml")
    archive = f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"
    assert definition["dependencies"]["galaxy"]["collections"] == [
        {"name": archive, "type": "file"}
    ]
    assert definition["additional_build_files"] == [{"src": f"dist/{archive}", "dest": "."}]


def test_execution_environment_names_existing_files() -> None:
    dependencies = load("meta/execution-environment.yml")["dependencies"]
    for path in dependencies.values():
        assert (ROOT / path).is_file(), path


def test_archive_contains_only_the_collection() -> None:
    ignored = load("galaxy.yml")["build_ignore"]
    # Ansible itself excludes these files from every archive.
    ignored += [".git*"]
    left = {
        path.name
        for path in ROOT.iterdir()
        if not any(fnmatch.fnmatch(path.name, pattern) for pattern in ignored)
    }
    assert left - CONTENT == set()
    tests = {
        f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if path.name[0] not in "._"
    }
    kept = {name for name in tests if not any(fnmatch.fnmatch(name, each) for each in ignored)}
    assert kept == {"tests/config.yml"}


def test_ignored_files_are_not_in_the_archive() -> None:
    # Ansible itself excludes these files from every archive.
    ignored = [*load("galaxy.yml")["build_ignore"], "*.pyc", "tests/output"]
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for line in lines:
        name = line.strip("/")
        folders = [name.rsplit("/", count)[0] for count in range(name.count("/") + 1)]
        assert line.startswith("#") or set(folders) & set(ignored), line


def test_readme_has_the_sections_of_certified_collections() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", readme, re.MULTILINE) == [
        "Description",
        "Requirements",
        "Installation",
        "Use Cases",
        "Testing",
        "Contributing",
        "Support",
        "Communication",
        "Code of Conduct",
        "Release Notes and Roadmap",
        "License Information",
    ]


def test_readme_has_full_addresses_and_no_dead_link() -> None:
    # Galaxy and the hub show README without the files next to it
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"```.*?```|`[^`]*`", "code", readme, flags=re.DOTALL)
    places = r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)|<img [^>]*src=\"([^\"]+)\""
    links = {"".join(parts) for parts in re.findall(places, text, re.MULTILINE)}
    own = re.escape(load("galaxy.yml")["repository"]) + r"/(?:blob|tree)/main/([^#]+)"
    paths = {found[1] for link in links if (found := re.match(own, link))}
    assert paths
    assert not [link for link in links if not link.startswith("https://")]
    assert not [path for path in paths if not (ROOT / path).exists()]
    defined = {label.lower() for label in re.findall(r"^\[([^\]]+)\]: ", text, re.MULTILINE)}
    used = re.findall(r"\[([^\]\n]+)\](?:\[([^\]\n]+)\])?(?![(:\[])", text)
    assert not {(label or words).lower() for words, label in used} - defined


def test_changelog_names_existing_plugins() -> None:
    release = load("changelogs/changelog.yaml")["releases"][load("galaxy.yml")["version"]]
    listed = {"modules": release["modules"], **release["plugins"]}
    # `make changelog` adds new plugins, but does not remove renamed ones
    assert not [
        f"{kind}/{entry['name']}"
        for kind, entries in listed.items()
        for entry in entries
        if not (ROOT / "plugins" / kind / f"{entry['name']}.py").exists()
    ]


def test_no_sanity_test_is_ignored() -> None:
    for path in (ROOT / "tests" / "sanity").glob("ignore-*.txt"):
        assert path.read_text(encoding="utf-8") == "", path.name


LOCKS = (
    "requirements-dev.txt",
    "tests/benchmarks/requirements.txt",
    "tests/strangers/node/requirements.txt",
)


def locked(path: str = LOCKS[0]) -> dict[str, list[lock.Entry]]:
    """Return package to its versions in a lock file; the versions differ by environment marker."""
    packages: dict[str, list[lock.Entry]] = {}
    for entry in lock.read((ROOT / path).read_text(encoding="utf-8")):
        packages.setdefault(entry.name, []).append(entry)
    return packages


@pytest.mark.parametrize("path", LOCKS)
def test_lock_pins_every_package_to_one_version(path: str) -> None:
    packages = locked(path)
    assert packages
    for package, entries in packages.items():
        assert len(entries) == 1 or all(" ; " in entry.lines[0] for entry in entries), package


def test_lock_line_without_version_or_hash_is_rejected() -> None:
    digest = f"    --hash=sha256:{'0' * 64}"
    pinned = "requests==2.34.2 \\"
    assert [entry.name for entry in lock.read(f"{pinned}\n{digest}\n")] == ["requests"]
    for text in ("requests==2.34.2", f"requests>=2 \\\n{digest}", f"{pinned}\n{digest[:-1]}"):
        with pytest.raises(ValueError, match="pins no package with hashes here: requests"):
            lock.read(text)


@pytest.mark.parametrize(
    ("file", "contains", "lacks"),
    [
        ("requirements-demo.in", {"ansible-core", "cffi", "oauthlib", "starlette"}, {"pytest"}),
        ("requirements-test.in", {"ansible-core", "mypy", "pluggy"}, {"ansible-lint", "molecule"}),
    ],
)
def test_smaller_set_up_is_a_part_of_the_lock(
    file: str, contains: set[str], lacks: set[str]
) -> None:
    entries = [entry for entries in locked().values() for entry in entries]
    names = {entry.name for entry in lock.needed(entries, set(lock.included(file)))}
    assert names >= contains
    assert names.isdisjoint(lacks)


def test_users_need_only_a_http_client_and_markdown() -> None:
    entries = [entry for entries in locked().values() for entry in entries]
    assert {entry.name for entry in lock.needed(entries, {"-r requirements.txt"})} == {
        *("certifi", "charset-normalizer", "idna", "requests", "urllib3"),
        *("markdown-it-py", "mdurl"),
    }


@pytest.mark.parametrize("path", ["requirements.txt", "meta/ee-requirements.txt"])
def test_requirements_of_users_have_no_upper_bound(path: str) -> None:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert wanted
    # Automation Hub refuses ansible-core among them, and bounds exclude the fixes of a library
    assert not [line for line in wanted if line.startswith("ansible") or re.search("==|<|~=", line)]


def test_lock_contains_every_requested_package() -> None:
    asked = set()
    for name in lock.included("requirements-dev.in"):
        for line in (ROOT / name.removeprefix("-r ")).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-r ")):
                asked.add(re.split(r"[=<>;\[ ]", line)[0].lower())
    assert asked - set(locked()) == set()


@pytest.mark.parametrize("path", LOCKS)
def test_lock_names_no_host_and_no_folder(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.findall(r"://|--(?:extra-)?index|--find-links|file:|^/", text, re.MULTILINE) == []


def test_every_module_has_an_operation_with_counted_requests() -> None:
    counted = {
        operation.module
        for operation in operations.OPERATIONS.values()
        if operation.requests is not None
    }
    known = {"unchanged", "run in check mode"}
    known |= {f"{step} again" for step in ("create", "update", "delete")}
    for name, case in CASES.items():
        reported = case.get("requests", {})
        assert set(reported) <= known, name
        for figure in reported.values():
            assert isinstance(figure, int) or set(figure) == set(case["flavours"]), name
        counted |= {case["module"]} if reported else set()
    assert counted == {case["module"] for case in CASES.values()}
