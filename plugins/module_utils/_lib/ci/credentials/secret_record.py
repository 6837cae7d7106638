# SPDX-License-Identifier: GPL-3.0-or-later
"""Store a salted digest of a secret in the description of a credential.

The next run compares the secret with this record. Server fact [ci-40]: no response contains a
secret, and every account that sees the credential sees its description. A slow digest with a random
salt makes it hard to guess the secret. The record also contains the fingerprint that the task knew
when it wrote the credential, because every write gives the credential another fingerprint.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_ROUNDS = 100_000
_SALT, _DIGEST = 8, 16  # bytes
_RECORD = re.compile(
    rf"\s?\[toolchain pbkdf2:([0-9a-f]{{{2 * _SALT}}}):([0-9a-f]{{{2 * _DIGEST}}})"
    r"(?::([0-9a-f]{32}))?\]\s*\Z"
)


def record_of(secret: str, replaced: str | None = None) -> str:
    """Return a record of a secret: salt and digest in brackets.

    :param replaced: the fingerprint before the write, if the task knows it
    """
    salt = secrets.token_bytes(_SALT)
    suffix = f":{replaced}" if replaced else ""
    return f"[toolchain pbkdf2:{salt.hex()}:{_digest(secret, salt)}{suffix}]"


def replaced_in(record: str) -> str | None:
    """Return the fingerprint that the recorded write replaced, or `None`."""
    found = _RECORD.search(record)
    return None if found is None else found[3]


def split(description: str) -> tuple[str, str]:
    """Split a description into the text without the record, and the record or ""."""
    found = _RECORD.search(description)
    return (description, "") if found is None else (description[: found.start()], found[0].strip())


def with_record(description: str, record: str) -> str:
    """Append a record to a description."""
    return f"{description} {record}".strip() if record else description


def matches(record: str, secret: str) -> bool:
    """Return whether the record contains the digest of this secret."""
    found = _RECORD.search(record)
    return found is not None and hmac.compare_digest(
        _digest(secret, bytes.fromhex(found[1])), found[2]
    )


def compared(
    is_recorded: bool | None, known: str | None, fingerprint: str | None, has_secret: bool
) -> str:
    """Compare the secret with the server: "same", "different" or "unknown".

    The digest in the description only tells which secret the last task wrote. A user may have
    changed it since; then the fingerprint differs from the one that the task knows.

    :param is_recorded: whether the record is that of the secret; `None` without record or secret
    :param known: the fingerprint that the task knows, if it is not older than the last write
    """
    if is_recorded is False:
        return "different"
    if fingerprint is None or known is None:
        return "unknown"
    if fingerprint != known:
        return "different"
    return "same" if is_recorded or not has_secret else "unknown"


def _digest(secret: str, salt: bytes) -> str:
    return hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, _ROUNDS, _DIGEST).hex()
