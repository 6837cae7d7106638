# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify OAuth 1.0a requests to tracker and wiki, which an RSA key of the consumer signs.

See RFC 5849, sections 3.2 and 3.4. The signature covers the query, but not a JSON body
[tracker-14].
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_public_key

_DIGESTS: dict[str, type[HashAlgorithm]] = {"RSA-SHA1": SHA1, "RSA-SHA256": SHA256}
_NEEDED = (
    "oauth_consumer_key",
    "oauth_token",
    "oauth_signature_method",
    "oauth_signature",
    "oauth_timestamp",
    "oauth_nonce",
)
_CLOCK_SECONDS = 300


class OAuthProblem(Exception):
    """Error for a rejected request. The string is the value of `oauth_problem`."""


@dataclass(frozen=True)
class Consumer:
    """A registered consumer. `public_key`: a key or certificate in PEM. `methods`: signatures."""

    key: str
    access_token: str
    public_key: str
    methods: Sequence[str]


@dataclass(frozen=True)
class SignedRequest:
    """A signed request.

    `url`: absolute, without query. `query`: percent-encoded. `parameters`: of the header.
    """

    method: str
    url: str
    query: str
    parameters: dict[str, str]


def header_parameters(authorization: str) -> dict[str, str]:
    """Parse the parameters of an `Authorization: OAuth ...` header."""
    parameters = {}
    for part in authorization.partition(" ")[2].split(","):
        name, _equals, value = part.strip().partition("=")
        parameters[unquote(name)] = unquote(value.strip('"'))
    return parameters


def verify(request: SignedRequest, consumer: Consumer, now_s: int) -> str:
    """Verify a request and return its timestamp and nonce. Raises `OAuthProblem`.

    :param now_s: current time in epoch seconds
    """
    parameters = request.parameters
    if any(name not in parameters for name in _NEEDED):
        raise OAuthProblem("parameter_absent")
    if parameters["oauth_consumer_key"] != consumer.key or not consumer.public_key:
        raise OAuthProblem("consumer_key_unknown")
    if parameters["oauth_token"] != consumer.access_token:
        raise OAuthProblem("token_rejected")
    if parameters["oauth_signature_method"] not in consumer.methods:
        raise OAuthProblem("signature_method_rejected")
    timestamp = parameters["oauth_timestamp"]
    if not timestamp.isdigit() or abs(int(timestamp) - now_s) > _CLOCK_SECONDS:
        raise OAuthProblem("timestamp_refused")
    _check_signature(request, consumer)
    return f"{timestamp}:{parameters['oauth_nonce']}"


def _check_signature(request: SignedRequest, consumer: Consumer) -> None:
    digest = _DIGESTS[request.parameters["oauth_signature_method"]]()
    try:
        signature = base64.b64decode(request.parameters["oauth_signature"], validate=True)
        _public_key(consumer.public_key).verify(
            signature, _base_string(request).encode(), padding.PKCS1v15(), digest
        )
    except (InvalidSignature, binascii.Error):
        raise OAuthProblem("signature_invalid") from None


def _public_key(pem: str) -> rsa.RSAPublicKey:
    data = pem.encode()
    is_certificate = "BEGIN CERTIFICATE" in pem
    key: object = (
        x509.load_pem_x509_certificate(data).public_key()
        if is_certificate
        else load_pem_public_key(data)
    )
    if not isinstance(key, rsa.RSAPublicKey):
        raise OAuthProblem("consumer_key_unknown")
    return key


def _base_string(request: SignedRequest) -> str:
    """Return the signature base string of RFC 5849, section 3.4.1."""
    pairs = parse_qsl(request.query, keep_blank_values=True)
    pairs += [
        (name, value)
        for name, value in request.parameters.items()
        if name not in ("oauth_signature", "realm")
    ]
    encoded = sorted((_encode(name), _encode(value)) for name, value in pairs)
    normalized = "&".join(f"{name}={value}" for name, value in encoded)
    parts = (request.method.upper(), request.url, normalized)
    return "&".join(_encode(part) for part in parts)


def _encode(text: str) -> str:
    return quote(text, safe="~")
