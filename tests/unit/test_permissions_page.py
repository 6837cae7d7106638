# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the accounts of the page about permissions. `tests/faults` verifies what each module needs,
and a test of drift logs in with the first account.
"""

from __future__ import annotations

import pytest

from tests.helpers.permissions import KNOWN
from tools import permissions
from tools.reference import SERVICES


@pytest.mark.parametrize("service", SERVICES)
def test_accounts_have_known_permissions_with_names(service: str) -> None:
    drift, release, enforce = (permissions.needs(each, service) for each in permissions.ACCOUNTS)
    assert {*drift, *release, *enforce} <= KNOWN[service]
    assert drift.keys() <= enforce.keys()
    names = [permissions.word(service, name) for name in enforce]
    assert len(set(names)) == len(names)


def test_release_account_deletes_nothing() -> None:
    for service in SERVICES:
        for name in permissions.needs("release", service):
            assert not name.lower().endswith("delete")


def test_permissions_for_reading_are_known() -> None:
    reading = {name for names in KNOWN.values() for name in names if permissions.is_reading(name)}
    assert {"read", "browse", "view", "hudson.model.Item.ExtendedRead"} <= reading
    assert not {"admin", "administer", "deploy", "hudson.model.Item.Configure"} & reading
