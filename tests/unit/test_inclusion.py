# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the checks of what the community package requires.

Each check finds a checkout that lacks its requirement. The table names every check.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import inclusion, matrix
from tools.tree import ROOT

ADDRESS = "https://github.com/delivery-toolchain/delivery.toolchain"
MODULE = "plugins/modules/wiki_page_info.py"
NEW_MODULE = """
DOCUMENTATION = '''
module: made_up
extends_documentation_fragment:
  - {fragment}
options:
  state: {{choices: [{state}]}}
attributes:
  check_mode: {{support: none}}
  idempotent: {{support: partial}}
version_added: {version}
'''
EXAMPLES = '''
- name: Do it
  {module}:
    x: 1
'''
RETURN = '''
{returned}: {{}}
'''
"""
PARTS = {
    "fragment": "delivery.toolchain.attributes.info",
    "state": "present",
    "version": "1.0.0",
    "module": "delivery.toolchain.made_up_info",
    "returned": "x",
}
#: Folders of `plugins` whose files a check reads as YAML.
DOCUMENTED = ("modules", "lookup", "filter")
MADE_UP = "plugins/modules/made_up_info.py"


def made_up(**parts: str) -> str:
    return NEW_MODULE.format(**{**PARTS, **parts})


def changed(folder: Path, path: str, text: str | None) -> inclusion.Checkout:
    """Return a checkout of links to this one, with another text of a file; None removes it.

    A plugin is the only one, because a check reads the documentation of all plugins.
    """
    source, target = ROOT, folder
    parts = Path(path).parts
    left_out = {".venv", ".git", *(DOCUMENTED if parts[0] == "plugins" else ())}
    for number, part in enumerate(parts):
        alone = source.name in DOCUMENTED or not source.is_dir()
        for entry in () if alone else source.iterdir():
            if entry.name not in {part, *left_out}:
                (target / entry.name).symlink_to(entry)
        source, target = source / part, target / part
        if number < len(parts) - 1:
            target.mkdir()
    if text is not None:
        target.write_text(text, encoding="utf-8")
    return inclusion.Checkout(folder)


