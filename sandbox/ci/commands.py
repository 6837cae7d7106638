# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of the SSH interface. OpenSSH's server runs this program instead of a shell:

    ForceCommand python -m sandbox.ci.commands SEED

SEED is a JSON file with `plugins` and `scripts` as in a seed of the CI server, and `state`, which
is written back. If `denied` is set, the account has no permission. `seconds` is the duration of a
command.

Server facts [ci-17]: `groovy =` reads the script from standard input. The exit codes are 0, 1 for
an exception (with the stack trace on standard error), 2 for invalid arguments, 3 for an unknown
plugin, and 6 for a missing permission.
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


def run(command: str, stdin: str, seed: dict[str, Any]) -> tuple[int, str, str]:
    """Run a command. Return its exit code, standard output and standard error.

    :param seed: content of the file SEED; scripts change its `state`
    """
    name, _blank, arguments = command.partition(" ")
    if seed.get("denied"):
        return 6, "", "\nERROR: the account is missing the Overall/Administer permission\n"
    if name == "groovy" and arguments == "=":
        output, trace = scripts.command(stdin, seed.get("scripts") or [], seed["state"])
        return (0, output, "") if trace is None else (1, output, f"\nERROR: Unexpected\n{trace}")
    if name == "list-plugins":
        known = seed.get("plugins") or []
        chosen = [plugin for plugin in known if arguments in ("", plugin["shortName"])]
        if arguments and not chosen:
            return 3, "", f"\nERROR: No plugin with the name '{arguments}' found\n"
        return 0, plugin_manager.lines(chosen), ""
    return 2, "", f'ERROR: No such command "{command}"\n'


def main(arguments: list[str]) -> int:
    file = Path(arguments[0])
    seed = {"state": {}, **json.loads(file.read_text(encoding="utf-8"))}
    stdin = sys.stdin.buffer.read().decode("utf-8")
    time.sleep(float(seed.get("seconds") or 0))
    code, output, stderr = run(os.environ.get("SSH_ORIGINAL_COMMAND", ""), stdin, seed)
    file.write_text(json.dumps(seed), encoding="utf-8")
    sys.stdout.buffer.write(output.encode("utf-8"))
    sys.stderr.write(stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
