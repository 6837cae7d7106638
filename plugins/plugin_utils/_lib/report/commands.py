# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the commands that a page and the terminal show, with the settings of the run [C9]."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible import constants

from ....module_utils._lib.core.secret import is_secret_name
from ..findings import RULED
from .contents import Contents

#: Maximum number of findings that a command names by their ids.
MAX_IDS = 5
_NAME = re.compile(r"""(\w+)["']?\s*[=:]""")
_PLAIN = re.compile(r"[\w./@%+,-]+")
#: Options of the command line that a run with the same settings needs, with their names in Ansible.
_OPTIONS = {
    "--limit": "subset",
    "--vault-id": "vault_ids",
    "--vault-password-file": "vault_password_files",
}
#: Variables with the key of the seal: secrets that `is_secret_name` does not recognise.
_KEYS = ("drift_plan_key", "enforce_plan_key")


def commands(
    given: Mapping[str, Any], folder: Path | None, mask: Callable[[str], str]
) -> dict[str, str]:
    """Return the beginnings of the commands `enforce` and `adopt` for a run with a sealed plan.

    The page adds the id of a finding. They are for the working directory of the run.

    :param given: options of the command line
    :param folder: folder of the report; without one there is no plan, and no command `adopt`
    :param mask: masks secrets in a string
    :return: `enforce`, `adopt`, and `secrets`: the names of variables that are left out because
        their values are secrets
    """
    shown, secrets = _variables(given.get("extra_vars") or (), mask)
    settings = [*_inventories(given), *_options(given), *shown]
    left_out = ", ".join(secrets)
    if folder is None:
        return {"enforce": _command("enforce", settings), "adopt": "", "secrets": left_out}
    place = _near(folder)
    plan = ["-e", _variable("enforce_plan", f"{place}/plan.json")]
    adopt = ["-e", _variable("adopt_report", place)]
    return {
        "enforce": _command("enforce", [*settings, *plan]),
        "adopt": _command("adopt", [*settings, *adopt]),
        "secrets": left_out,
    }


def next_steps(contents: Contents, shown: Mapping[str, str]) -> list[str]:
    """Return the lines with the commands that adopt or enforce what a run has found.

    :param shown: result of :func:`commands`
    """
    drift = [finding for finding in contents.findings if finding["status"] == "drift"]
    if not drift:
        return []
    adopted = [finding for finding in drift if finding["kind"] not in RULED]
    lines = []
    if shown["adopt"] and adopted:
        chosen = ",".join(str(finding["id"]) for finding in adopted)
        if len(adopted) > MAX_IDS:
            chosen = json.dumps({"adopt_findings": [{"name": "**"}]})
        else:
            chosen = f"adopt_findings={chosen}"
        missing = any(finding["action"] == "create" for finding in adopted)
        more = ["-e", chosen, *(["-e", "adopt_deletions=true"] if missing else [])]
        lines.append(f"To keep what is on the server:  {shown['adopt']} {shlex.join(more)}")
    lines.append(f"To restore what is in Git:      {shown['enforce']}")
    if shown["secrets"]:
        lines.append(f"Add -e with {shown['secrets']}, which are not shown.")
    return lines


def _command(name: str, arguments: Sequence[str]) -> str:
    return shlex.join(["ansible-playbook", f"delivery.toolchain.{name}", *arguments])


def _variables(given: Sequence[Any], mask: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """Return the options for extra variables without secrets, and the names of the others."""
    shown: list[str] = []
    secrets: list[str] = []
    for one in map(str, given):
        if one.startswith("@"):
            shown += ["-e", f"@{_near(Path(one[1:]))}"]
            continue
        names = _NAME.findall(one)
        secret = [name for name in names if is_secret_name(name) or name in _KEYS]
        if secret or mask(one) != one:
            secrets += secret or names[:1]
        else:
            shown += ["-e", one]
    return shown, secrets


def _inventories(given: Mapping[str, Any]) -> Iterator[str]:
    sources = given.get("inventory") or ()
    if list(sources) == list(constants.DEFAULT_HOST_LIST):
        return
    for source in map(str, sources):
        yield from ("-i", source if "," in source else _near(Path(source)))


def _options(given: Mapping[str, Any]) -> Iterator[str]:
    for option, name in _OPTIONS.items():
        values = given.get(name) or ()
        for value in [values] if isinstance(values, str) else values:
            yield from (option, str(value))
    if given.get("ask_vault_pass"):
        yield "--ask-vault-password"


def _near(path: Path) -> str:
    """Return a path below the working directory as a relative path, else as an absolute one."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def _variable(name: str, value: str) -> str:
    return f"{name}={value}" if _PLAIN.fullmatch(value) else json.dumps({name: value})
