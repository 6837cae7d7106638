# SPDX-License-Identifier: GPL-3.0-or-later
"""Test `examples/` as shipped: the inventories, the vault and every playbook of a first week."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.helpers.play_server import PlayServer

Fresh = Callable[[str], Sandbox]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RECAP = re.compile(r"^localhost\s*:.*?changed=(\d+).*?failed=(\d+)", re.MULTILINE)
#: The vault password in the README.
VAULT_PASSWORD = "example"
VERSION = ("-e", "app_version=1.4.0")
#: The playbooks in the order of a first week, their arguments, and the number of changed tasks.
WEEK: dict[str, tuple[tuple[str, ...], int]] = {
    "look": ((), 0),
    "deploy": (VERSION, 1),
    "build": (VERSION, 1),
    "promote": (VERSION, 2),
    "notes": (("-e", "app_version=1.0.0"), 1),
    "gate": (("-e", "app_analysis_build=build_10"), 0),
    "drift": (("-e", "drift_report=reports/staging"), 5),
    "drift_summary": (("-e", "summary_reports=reports", "-e", "summary_folder=summary"), 0),
    "enforce": ((), 4),
    "housekeeping": ((), 0),
    "release": (("-e", "app_version=1.5.0"), 5),
    "release_waits": (("-e", '{"waiting": {"reason": "a freeze"}}'), 0),
}
_SECONDS = 300
#: Read-only playbooks: they have no changes to predict.
LOOKS = ("look", "gate", "drift", "drift_summary", "release_waits")


class Examples:
    """A copy of the examples with sandboxes as the staging and production servers."""

    def __init__(self, folder: Path, staging: Sandbox, production: Sandbox) -> None:
        self.folder = folder / "examples"
        shutil.copytree(EXAMPLES, self.folder)
        (self.folder / ".vault-password").write_text(VAULT_PASSWORD, encoding="utf-8")
        for name, sandbox in (("staging", staging), ("production", production)):
            file = self.folder / "inventories/group_vars" / name / "connections.yml"
            text = file.read_text(encoding="utf-8")
            for service, url in sandbox.urls.items():
                text, count = re.subn(
                    rf"(toolchain_{service}_url: )https://\S*\bexample\.org\S*", rf"\1{url}", text
                )
                assert count == 1, service
            file.write_text(text, encoding="utf-8")
        self._environment = playbook.environment(self.folder)
        del self._environment["ANSIBLE_CALLBACKS_ENABLED"]
        # the callback of the examples does not count
        self._environment["ANSIBLE_STDOUT_CALLBACK"] = "default"
        self._server: PlayServer | None = None

    @contextmanager
    def served(self) -> Iterator[None]:
        """Let a server with the settings of the examples run the playbooks."""
        folder = self.folder.parent / "server"
        folder.mkdir()
        settings = {"ANSIBLE_CONFIG": str(self.folder / "ansible.cfg")}
        self._server = PlayServer(folder, {**self._environment, **settings})
        try:
            yield
        finally:
            self._server.stop()

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [f"playbooks/{name}.yml", *arguments]
        if self._server is None:
            return playbook.execute(command, self.folder, self._environment)
        program = str(Path(sys.executable).parent / "ansible-playbook")
        return self._server.run([program, *command], self.folder, self._environment, _SECONDS)

    def changed(self, name: str, *arguments: str) -> int:
        """Run a playbook, which must not fail. Return the number of changed tasks, or of predicted
        changes.
        """
        run = self.run(name, *arguments)
        assert run.returncode == 0, run.stdout
        assert connections.LTOKEN not in run.stdout
        counts = RECAP.search(run.stdout)
        assert counts is not None, run.stdout
        return int(counts.group(1))


@pytest.fixture(scope="module")
def production() -> Iterator[Sandbox]:
    with Sandbox.start(flavour="real") as sandbox:
        yield sandbox


@pytest.fixture
def examples(fresh: Fresh, production: Sandbox, tmp_path: Path) -> Examples:
    production.reset()
    return Examples(tmp_path, fresh("real"), production)


def test_first_week_runs_on_staging(examples: Examples, production: Sandbox) -> None:
    """Run every playbook, then in check mode, which predicts no change. The contract cases verify
    predictions of changes, and that a second run changes nothing.
    """
    with examples.served():
        for name, (arguments, changes) in WEEK.items():
            assert examples.changed(name, *arguments) == changes, name
            if name not in LOOKS:
                assert examples.changed(name, *arguments, "--check") == 0, name
    assert production.requests() == []


def test_first_week_contains_every_playbook() -> None:
    assert set(WEEK) == {path.stem for path in (EXAMPLES / "playbooks").glob("*.yml")}


def test_production_is_used_only_if_named(
    examples: Examples, production: Sandbox, fresh: Fresh
) -> None:
    examples.changed("look", "-i", "inventories/production.yml")
    assert {request["service"] for request in production.requests()} == set(connections.LOGINS)
    assert fresh("real").requests() == []


def test_look_names_the_error_kind_of_each_unavailable_service(examples: Examples) -> None:
    run = examples.run("look", "-e", "toolchain_wiki_token=wrong-token-1234567890")
    assert run.returncode == 2
    assert re.search(r'"wiki.*: .*auth', run.stdout), run.stdout
    assert re.search(r'"repo.*: .*ok', run.stdout), run.stdout


def test_requirements_allow_this_version() -> None:
    def load(path: Path) -> Any:
        return yaml.safe_load(path.read_text(encoding="utf-8"))

    (wanted,) = load(EXAMPLES / "requirements.yml")["collections"]
    version = load(EXAMPLES.parent / "galaxy.yml")["version"]
    assert wanted["version"] == f">={version},<{int(version.split('.')[0]) + 1}.0.0"
