# SPDX-License-Identifier: GPL-3.0-or-later
"""Test key and certificate of an OAuth consumer: created once, renewed in time, never shown."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.atlassian import (
    oauth_consumer,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.atlassian.oauth_consumer import (
    OauthConsumerOperation,
    OauthConsumerOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Plan
from tests.helpers import options

START = datetime(2026, 1, 5, 9, 0, 0, 123456, tzinfo=timezone.utc)


@dataclass
class Site:
    """A folder with key and certificate, and a clock."""

    folder: Path
    now: datetime = START
    plan: Plan | None = None
    defaults: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Path:
        return self.folder / "consumer.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "consumer.crt"

    def __call__(self, *, check: bool = False, **params: Any) -> dict[str, Any]:
        files = {"private_key": str(self.key), "certificate": str(self.certificate)}
        given = {**files, "common_name": "toolchain", **params}
        operation = OauthConsumerOperation(
            None, options.build(OauthConsumerOptions, **given), now=lambda: self.now
        )
        self.plan = operation.plan()
        values = dict(self.plan.result)
        if self.plan.changed and not check:
            values |= operation.apply(self.plan)
        return {**values["consumer"], "changed": self.plan.changed}

    def diff(self) -> str:
        assert self.plan is not None
        return json.dumps([self.plan.before, self.plan.after])


@functools.cache
def _key(_number: int, exponent: int, size: int) -> rsa.RSAPrivateKey:
    return _GENERATE(exponent, size)


_GENERATE = rsa.generate_private_key


@pytest.fixture(autouse=True)
def few_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the same new keys in every test, because it takes long to generate them."""
    monkeypatch.setattr(rsa, "generate_private_key", functools.partial(_nth, itertools.count()))


def _nth(numbers: Iterator[int], exponent: int, size: int) -> rsa.RSAPrivateKey:
    return _key(next(numbers), exponent, size)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def loaded(site: Site) -> tuple[rsa.RSAPrivateKey, x509.Certificate]:
    key = load_pem_private_key(site.key.read_bytes(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key, x509.load_pem_x509_certificate(site.certificate.read_bytes())


def test_key_and_certificate_are_created(site: Site) -> None:
    made = site()
    key, certificate = loaded(site)
    assert site.key.read_text(encoding="ascii").startswith("-----BEGIN PRIVATE KEY-----")  # PKCS#8
    assert key.key_size == 2048
    assert (site.key.stat().st_mode & 0o777, site.certificate.stat().st_mode & 0o777) == (
        0o600,
        0o644,
    )
    assert certificate.subject == certificate.issuer
    assert certificate.subject.rfc4514_string() == "CN=toolchain"
    assert certificate.not_valid_before_utc == START.replace(microsecond=0)
    assert certificate.not_valid_after_utc - certificate.not_valid_before_utc == timedelta(365)
    certificate.verify_directly_issued_by(certificate)
    assert made == {
        "changed": True,
        "consumer_key": "toolchain",
        "public_key": site_public(site),
        "certificate": site.certificate.read_text(encoding="ascii"),
        "not_after": "2027-01-05T09:00:00Z",
    }
    assert sorted(path.name for path in site.folder.iterdir()) == ["consumer.crt", "consumer.pem"]


def site_public(site: Site) -> str:
    public = loaded(site)[0].public_key()
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def test_public_key_verifies_signatures_of_the_key(site: Site) -> None:
    made = site()
    public = load_pem_public_key(made["public_key"].encode())
    assert isinstance(public, rsa.RSAPublicKey)
    signature = loaded(site)[0].sign(b"text", padding.PKCS1v15(), SHA256())
    public.verify(signature, b"text", padding.PKCS1v15(), SHA256())


def test_second_run_changes_nothing(site: Site) -> None:
    first = site()
    before = site.key.read_bytes(), site.certificate.read_bytes()
    assert site() == {**first, "changed": False}
    assert (site.key.read_bytes(), site.certificate.read_bytes()) == before


def test_check_mode_writes_nothing_and_predicts(site: Site) -> None:
    assert site(check=True) == {
        "changed": True,
        "consumer_key": "toolchain",
        "public_key": None,
        "certificate": None,
        "not_after": None,
    }
    assert list(site.folder.iterdir()) == []
    predicted = site.diff()
    site()
    assert site.diff() == predicted


@pytest.mark.parametrize(("days", "renewed"), [(334, False), (335, True), (400, True)])
def test_certificate_is_renewed_before_expiry_with_same_key(
    site: Site, days: int, renewed: bool
) -> None:
    first = site()
    key = site.key.read_bytes()
    site.now = START + timedelta(days=days)
    predicted = site(check=True)
    assert predicted["changed"] is renewed
    assert predicted["public_key"] == first["public_key"]
    second = site()
    assert second["changed"] is renewed
    assert second["public_key"] == first["public_key"]
    assert site.key.read_bytes() == key
    assert (second["certificate"] != first["certificate"]) is renewed
    assert site()["changed"] is False
    end = loaded(site)[1].not_valid_after_utc
    assert end == (site.now if renewed else START).replace(microsecond=0) + timedelta(365)


def test_diff_shows_fingerprint_and_expiry_but_no_key(site: Site) -> None:
    site()
    shown = site.diff()
    site.now = START + timedelta(days=360)
    site(check=True)
    assert site.plan is not None
    before, after = site.plan.before, site.plan.after
    assert before["certificate"]["expires"] == "2027-01-05"
    assert after["certificate"] == {
        "common_name": "toolchain",
        "expires": "in 365 days",
        "sha256": "new",
    }
    assert before["private_key"] == after["private_key"]
    assert len(before["private_key"]["sha256"]) == 64
    for text in (shown, site.diff()):
        assert "BEGIN" not in text


def test_new_consumer_key_gets_new_certificate(site: Site) -> None:
    first = site()
    second = site(common_name="toolchain-2")
    assert (second["changed"], second["consumer_key"]) == (True, "toolchain-2")
    assert second["public_key"] == first["public_key"]


def test_certificate_not_yet_valid_is_renewed(site: Site) -> None:
    site()
    site.now = START - timedelta(days=2)
    assert site()["changed"] is True


def test_certificate_of_another_key_is_replaced(site: Site) -> None:
    first = site()
    site.key.unlink()
    second = site()
    assert second["changed"] is True
    assert second["public_key"] != first["public_key"]
    key, certificate = loaded(site)
    assert certificate.public_key() == key.public_key()


def test_lost_certificate_is_created_for_existing_key(site: Site) -> None:
    first = site()
    site.certificate.unlink()
    assert site()["public_key"] == first["public_key"]


def test_force_creates_new_key(site: Site) -> None:
    first = site()
    second = site(force=True)
    assert second["changed"] is True
    assert second["public_key"] != first["public_key"]
    assert site.plan is not None
    assert site.plan.before["private_key"]["sha256"] != site.plan.after["private_key"]["sha256"]
    assert site()["changed"] is False


@pytest.mark.parametrize(("mode", "kept"), [(0o644, 0o600), (0o640, 0o600), (0o440, 0o400)])
def test_key_permissions_of_other_users_are_removed(site: Site, mode: int, kept: int) -> None:
    site()
    site.key.chmod(mode)
    assert site(check=True)["changed"] is True
    assert site.key.stat().st_mode & 0o777 == mode
    assert site()["changed"] is True
    assert site.plan is not None
    assert site.plan.before["private_key"]["mode"] == f"0{mode:o}"
    assert site.plan.after["private_key"]["mode"] == f"0{kept:o}"
    assert site.key.stat().st_mode & 0o777 == kept
    assert site()["changed"] is False


def test_symbolic_link_is_kept(site: Site) -> None:
    (site.folder / "mounted").mkdir()
    site.certificate.symlink_to(site.folder / "mounted" / "tls.crt")
    site()
    assert site.certificate.is_symlink()
    assert site()["changed"] is False


def encrypted() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))


