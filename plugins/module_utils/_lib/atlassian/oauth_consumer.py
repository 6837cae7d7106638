# SPDX-License-Identifier: GPL-3.0-or-later
"""Create the key and the certificate of an OAuth consumer [W5]: the module `oauth_consumer`.

An expired certificate is renewed with the same key, because the public key is registered on the
server.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ansible.module_utils.basic import missing_required_lib

from ..core.errors import ToolchainError, invalid
from ..core.files import atomic_write, read_bytes
from ..core.module.descriptor import Descriptor, reads
from ..core.module.typed_options import Option, PathText
from ..core.plan import Plan, plan

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    _LIBRARY_MISSING = False
except ImportError:
    _LIBRARY_MISSING = True

_KEY_MODE, _CERTIFICATE_MODE = 0o600, 0o644
_LONGEST_NAME = 64  # characters of a common name (X.520)
_EXPONENT = 65537


@dataclass(frozen=True)
class Pair:
    """The key and the certificate.

    :param key: `None` if the file is missing or must be replaced
    :param mode: permissions of the key file
    :param certificate: `None` if the file is missing or must be replaced
    """

    key: RSAPrivateKey | None = None
    mode: int = _KEY_MODE
    certificate: x509.Certificate | None = None


@dataclass(frozen=True)
class OauthConsumerOptions:
    """Options of `oauth_consumer`."""

    private_key: Annotated[str, Option(type="path", secret=False)]
    certificate: PathText
    common_name: str
    key_size: Annotated[Literal[2048, 3072, 4096], Option(secret=False)] = 2048
    valid_days: int = 365
    renew_before: int = 30
    force: bool = False


class OauthConsumerOperation:
    """Compare and write key and certificate. Raises `invalid` for contradictory options.

    :param now: the current time in UTC
    """

    descriptor: ClassVar = Descriptor(None, {"key": reads(), "sign": reads()})

    def __init__(
        self,
        task: None,
        options: OauthConsumerOptions,
        now: Callable[[], datetime] = lambda: datetime.now(timezone.utc),
    ) -> None:
        if _LIBRARY_MISSING:
            raise invalid(missing_required_lib("cryptography"))
        self._options, self._now = options, now
        self._name = options.common_name
        # links are followed, because mounted secrets are links
        self._key_path = os.path.realpath(options.private_key)
        self._certificate_path = os.path.realpath(options.certificate)
        valid, renew = self._options.valid_days, self._options.renew_before
        if not 1 <= len(self._name) <= _LONGEST_NAME:
            raise invalid(f"common_name must have 1 to {_LONGEST_NAME} characters")
        if not 0 <= renew < valid:
            raise invalid(
                f"renew_before is {renew}, but must be 0 or more and less than valid_days ({valid})"
            )
        if valid > (datetime.max.replace(tzinfo=timezone.utc) - self._now()).days:
            raise invalid(
                f"valid_days is {valid}, but a certificate cannot be valid beyond the year 9999"
            )
        if self._key_path == self._certificate_path:
            raise invalid("private_key and certificate must be different files")
        for path in (self._key_path, self._certificate_path):
            folder = os.path.dirname(path)
            if not os.path.isdir(folder):
                raise invalid(f"cannot create {path}: the folder {folder} does not exist")
            if os.path.isdir(path):
                raise invalid(f"{path} is a folder, but must be a file")

    # -- plan -------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        key, mode = self._read_key()
        certificate = self._read_certificate()
        current = {
            "private_key": _describe_key(key, mode),
            "certificate": _describe_certificate(certificate),
        }
        size, force = self._options.key_size, self._options.force
        if key is not None and key.key_size < size and not force:
            raise invalid(
                f"the key in {self._key_path} has {key.key_size} bits, which is less than key_size"
                f" ({size}). Set force to true to create a new key, and register that key"
            )
        if force:
            key = None
        if not self._is_good(key, certificate):
            certificate = None
        new_key = {"bits": self._options.key_size, "mode": f"{_KEY_MODE:04o}", "sha256": "new"}
        lasting = f"in {self._options.valid_days} days"
        new = {"common_name": self._name, "expires": lasting, "sha256": "new"}
        desired = {
            "private_key": _describe_key(key, mode & _KEY_MODE) or new_key,
            "certificate": _describe_certificate(certificate) or new,
        }
        found = plan(current, desired).with_result(consumer=self._describe(key, certificate))
        return found.with_data(Pair(key, mode, certificate))

    def _read_key(self) -> tuple[RSAPrivateKey | None, int]:
        """Return the key, `None` if there is none, and the permissions of its file."""
        if not os.path.exists(self._key_path):
            return None, _KEY_MODE
        key: object = None
        with suppress(ValueError, TypeError, UnsupportedAlgorithm):
            key = serialization.load_pem_private_key(
                read_bytes(self._key_path, "private_key"), password=None
            )
        if not isinstance(key, rsa.RSAPrivateKey):
            self._require_force(
                self._key_path, "an RSA private key in PEM format without a password"
            )
            return None, _KEY_MODE
        return key, stat.S_IMODE(os.stat(self._key_path).st_mode)

    def _read_certificate(self) -> x509.Certificate | None:
        if not os.path.exists(self._certificate_path):
            return None
        with suppress(ValueError):
            return x509.load_pem_x509_certificate(read_bytes(self._certificate_path, "certificate"))
        self._require_force(self._certificate_path, "a certificate in PEM format")
        return None

    def _require_force(self, path: str, wanted: str) -> None:
        if not self._options.force:
            raise invalid(f"{path} is not {wanted}: set force to true to replace it")

    def _is_good(self, key: RSAPrivateKey | None, certificate: x509.Certificate | None) -> bool:
        """Return whether the certificate has the key and the name, and is valid long enough."""
        moment = self._now()
        if key is None or certificate is None:
            return False
        left = _moment(certificate, "not_valid_after") - moment
        return (
            _spki(certificate.public_key()) == _spki(key.public_key())
            and _common_name(certificate) == self._name
            and _moment(certificate, "not_valid_before") <= moment
            and left > timedelta(days=self._options.renew_before)
        )

    # -- apply ------------------------------------------------------------------------------------

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        """Write the key, then the certificate, which is useless without its key."""
        pair: Pair = plan.data
        key, certificate = pair.key, pair.certificate
        if key is None:
            key = rsa.generate_private_key(_EXPONENT, self._options.key_size)
            with atomic_write(self._key_path, _KEY_MODE) as file:
                file.write(
                    key.private_bytes(
                        serialization.Encoding.PEM,
                        serialization.PrivateFormat.PKCS8,
                        serialization.NoEncryption(),
                    )
                )
        elif pair.mode & ~_KEY_MODE:
            try:
                os.chmod(self._key_path, pair.mode & _KEY_MODE)
            except OSError as error:
                message = f"cannot change the permissions of {self._key_path}: {error.strerror}"
                raise ToolchainError("failed", message) from None
        if certificate is None:
            name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, self._name)])
            begin = self._now().replace(microsecond=0)
            certificate = (
                x509.CertificateBuilder()
                .subject_name(name)
                .issuer_name(name)
                .public_key(key.public_key())
                .serial_number(x509.random_serial_number())
                .not_valid_before(begin)
                .not_valid_after(begin + timedelta(days=self._options.valid_days))
                .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
                .sign(key, hashes.SHA256())
            )
            with atomic_write(self._certificate_path, _CERTIFICATE_MODE) as file:
                file.write(certificate.public_bytes(serialization.Encoding.PEM))
        return {"consumer": self._describe(key, certificate)}

    def _describe(
        self, key: RSAPrivateKey | None, certificate: x509.Certificate | None
    ) -> dict[str, Any]:
        """Return the return value `consumer`. Values that are unknown in check mode are `None`."""
        known: dict[str, str] = {}
        if key is not None:
            known["public_key"] = _spki(key.public_key(), "PEM").decode("ascii")
        if certificate is not None:
            end = _moment(certificate, "not_valid_after")
            known["certificate"] = certificate.public_bytes(serialization.Encoding.PEM).decode()
            known["not_after"] = f"{end:%Y-%m-%dT%H:%M:%SZ}"
        names = ("public_key", "certificate", "not_after")
        return {"consumer_key": self._name, **{name: known.get(name) for name in names}}


def _describe_key(key: RSAPrivateKey | None, mode: int) -> dict[str, Any] | None:
    """Describe a key for the diff."""
    if key is None:
        return None
    digest = hashlib.sha256(_spki(key.public_key())).hexdigest()
    return {"bits": key.key_size, "mode": f"{mode:04o}", "sha256": digest}


def _describe_certificate(certificate: x509.Certificate | None) -> dict[str, Any] | None:
    """Describe a certificate for the diff."""
    if certificate is None:
        return None
    end = _moment(certificate, "not_valid_after")
    return {
        "common_name": _common_name(certificate),
        "expires": f"{end:%Y-%m-%d}",
        "sha256": certificate.fingerprint(hashes.SHA256()).hex(),
    }


def _common_name(certificate: x509.Certificate) -> str | None:
    found = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(found[0].value) if found else None


def _moment(certificate: x509.Certificate, name: str) -> datetime:
    """Return `not_valid_before` or `not_valid_after` in UTC, with any version of cryptography."""
    found: datetime | None = getattr(certificate, f"{name}_utc", None)
    if found is None:
        found = getattr(certificate, name).replace(tzinfo=timezone.utc)
    return found


def _spki(key: Any, encoding: str = "DER") -> bytes:
    """Return a public key in SubjectPublicKeyInfo format.

    :param encoding: `DER` or `PEM`
    """
    data: bytes = key.public_bytes(
        getattr(serialization.Encoding, encoding), serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return data
