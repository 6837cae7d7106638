# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the parsing of human-readable numbers, and the storage summary that contains them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items.repo_info import (
    Quantity,
    RepoInfoOperation,
    quantity,
    summary,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply

GIB = 1024**3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12,345", Quantity(count=12345)),
        ("0", Quantity(count=0)),
        ("1,024 bytes", Quantity(size=1024)),
        ("1 byte", Quantity(size=1)),
        ("1.23 TB", Quantity(size=round(1.23 * 1024**4))),
        ("1.5KiB", Quantity(size=1536)),
        ("1,234.56 TB", Quantity(size=round(1234.56 * 1024**4))),
        ("1,023 MB", Quantity(size=1023 * 1024**2)),
        ("45.6%", Quantity(percent=45.6)),
        ("100%", Quantity(percent=100)),
        ("412.35 GB (87.6%)", Quantity(size=round(412.35 * GIB), percent=87.6)),
    ],
)
def test_quantity_is_parsed(text: str, expected: Quantity) -> None:
    assert quantity(text) == expected


@pytest.mark.parametrize("text", ["", "N/A", "Infinite", "file-system", "1 GB free", "-"])
def test_invalid_quantity_is_none(text: str) -> None:
    assert quantity(text) is None


@given(st.integers(0, 10**15))
def test_count_with_separators_is_parsed(number: int) -> None:
    assert quantity(f"{number:,}") == Quantity(count=number)


@given(st.integers(0, 10**8), st.sampled_from(["KB", "MB", "GB", "TB"]))
def test_size_with_unit_is_parsed(hundredths: int, unit: str) -> None:
    power = ("KB", "MB", "GB", "TB").index(unit) + 1
    found = quantity(f"{hundredths / 100:,.2f} {unit}")
    assert found == Quantity(size=round(float(hundredths / 100) * 1024**power))


def test_summary_is_numeric() -> None:
    raw = {
        "binariesSummary": {
            "binariesCount": "125,726",
            "binariesSize": "3.48 GB",
            "optimization": "58.69%",
        },
        "fileStoreSummary": {
            "storageType": "filesystem",
            "storageDirectory": "/data/1,234",
            "totalSpace": "204.28 GB",
            "usedSpace": "32.22 GB (15.77%)",
            "freeSpace": "172.06 GB (84.23%)",
        },
        "repositoriesSummaryList": [
            {"repoKey": "2024", "filesCount": 5, "usedSpace": "1.00 KB", "percentage": "12.5%"},
            {"repoKey": "b", "usedSpace": "1.00 KB", "usedSpaceInBytes": 1027},
            {"repoKey": "TOTAL", "usedSpace": "N/A"},
        ],
    }
    found = summary(raw)
    assert found["binaries_count"] == 125726
    assert found["binaries_size_bytes"] == round(3.48 * GIB)
    assert found["binaries_size"] == "3.48 GB"
    assert found["optimization_percent"] == 58.69
    assert found["storage_type"] == "filesystem"
    assert found["storage_directory"] == "/data/1,234"
    assert found["used_space_bytes"] == round(32.22 * GIB)
    assert (found["used_percent"], found["free_percent"]) == (15.77, 84.23)
    first, second, total = found["repositories"]
    assert first["repo_key"] == "2024"
    assert (first["files_count"], first["used_space_bytes"]) == (5, 1024)
    assert first["percentage"] == 12.5
    assert second["used_space_bytes"] == 1027
    assert total == {"repo_key": "TOTAL", "used_space": "N/A"}
    assert found["raw"] == raw


def test_missing_percentage_is_computed() -> None:
    raw = {"fileStoreSummary": {"totalSpace": "200 GB", "usedSpace": "50 GB"}}
    assert summary(raw)["used_percent"] == 25
    assert summary({"fileStoreSummary": {"totalSpace": "Infinite", "usedSpace": "50 GB"}}) == {
        "total_space": "Infinite",
        "used_space": "50 GB",
        "used_space_bytes": 50 * GIB,
        "repositories": [],
        "raw": {"fileStoreSummary": {"totalSpace": "Infinite", "usedSpace": "50 GB"}},
    }


def test_virtual_repository_without_deployment_repository(server: Server) -> None:
    one = {"key": "v", "rclass": "virtual", "defaultDeploymentRepo": ""}
    server.on["GET /api/repositories/v"] = Reply(body=one)
    _plan, values = server.run(RepoInfoOperation, {"repo": "v"})
    assert values["repositories"] == [{**one, "type": "VIRTUAL", "defaultDeploymentRepo": None}]
    assert values["storage"] is None


@pytest.mark.parametrize("status", [400, 403, 404])
def test_repository_without_details_is_taken_from_the_list(server: Server, status: int) -> None:
    server.on["GET /api/repositories/a"] = Reply(status, "available only in Artifactory Pro")
    server.on["GET /api/repositories"] = Reply(body='[{"key": "a", "type": "LOCAL"}]')
    _plan, values = server.run(RepoInfoOperation, {"repo": "a"})
    assert values["repositories"] == [{"key": "a", "type": "LOCAL"}]
    error = server.fails(RepoInfoOperation, {"repo": "b"})
    assert error.kind == "not_found"
    assert "no repository 'b'" in error.message


def test_summary_requires_an_administrator(server: Server) -> None:
    server.on["GET /api/repositories"] = Reply(body="[]")
    server.on["GET /api/storageinfo"] = Reply(403, "not an administrator")
    error = server.fails(RepoInfoOperation, {"storage": True})
    assert (error.kind, error.status) == ("permission", 403)
