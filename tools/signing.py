# SPDX-License-Identifier: GPL-3.0-or-later
"""Sign files with GnuPG, as `ansible-galaxy collection verify --keyring` expects it."""

from __future__ import annotations

import subprocess

#: The environment variable with the fingerprint or address of the key.
KEY = "TOOLCHAIN_SIGNING_KEY"


def signature(content: bytes, key: str) -> bytes:
    """Return the detached signature of some content, as ASCII."""
    command = ["gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign"]
    try:
        done = subprocess.run(command, input=content, capture_output=True, check=False)
    except FileNotFoundError:
        raise SystemExit(f"{KEY} is set, but there is no gpg here: install GnuPG") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise SystemExit(f"gpg could not sign with the key of {KEY}: {said}")
    return done.stdout
