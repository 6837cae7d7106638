# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the SSH interface, for an SSH server that forces this program for a login.

    ForceCommand python -m sandbox.ci.commands SEED

The file SEED is JSON. It contains `plugins` and `scripts` as in a seed of the CI server, and
`state`, which is written back. If `denied` is set, the account has no permission. `seconds` is the
duration of a command. Server facts [ci-17]: there is no shell; `groovy =` reads the script from
standard input. The exit codes are 0, 1 (exception, with its trace on standard error), 2 (bad
arguments), 3 (unknown plugin) and 6 (no permission).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from sandbox.ci.plugins import plugin_manager
from sandbox.ci.scripts import scripts


def run(command: str, given: str, seed: dict[str, Any]) -> tuple[int, str, str]:
    """Run a command; return the exit code, standard output and standard error.

    Scripts change `seed["state"]`.
    """
    name, _blank, arguments = command.partition(" ")
    if seed.get("denied"):
        return 6, "", "\nERROR: the account is missing the Overall/Administer permission\n"
    if name == "groovy" and arguments == "=":
        output, trace = scripts.command(given, seed.get("scripts") or [], seed["state"])
        return (0, output, "") if trace is None else (1, output, f"\nERROR: Unexpected\n{trace}")
    if name == "list-plugins":
        known = seed.get("plugins") or []
        chosen = [one for one in known if arguments in ("", one["shortName"])]
        if arguments and not chosen:
            return 3, "", f"\nERROR: No plugin with the name '{arguments}' found\n"
        return 0, plugin_manager.lines(chosen), ""
    return 2, "", f'ERROR: No such command "{command}"\n'


def main(arguments: list[str]) -> int:
    file = Path(arguments[0])
    seed = {"state": {}, **json.loads(file.read_text(encoding="utf-8"))}
    given = sys.stdin.buffer.read().decode("utf-8")
    time.sleep(float(seed.get("seconds") or 0))
    code, output, words = run(os.environ.get("SSH_ORIGINAL_COMMAND", ""), given, seed)
    file.write_text(json.dumps(seed), encoding="utf-8")
    sys.stdout.buffer.write(output.encode("utf-8"))
    sys.stderr.write(words)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
