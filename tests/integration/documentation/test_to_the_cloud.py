# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the commands of the guide to the Cloud on two sandboxes, and compare what they print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import yaml

from sandbox.client import Sandbox
from tests.helpers import playbook

GUIDE = (Path(__file__).resolve().parents[3] / "docs/to-the-cloud.md").read_text("utf-8")
BLOCK = re.compile(r"```(sh|text|yaml)\n(.*?)```", re.DOTALL)
#: Base addresses of the two sandboxes in the guide.
OLD, CLOUD = "http://127.0.0.1:8099", "http://127.0.0.1:8098"


def test_guide_prints_what_it_says(tmp_path: Path) -> None:
    section = GUIDE.partition("\n## Try it on the sandbox\n")[2].partition("\n## ")[0]
    blocks = BLOCK.findall(section)
    files = {text.split()[1]: text for kind, text in blocks if kind == "yaml"}
    assert list(files) == ["old.yml", "cloud.yml", "servers.yml"]
    seeds = [yaml.safe_load(files[name]) for name in ("old.yml", "cloud.yml")]
    with Sandbox.start(seeds[0], None) as old, Sandbox.start(seeds[1], None) as cloud:
        addresses = {base: _base(one) for base, one in ((OLD, old), (CLOUD, cloud))}
        for name, text in files.items():
            own = re.sub("|".join(addresses), lambda found: addresses[found[0]], text)
            (tmp_path / name).write_text(own, "utf-8")
        assert _run_all(blocks, tmp_path) == 14
        assert old.requests(writes=True) == []


def _base(sandbox: Sandbox) -> str:
    return sandbox.urls["wiki"].removesuffix("/wiki")


def _run_all(blocks: list[tuple[str, str]], folder: Path) -> int:
    """Run the commands after the start of the sandboxes. Return the number of compared lines."""
    environment = playbook.environment(folder)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
    environment["ANSIBLE_STDOUT_CALLBACK"] = "delivery.toolchain.plan"
    start, *commands = [block for block in blocks if block[0] != "yaml"]
    assert start[1].count("-m sandbox --port") == 2
    printed, compared = "", 0
    for kind, text in commands:
        if kind == "text":
            told = " ".join(printed.split())
            for line in text.splitlines():
                assert " ".join(line.split()) in told, printed
                compared += 1
        elif text.startswith("ansible-playbook"):
            done = playbook.execute(shlex.split(text)[1:], folder, environment)
            assert done.returncode == 0, done.stdout
            printed = done.stdout
        else:
            done = playbook.run_program(["bash", "-c", text], folder, environment)
            assert done.returncode == 0, done.stdout
    return compared
