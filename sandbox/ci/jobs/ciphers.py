# SPDX-License-Identifier: GPL-3.0-or-later
"""Encrypt secrets in configurations as `{AQAA...}`, differently in each save [ci-15, ci-21].

This is no real encryption; it only hides a secret from view.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets

# First bytes of the server's encrypted strings: a version, and the length of the initialization
# vector. The length of the data, the vector and the data follow.
_HEAD = bytes.fromhex("0100000010")
_IV = _BLOCK = 16
MASK = "********"


def encrypt(value: str, iv: bytes | None = None) -> str:
    """Encrypt a secret. Without `iv`, use a new initialization vector."""
    iv = secrets.token_bytes(_IV) if iv is None else iv
    plain = value.encode("utf-8")
    rest = _BLOCK - len(plain) % _BLOCK
    plain += bytes([rest]) * rest
    data = _HEAD + len(plain).to_bytes(4, "big") + iv + _mixed(plain, iv)
    return "{" + base64.b64encode(data).decode("ascii") + "}"


def decrypt(text: str) -> str | None:
    """Decrypt a secret. Return `None` for a string that is not encrypted."""
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
