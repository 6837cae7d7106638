# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell from the tags of Git whether a folder was applied for an environment.

The tag `applied-NAME` marks the commit that was applied last for the environment NAME, and
`applied` that of a folder without environments. A folder outside of Git, such as the output of
`git archive`, has no tags, and nothing can be told.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection
from pathlib import Path

_GIT = ("git", "-c", "core.fsmonitor=false")
_SECONDS = 60
_TAG = "applied"


def problem(folder: Path, environment: str | None, known: Collection[str]) -> str:
    """Return why a folder is not what was applied for an environment, "" if it is or may be.

    :param environment: the chosen environment, or `None`
    :param known: names of all environments
    """
    own = _tree(folder, "HEAD")
    if not own:
        return ""
    tags = {name: _tree(folder, f"refs/tags/{_TAG}-{name}") for name in {*known, environment or ""}}
    others = sorted(name for name, tree in tags.items() if tree == own and name != environment)
    tag = f"{_TAG}-{environment}"
    if environment is None:
        if not others or _tree(folder, f"refs/tags/{_TAG}") == own:
            return ""
        return f"was applied for {', '.join(others)}: set desired_state_environment"
    if tags[environment] == own:
        return ""
    if tags[environment]:
        return f"is not what was applied for {environment}: the tag {tag} marks another state"
    if not others:
        return ""
    return (
        f"was applied for {', '.join(others)}, and not for {environment}: leave out"
        f" desired_state_previous in the first run for {environment}, and then set the tag {tag}"
    )


def doubt(folder: Path, environment: str | None, known: Collection[str]) -> str:
    """Return a warning about one tag that serves several environments, or ""."""
    own = _tree(folder, "HEAD") if environment and len(known) > 1 else ""
    if not own or _tree(folder, f"refs/tags/{_TAG}") != own:
        return ""
    if _tree(folder, f"refs/tags/{_TAG}-{environment}"):
        return ""
    return (
        f"desired_state_previous: the tag {_TAG} does not tell for which environment the folder was"
        f" applied. Use a tag for each, such as {_TAG}-{environment}: what one of them has removed"
        " would stay in the others for ever"
    )


def _tree(folder: Path, revision: str) -> str:
    """Return the id of the folder's content in a revision, "" if Git does not know it."""
    command = [*_GIT, "-C", str(folder), "rev-parse", "--verify", "--quiet", f"{revision}:./"]
    try:
        done = subprocess.run(  # noqa: S603 - no shell
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
