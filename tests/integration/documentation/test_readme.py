# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the release of the README, and compare the recap of its second run."""

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
    assert max(map(len, play.splitlines())) <= 80
    # a real project has an inventory
    variables = {"ANSIBLE_INVENTORY_UNPARSED_WARNING": "false"} | {
        f"TOOLCHAIN_{service.upper()}_{name.upper()}": value
        for service in ("repo", "tracker")
        for name, value in connections.connection(service, sandbox.urls[service]).items()
    }
    first, second = (
        playbook.run(tmp_path, yaml.safe_load(play), variables=variables) for _run in range(2)
    )
    assert (first.code, second.code) == (0, 0), first.output
    lines = [" ".join(line.split()) for line in second.output.splitlines() if line.strip()]
    recap = [re.sub(r" \*{3,}$", " ***", line) for line in lines[-2:]]
    assert COMMAND + "\n".join(recap) + "\n" == shown
