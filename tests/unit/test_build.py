# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the time of an archive of the collection, and its bill of materials. `test_archive.py` of the
integration tests builds archives.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from tools import build, licences, sbom, tree

DIGEST = "0123456789abcdef" * 4


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    info = yaml_load((tree.ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    loaded = json.loads(sbom.document(info, DIGEST, 1_700_000_000))
    assert isinstance(loaded, dict)
    return loaded


def test_bill_of_materials_lists_archive_and_dependencies(bill: dict[str, Any]) -> None:
    whole = bill["metadata"]["component"]
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    assert whole["hashes"] == [{"alg": "SHA-256", "content": DIGEST}]
    assert (whole["group"], whole["name"]) == ("delivery", "toolchain")
    scopes = {component["name"]: component["scope"] for component in bill["components"]}
    assert (scopes["requests"], scopes["urllib3"], scopes["ansible-core"]) == ("required",) * 3
    assert (scopes["oauthlib"], scopes["requests-oauthlib"]) == ("optional",) * 2
    assert set(scopes).isdisjoint({"lxml", "pytest", "starlette"})


def test_bill_of_materials_has_unique_references(bill: dict[str, Any]) -> None:
    whole = bill["metadata"]["component"]["bom-ref"]
    components = [component["bom-ref"] for component in bill["components"]]
    assert len(components) == len(set(components))
    needs = {dependency["ref"]: dependency["dependsOn"] for dependency in bill["dependencies"]}
    assert sorted(needs) == sorted([whole, *components])
    reached, open_ = set(), [whole]
    while open_:
        reached.add(open_[-1])
        open_ += [each for each in needs[open_.pop()] if each not in reached]
    assert reached == {whole, *components}
    for component in bill["components"]:
        assert component["licenses"] == [{"expression": licences.of(component["name"])}]


def test_time_of_commit_is_the_default(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org"]
    when = {"GIT_AUTHOR_DATE": "@1000 +0000", "GIT_COMMITTER_DATE": "@2000 +0000"}
    for arguments in (["init", "--quiet"], ["commit", "--quiet", "--allow-empty", "-m", "first"]):
        subprocess.run([*git, *arguments], env={**os.environ, **when}, check=True)
    assert build.moment_of(tmp_path, {}) == 2000
    assert build.moment_of(tmp_path, {"SOURCE_DATE_EPOCH": "3000"}) == 3000


def test_missing_time_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="set SOURCE_DATE_EPOCH to seconds since 1970"):
        build.moment_of(tmp_path, {"SOURCE_DATE_EPOCH": ""})
    with pytest.raises(SystemExit, match="SOURCE_DATE_EPOCH is 'today': give seconds"):
        build.moment_of(tmp_path, {"SOURCE_DATE_EPOCH": "today"})


def test_missing_program_that_signs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="there is no gpg here: install GnuPG"):
        build.signature(b"", "nobody@example.com")