def replaced(path: str, old: str, new: str) -> tuple[str, str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert old in text, path
    return path, text.replace(old, new)


GALAXY, README, RUNTIME = "galaxy.yml", "README.md", "meta/runtime.yml"
WORKFLOWS = ".github/workflows"
TEST, NIGHTLY, RELEASE = (f"{WORKFLOWS}/{name}.yml" for name in ("test", "nightly", "release"))
CASES: list[tuple[str, str, str | None, str]] = [
    ("readme_communication", *replaced(README, "forum.ansible.com/tag/", "x/"), "lacks"),
    ("public_addresses", *replaced(GALAXY, "issues: https", "issues: http"), "of issues"),
    ("code_of_conduct", "CODE_OF_CONDUCT.md", "Be kind.", "CODE_OF_CONDUCT.md lacks"),
    ("version", *replaced(GALAXY, "version: 1.0.0", "version: 0.9.0"), "is 0.9.0"),
    ("files", "docs/notes.md.orig", "", "docs/notes.md.orig is temporary"),
    ("files", "docs/large.bin", "x" * (2 * 2**20 + 1), "has 2097153 bytes"),
    ("target_pythons", *replaced(README, "Python 3.10 or newer", "Python"), "README.md lacks"),
    ("target_pythons", MADE_UP, made_up(fragment="x.y.z"), "does not name the oldest Python"),
    ("private_utilities", "plugins/module_utils/open.py", "", "open.py does not begin"),
    ("tags", *replaced(GALAXY, "  - tools\n", ""), "no tag is a category"),
    ("dependencies", *replaced(GALAXY, "{}", "{a.b: '>=0.1.0'}"), "no lower bound of 1.0.0"),
    ("requires_ansible", RUNTIME, "requires_ansible: '>=2.16.0,<2.20'", "is '>=2.16.0,<2.20'"),
    ("execution_environment", "bindep.txt", None, "bindep.txt does not exist"),
    ("plugin_folders", "plugins/models/x.py", "", "plugins/models is no folder"),
    ("other_folders", "playbooks/x.yml", "- '{{ playbook_dir }}/../docs/x'", "uses docs"),
    ("documented", MADE_UP, "DOCUMENTATION = 'module: x'", "has no EXAMPLES"),
    ("full_names", MADE_UP, made_up(module="copy"), "names copy"),
    ("full_names", MADE_UP, made_up(fragment="connection.wiki"), "names connection.wiki"),
    ("version_added", MADE_UP, made_up(version="9.0.0"), "has the version_added 9.0.0"),
    ("contributing", "CONTRIBUTING.md", None, "there is no CONTRIBUTING.md"),
    ("changelog", "changelogs/changelog.yaml", "releases: {}", "has no release 1.0.0"),
    ("semantic_versioning", *replaced(README, "https://semver.org", ""), "README.md lacks"),
    ("info_names", "plugins/modules/made_up.py", made_up(), "made_up.py only reads"),
    ("facts_names", MADE_UP, made_up(returned="ansible_facts"), "returns facts"),
    ("licences", MADE_UP, "x = 1", "names no licence"),
    ("licences", "LICENSE", "MIT", "LICENSE is another one"),
    (
        "tested_cores",
        *replaced(NIGHTLY, '{release: "2.18"', '{release: "2.17"'),
        "ansible-core 2.18",
    ),
    ("workflows", *replaced(NIGHTLY, "43 3 * * *", "43 3 1 * *"), "every night"),
    ("workflows", *replaced(TEST, "  pull_request:\n", ""), "on pull_request"),
    ("workflows", *replaced(RELEASE, "tags:", "branches:"), "on tags"),
    ("workflows", *replaced(RELEASE, f"./{NIGHTLY}", f"./{TEST}"), "without tests"),
    ("sanity", "tests/sanity/ignore-2.22.txt", "x", "ignores tests"),
    ("idempotence", MADE_UP, made_up(), "does not say why"),
    ("states", MADE_UP, made_up(state="list"), "has the state list"),
    ("info_check_mode", MADE_UP, made_up(), "does not support check mode"),
    ("readme_sections", *replaced(README, "## Use Cases", "## Use"), "no section Use Cases"),
    (
        "readme_links",
        *replaced(README, f"{ADDRESS}/blob/main/docs/ci.md", "docs/ci.md"),
        "relative",
    ),
    ("readme_links", *replaced(README, "docs/drift.md", "docs/drifts.md"), "docs/drifts.md"),
    ("readme_links", *replaced(README, "[drift]: ", "[drifts]: "), "define the link drift"),
    ("readme_pip", *replaced(README, "make demo", "pip install ansible-core"), "pip install"),
    ("python_requirements", "requirements.txt", "ansible-core>=2.16", "has the line ansible-core"),
    ("python_requirements", "meta/ee-requirements.txt", "requests<3", "has the line requests<3"),
]


@pytest.mark.parametrize(
    ("check", "path", "text", "problem"), CASES, ids=[f"{case[0]}-{case[3]}" for case in CASES]
)
def test_check_finds_what_is_missing(
    check: str, path: str, text: str | None, problem: str, tmp_path: Path
) -> None:
    found = inclusion.CHECKS[check](changed(tmp_path, path, text))
    assert problem in "\n".join(found)


def test_untested_python_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [pair for pair in matrix.PAIRS if pair.python != "3.14"]
    monkeypatch.setattr(matrix, "PAIRS", tuple(pairs))
    found = inclusion.controller_pythons(inclusion.Checkout(ROOT))
    assert found == ["no pair of tools/matrix.py has Python 3.14"]


def test_every_check_is_in_the_table_and_has_a_case() -> None:
    named = [each.get("check") for section in inclusion.table() for each in section["requirements"]]
    assert sorted(filter(None, named)) == sorted(inclusion.CHECKS)
    assert {case[0] for case in CASES} == set(inclusion.CHECKS) - {"controller_pythons"}
    assert all("None" not in section["url"] for section in inclusion.table())


def test_verdicts(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"holds": lambda _checkout: [], "lacks": lambda _checkout: ["a problem"]}
    monkeypatch.setattr(inclusion, "CHECKS", checks)
    monkeypatch.setattr(
        inclusion,
        "table",
        lambda: [
            {
                "section": "Files",
                "url": "https://example.org",
                "requirements": [
                    {"text": "First", "check": "holds"},
                    {"text": "Second", "check": "lacks"},
                    {"text": "Third", "check": "lacks", "open": "next week"},
                    {"text": "Fourth", "by_hand": "look"},
                ],
            }
        ],
    )
    assert inclusion.main() == 1
    assert capsys.readouterr().out.splitlines() == [
        *("", "Files: https://example.org", "pass    First", "FAIL    Second"),
        *("        - a problem", "open    Third", "        - next week"),
        *("by hand Fourth", "        - look", "", "1 open, 1 by hand", "1 passed, 1 failed"),
    ]