def elliptic() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("content", [b"", b"precious", encrypted(), elliptic()])
def test_invalid_key_is_rejected_without_force(site: Site, content: bytes) -> None:
    site.key.write_bytes(content)
    with pytest.raises(ToolchainError, match="set force to true to replace it") as caught:
        site()
    assert caught.value.kind == "invalid"
    assert site.key.read_bytes() == content
    assert site(force=True)["changed"] is True


def test_invalid_certificate_is_rejected_without_force(site: Site) -> None:
    site.certificate.write_bytes(b"precious")
    with pytest.raises(ToolchainError, match=r"consumer\.crt is not a certificate"):
        site()
    assert not site.key.exists()
    assert site(force=True)["changed"] is True


def test_too_small_key_is_rejected(site: Site) -> None:
    site()
    with pytest.raises(ToolchainError, match="2048 bits, which is less than key_size"):
        site(key_size=3072)
    made = site(key_size=3072, force=True)
    assert made["changed"] is True
    assert loaded(site)[0].key_size == 3072
    assert site()["changed"] is False


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"common_name": ""}, "common_name"),
        ({"common_name": "x" * 65}, "common_name"),
        ({"valid_days": 0}, "renew_before"),
        ({"valid_days": 3_000_000}, "9999"),
        ({"valid_days": 10**10}, "9999"),
        ({"renew_before": 365}, "renew_before"),
        ({"renew_before": -1}, "renew_before"),
        ({"private_key": "/nowhere/key.pem"}, "the folder /nowhere does not exist"),
        ({"certificate": "/"}, "/ is a folder, but must be a file"),
    ],
)
def test_invalid_options_are_rejected(site: Site, params: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        site(**params)
    assert caught.value.kind == "invalid"
    assert list(site.folder.iterdir()) == []


def test_same_file_for_key_and_certificate_is_rejected(site: Site) -> None:
    with pytest.raises(ToolchainError, match="must be different files"):
        site(certificate=str(site.key))


def test_missing_library_is_reported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth_consumer, "_LIBRARY_MISSING", True)
    with pytest.raises(ToolchainError, match=r"\(cryptography\)") as caught:
        site()
    assert caught.value.kind == "invalid"
