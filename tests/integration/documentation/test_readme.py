# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the release of the README, and compare its terminal output."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import yaml

from sandbox.client import Sandbox
from tests.helpers import connections, playbook

README = (Path(__file__).resolve().parents[3] / "README.md").read_text("utf-8")
COMMAND = "$ ansible-playbook release.yml\n"


def test_release_prints_the_output_shown_in_the_readme(
    fresh: Callable[[str], Sandbox], tmp_path: Path
) -> None:
    sandbox = fresh("real")
    (play,) = re.findall(r"```yaml\n(- name: Release .*?)```", README, re.DOTALL)
    (shown,) = re.findall(r"```text\n(\$ .*?)```", README, re.DOTALL)
    assert len(play.splitlines()) <= 15
    # a real project has an inventory
    variables = {"ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"} | {
        f"TOOLCHAIN_{service.upper()}_{name.upper()}": value
        for service in ("repo", "tracker")
        for name, value in connections.connection(service, sandbox.urls[service]).items()
    }
    outputs = []
    for _run in range(2):
        run = playbook.run(tmp_path, yaml.safe_load(play), variables=variables)
        assert run.code == 0, run.output
        lines = [re.sub(r" \*{3,}$", " ***", line.rstrip()) for line in run.output.splitlines()]
        outputs.append(COMMAND + "\n".join(lines).strip() + "\n")
    assert "\n".join(outputs) == shown, "\n".join(outputs)
