# SPDX-License-Identifier: GPL-3.0-or-later
"""Classify connection errors: their kind, their message, and whether to retry the request."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator

from ..address import UnfitRequest
from ..errors import ADDRESS_LIMIT, Kind, ToolchainError, shorten
from ..secret import clean_url
from .bodies import BodyError, SlowBody, Undecodable
from .messages import Failure, Request

# By OpenSSL code (X509_V_ERR_...): certificate expired, wrong host name, wrong IP address.
_CERTIFICATE_REMEDIES = {
    10: "renew the certificate",
    62: "check the host of url",
    64: "check the host of url",
}
# TLS alerts of a server that requires a client certificate or rejects the given certificate.
_CERTIFICATE_ALERT = re.compile(
    r"ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|HANDSHAKE_FAILURE|UNKNOWN_CA"
    r"|ACCESS_DENIED|NO_CERTIFICATE)"
)
_CLIENT_CERTIFICATE = "a client certificate (client_cert, client_key)"
# Prefix of the standard library's message if a proxy rejects CONNECT.
_NO_TUNNEL = "Tunnel connection failed"
_CHECK_PROXY = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
# Maximum length of a library's message, which may contain input from a server or a proxy.
_MESSAGE_LIMIT = 300
# A closed connection is reported as lost, not as a TLS error.
_CLOSED_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)


def failure_of(error: Exception, request: Request, timeout: float) -> Failure:
    """Classify an error of the HTTP library.

    :param timeout: in seconds, for the message
    """
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    causes = list(_causes(error))
    connecting = (ConnectTimeoutError, NewConnectionError, ssl.SSLCertVerificationError)
    unsent = _is_invalid(error) or any(
        isinstance(cause, connecting)
        or _is_wrong_host(cause)
        or _tunnel_error(cause)
        or _wants_certificate(cause)
        for cause in causes
    )
    kind, reason, final = _reason(error, causes, timeout)
    outcome_unknown = not unsent and not request.reads
    url = clean_url(request.url)
    found = ToolchainError(
        kind,
        # without the query, which is often long
        f"{request.purpose}: {reason} ({shorten(url.partition('?')[0], ADDRESS_LIMIT)})",
        method=request.method,
        url=url,
        detail=reason,
        outcome_unknown=outcome_unknown,
    )
    return Failure(found, not final and (request.reads or unsent))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes, which the libraries store in several attributes."""
    seen: set[int] = set()
    todo: list[BaseException] = [error]
    while todo:
        cause = todo.pop()
        if id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        context = None if cause.__suppress_context__ else cause.__context__
        below = [cause.__cause__, context, getattr(cause, "reason", None), *cause.args]
        todo.extend(other for other in below if isinstance(other, BaseException))


def _is_wrong_host(cause: BaseException) -> bool:
    """Return whether urllib3 1, which compares host names itself, found a wrong host name."""
    return isinstance(cause, ValueError) and type(cause).__name__ == "CertificateError"


def _wants_certificate(cause: BaseException) -> bool:
    """Return whether the server ended the TLS handshake for lack of a valid client certificate."""
    reason = getattr(cause, "reason", None) if isinstance(cause, ssl.SSLError) else None
    return isinstance(reason, str) and _CERTIFICATE_ALERT.search(reason) is not None


def _tunnel_error(cause: BaseException) -> str | None:
    """Return the message of a proxy that rejected CONNECT, or `None` for other errors."""
    text = str(cause) if isinstance(cause, OSError) else ""
    return shorten(text, _MESSAGE_LIMIT) if text.startswith(_NO_TUNNEL) else None


def _reason(
    error: Exception, causes: list[BaseException], timeout: float
) -> tuple[Kind, str, bool]:
    """Return the kind and the message of an error, and whether retries are useless."""
    from urllib3.exceptions import ProxyError

    reason = _tls_reason(causes)
    if reason is not None:
        return "network", reason, True
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            reason = "cannot resolve the host name: check url"
        elif isinstance(cause, ConnectionRefusedError):
            reason = "the connection was refused: check host and port of url"
        else:
            continue
        if any(isinstance(other, ProxyError) for other in causes):
            reason = f"cannot reach the proxy: {_CHECK_PROXY}"
        return "network", reason, False
    reply = next(filter(None, map(_tunnel_error, causes)), None)
    if reply is not None:
        # a password that was rejected is not sent again
        return (
            "network",
            f"the proxy refused the connection ({reply}): {_CHECK_PROXY}",
            " 407 " in reply,
        )
    return _late_reason(causes, timeout) or _body_reason(error, causes)


def _late_reason(causes: list[BaseException], timeout: float) -> tuple[Kind, str, bool] | None:
    if any(isinstance(cause, SlowBody) for cause in causes):
        return "timeout", f"the response arrived slower than 1 KiB/s for {timeout:g} s", False
    from urllib3.exceptions import ConnectTimeoutError
    from urllib3.exceptions import TimeoutError as LibraryTimeout

    if any(isinstance(cause, ConnectTimeoutError) for cause in causes):
        return "timeout", f"no connection within {timeout:g} s", False
    if any(isinstance(cause, (LibraryTimeout, TimeoutError)) for cause in causes):
        return "timeout", f"no response within {timeout:g} s", False
    return None


def _body_reason(error: Exception, causes: list[BaseException]) -> tuple[Kind, str, bool]:
    if isinstance(error, Undecodable):
        return "protocol", "the body of the response cannot be decompressed", True
    if isinstance(error, BodyError):
        return "protocol", _message_of(error), True
    if _is_invalid(error):
        return "invalid", _message_of(error), True
    reason = f"the connection was lost ({_message_of(causes[-1])})"
    if any(isinstance(cause, ssl.SSLEOFError) for cause in causes):
        reason = f"{reason}: the server may require {_CLIENT_CERTIFICATE}"
    return "network", reason, False


def _tls_reason(causes: list[BaseException]) -> str | None:
    """Return the message for a TLS error, or `None` for other errors."""
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            remedy = _CERTIFICATE_REMEDIES.get(cause.verify_code, "set ca_path")
            return f"the server's certificate is not trusted ({cause.verify_message}): {remedy}"
        if _is_wrong_host(cause):
            message = _message_of(cause)
            return f"the server's certificate is not trusted ({message}): check the host of url"
        if _wants_certificate(cause):
            message = _message_of(cause)
            return (
                f"the server ended the TLS handshake ({message}): the server may require"
                f" {_CLIENT_CERTIFICATE}"
            )
    if any(isinstance(cause, _CLOSED_TLS) for cause in causes):
        return None
    from urllib3.exceptions import SSLError

    for kind in (ssl.SSLError, SSLError):
        for cause in causes:
            if isinstance(cause, kind):
                return (
                    f"the TLS handshake failed ({_message_of(cause)}): check scheme and port of url"
                )
    return None


def _is_invalid(error: Exception) -> bool:
    """Return whether the address, a header or the proxy of the request is invalid."""
    from requests.exceptions import InvalidHeader, InvalidSchema, InvalidURL

    return isinstance(error, (InvalidHeader, InvalidSchema, InvalidURL, UnfitRequest))


def _message_of(error: BaseException) -> str:
    text = str(error.strerror) if isinstance(error, OSError) and error.strerror else str(error)
    return shorten(text, _MESSAGE_LIMIT) or type(error).__name__
