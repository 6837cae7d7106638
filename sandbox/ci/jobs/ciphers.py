# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in configurations: shown as `{AQAA...}`, another text at each save.

Server facts [ci-15, ci-21]. No real cipher, but nobody reads the secret by looking.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets

# what the server's own texts begin with: a version, and the length of the initialization vector;
# then the length of the data, the vector, the data
_HEAD = bytes.fromhex("0100000010")
_IV = _BLOCK = 16
MASK = "********"


def encrypt(value: str, iv: bytes | None = None) -> str:
    """The secret as it is written; without an initialization vector with a new one."""
    iv = secrets.token_bytes(_IV) if iv is None else iv
    plain = value.encode("utf-8")
    rest = _BLOCK - len(plain) % _BLOCK
    plain += bytes([rest]) * rest
    data = _HEAD + len(plain).to_bytes(4, "big") + iv + _mixed(plain, iv)
    return "{" + base64.b64encode(data).decode("ascii") + "}"


def decrypt(text: str) -> str | None:
    """The secret; None where the text is none of ours, hence a secret in plain text."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        data = base64.b64decode(text[1:-1], validate=True)
        begin = len(_HEAD) + 4
        iv, hidden = data[begin : begin + _IV], data[begin + _IV :]
        if not data.startswith(_HEAD) or not hidden:
            return None
        plain = _mixed(hidden, iv)
        return plain[: -plain[-1]].decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return None


def _mixed(data: bytes, iv: bytes) -> bytes:
    blocks = (
        hashlib.sha256(iv + n.to_bytes(4, "big")).digest() for n in range(len(data) // 32 + 1)
    )
    return bytes(a ^ b for a, b in zip(data, b"".join(blocks), strict=False))
