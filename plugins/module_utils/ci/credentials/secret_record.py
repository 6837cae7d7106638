# SPDX-License-Identifier: GPL-3.0-or-later
"""Record a salted digest of a secret in a description, so that the next run can compare it.

Server fact [ci-40]: no response shows a secret, and everybody who sees the credential sees its
description. So the digest is slow to compute, and its salt is random.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_ROUNDS = 100_000
_SALT, _DIGEST = 8, 16  # bytes
_RECORD = re.compile(
    rf"\s?\[toolchain pbkdf2:([0-9a-f]{{{2 * _SALT}}}):([0-9a-f]{{{2 * _DIGEST}}})\]\s*\Z"
)


def record_of(secret: str) -> str:
    """Return a new record of a secret."""
    salt = secrets.token_bytes(_SALT)
    return f"[toolchain pbkdf2:{salt.hex()}:{_digest(secret, salt)}]"


def split(description: str) -> tuple[str, str]:
    """Return a description without its record, and the record; "" if there is none."""
    found = _RECORD.search(description)
    return (description, "") if found is None else (description[: found.start()], found[0].strip())


def joined(description: str, record: str) -> str:
    """Return a description with a record."""
    return f"{description} {record}".strip() if record else description


def matches(record: str, secret: str) -> bool:
    """Return whether a record was made of this secret."""
    found = _RECORD.search(record)
    return found is not None and hmac.compare_digest(
        _digest(secret, bytes.fromhex(found[1])), found[2]
    )


def _digest(secret: str, salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, _ROUNDS, _DIGEST).hex()
