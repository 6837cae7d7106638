# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the commands of the tutorial on a sandbox, and compare what they print."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from sandbox.client import Sandbox
from tests.helpers import playbook

PAGE = (Path(__file__).resolve().parents[3] / "docs/tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"```(sh|text|yaml)\n(.*?)```", re.DOTALL)
#: The base address of the sandbox in the tutorial.
BASE = "http://127.0.0.1:8099"


def test_tutorial_prints_what_it_says(fresh: Callable[[str], Sandbox], tmp_path: Path) -> None:
    own = fresh("real").urls["ci"].removesuffix("/ci")
    assert len(own) >= len(BASE)  # the columns of the table depend on it
    environment = playbook.environment(tmp_path)
    del environment["ANSIBLE_CALLBACKS_ENABLED"]
    environment["ANSIBLE_STDOUT_CALLBACK"] = "delivery.toolchain.plan"
    programs = str(Path(sys.executable).parent)
    environment["PATH"] = f"{programs}:{environment['PATH']}"
    _start, _columns, *blocks = BLOCK.findall(PAGE)
    printed, compared = "", 0
    for kind, text in blocks:
        if kind == "yaml":
            (tmp_path / "settings.yml").write_text(text.replace(BASE, own), encoding="utf-8")
        elif kind == "text":
            told = " ".join(printed.replace(own, BASE).replace(f"{tmp_path}/", "").split())
            for line in filter(None, text.splitlines()):
                assert " ".join(line.split()) in told, printed
                compared += 1
        else:
            printed = _run(text.replace(BASE, own), tmp_path, environment)
    assert compared == 16


def _run(text: str, folder: Path, environment: dict[str, str]) -> str:
    """Run the commands of a block, and return what they print."""
    program, *arguments = shlex.split(text)
    if program == "ansible-playbook":
        done = playbook.execute(arguments, folder, environment)
    else:
        command = ["bash", "-c", text.replace("\n  ", " ")]
        done = playbook.run_program(command, folder, environment)
    assert done.returncode == 0, done.stdout
    return done.stdout
