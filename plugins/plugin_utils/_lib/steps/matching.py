# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the accounts of other servers for the users that the folder of the desired state names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....module_utils._lib.core.errors import invalid
from ....module_utils._lib.core.files import atomic_write, make_folders
from .. import account_matches, accounts, desired_state, enforcement
from ..report import writing
from .folder import folder_of
from .run import Result, Run

_FROM, _TO = "match_accounts_from", "match_accounts_to"
_FILE = "match_accounts_file"
_YAML = (".yml", ".yaml")


def users_without_account(run: Run, keys: Sequence[Mapping[str, Any]] = ()) -> Result:
    """Return the names of the users to match, and the user keys whose names only the wiki knows.

    :param keys: users of the old wiki by key
    """
    found = {row["key"]: row["account"] for row in keys}
    wanted, known = _wanted(run)
    wanted = [user for user in wanted if user.name not in known.of(user.service)]
    keys_of_wiki = [user.name for user in wanted if user.is_key]
    names = [found.get(user.name) if user.is_key else user.name for user in wanted]
    return {
        "users": list(dict.fromkeys(filter(None, names))),
        "user_keys": keys_of_wiki if run.value(_FROM).get("wiki") else [],
    }


def _wanted(run: Run) -> tuple[list[account_matches.User], accounts.Accounts]:
    """Return the users that the folder names, and the accounts in the file."""
    _require_tracker(run, _FROM)
    services = [name for name in account_matches.SERVICES if name in _require_tracker(run, _TO)]
    reading = desired_state.Reading(run.load, lambda name: name, names_only=True)
    states = desired_state.parts(folder_of(run), reading)
    file, shown = _file(run)
    is_new = not file.exists() or (file.is_file() and not _content(file))
    known = accounts.Accounts() if is_new else accounts.read(shown, run.path)
    return account_matches.named(states, services), known


def _content(file: Path) -> list[str]:
    """Return the lines of a file without blank lines and comments."""
    lines = file.read_text("utf-8-sig", "replace").splitlines()
    return [line for line in lines if line.strip() not in ("", "---") and not line.startswith("#")]


def _require_tracker(run: Run, variable: str) -> Mapping[str, Any]:
    """Return the connections in a variable. Raises `invalid` without one to a tracker."""
    problem = enforcement.problem_of_connections(variable, run.variables, run.template)
    if problem:
        raise invalid(problem.rstrip("."))
    given = run.value(variable, {})
    if not given.get("tracker"):
        raise invalid(
            f"{variable} has no connection to a tracker: set it to connections by service, such as"
            " tracker: {url: ...}. The tracker knows the email addresses, also for the wiki"
        )
    return dict(given)


def _file(run: Run) -> tuple[Path, str]:
    named = str(run.value(_FILE, ""))
    file = run.path(named)
    if file.suffix.lower() not in (".csv", *_YAML):
        raise invalid(f"{_FILE} must be the path of a CSV or YAML file, such as accounts.csv")
    if writing.is_in_collection(file):
        raise invalid(f"{_FILE}: {file} is in the installed collection: use a folder of your own")
    return file, named


def addresses_of_users(run: Run, users: Sequence[Mapping[str, Any]]) -> Result:
    """Return the email addresses of users of the old server."""
    found = (match["email"] for row in users for match in row["matches"] if match["email"])
    return {"emails": list(dict.fromkeys(found))}


def write_accounts(
    run: Run,
    keys: Sequence[Mapping[str, Any]],
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
) -> Result:
    """Complete the mapping file, unless in check mode.

    :param keys: users of the old wiki by key
    :param old: users of the old tracker by name
    :param new: users of the new tracker by email address
    """
    wanted, known = _wanted(run)
    matches = account_matches.matched(wanted, account_matches.Servers.of(keys, old, new), known)
    file, _shown = _file(run)
    before = file.read_bytes().decode("utf-8") if file.exists() else ""
    is_yaml = file.suffix.lower() in _YAML
    after = account_matches.completed(before, matches, is_yaml=is_yaml)
    if after != before and not run.check_mode:
        make_folders(str(file.parent))
        with atomic_write(str(file)) as stream:
            stream.write(after.encode("utf-8"))
    lacking = [each for each in matches if not each.account]
    others = [name for name in run.value(_TO) if name not in account_matches.SERVICES]
    return {
        "changed": after != before,
        "diff": {"before": before, "after": after},
        "matched": len(matches) - len(lacking),
        "unmatched": [
            {
                "service": each.user.service,
                "name": each.user.name,
                "status": each.status,
                "reason": each.reason,
            }
            for each in lacking
        ],
        "lines": [
            f"{len(matches) - len(lacking)} accounts found, {len(lacking)} not found.",
            *(each.line for each in lacking),
            *(f"Accounts of {name} are not matched: only tracker and wiki." for name in others),
        ],
    }
