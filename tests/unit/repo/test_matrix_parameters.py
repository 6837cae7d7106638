# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that every option with a path rejects the matrix parameters of other clients [C1.6]."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.plan import Operation
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.builds import (
    build_publish,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.bundles import (
    release_bundle,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.cleanup import (
    artifact_cleanup,
    artifact_trash,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.items import (
    artifact_deploy,
    artifact_info,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.transfer import (
    artifact_copy,
    artifact_download,
    artifact_properties,
)
from tests.unit.repo.conftest import Server
from tests.unit.repo.test_deploy import LOCAL

PATH = "pool/x.deb;deb.distribution=focal"
REPO = {"repo": "r"}
ARTIFACTS = {"artifacts": [{"repo": "r", "path": PATH}]}
BUILD = {"build_name": "b", "build_number": "1"}
DEPLOY = artifact_deploy.ArtifactDeployOperation
COPY = artifact_copy.ArtifactCopyOperation
BUNDLE = {"name": "b", "version": "1"}


@pytest.mark.parametrize(
    ("operation", "given", "option"),
    [
        (DEPLOY, {**REPO, "path": PATH, "content": "x"}, "path"),
        (DEPLOY, {**REPO, "path": PATH + "/", "src": __file__}, "path"),
        (DEPLOY, {**REPO, "artifacts": [{"src": __file__, "path": PATH}]}, "artifacts[0].path"),
        (DEPLOY, {**REPO, "path": PATH, "state": "absent"}, "path"),
        (COPY, {**REPO, "path": PATH, "target_repo": "s"}, "path"),
        (COPY, {**REPO, "path": "a", "target_repo": "s", "target_path": PATH}, "target_path"),
        (COPY, {**ARTIFACTS, "target_repo": "s"}, "artifacts[0].path"),
        (artifact_download.ArtifactDownloadOperation, {**REPO, "path": PATH, "dest": "d"}, "path"),
        (artifact_download.ArtifactDownloadOperation, {**ARTIFACTS, "dest": "d"}, "artifacts[0]."),
        (
            artifact_properties.ArtifactPropertiesOperation,
            {**REPO, "path": PATH, "properties": {"k": "v"}},
            "path",
        ),
        (
            artifact_properties.ArtifactPropertiesOperation,
            {**ARTIFACTS, "properties": {"k": "v"}},
            "artifacts[0].path",
        ),
        (artifact_info.ArtifactInfoOperation, {"pattern": f"r:{PATH}"}, "pattern"),
        (artifact_info.ArtifactInfoOperation, {"list": {"repo": "r", "path": PATH}}, "list: path"),
        (
            artifact_cleanup.ArtifactCleanupOperation,
            {"rules": [{"repo": "r", "path": PATH}]},
            "rule 1: path",
        ),
        (artifact_trash.ArtifactTrashOperation, {**REPO, "path": PATH, "state": "clean"}, "path"),
        (build_publish.BuildPublishOperation, {**BUILD, **ARTIFACTS}, "artifacts[0].path"),
        (
            release_bundle.ReleaseBundleOperation,
            {**BUNDLE, "sources": ARTIFACTS},
            "sources.artifacts[0].path",
        ),
    ],
)
def test_matrix_parameters_are_rejected(
    server: Server, operation: Callable[..., Operation], given: dict[str, Any], option: str
) -> None:
    error = server.fails(operation, given)
    assert (error.kind, server.asked) == ("invalid", [])
    assert error.message.startswith(option)
    assert "';deb.distribution=focal'" in error.message
    assert "option properties" in error.message


@pytest.mark.parametrize("name", ["a;b.txt", "a=b.txt", ";=", "a;b/c=d"])
def test_other_names_with_a_semicolon_are_accepted(server: Server, name: str) -> None:
    server.on["GET /api/repositories/r"] = LOCAL
    server.run(DEPLOY, {**REPO, "path": name, "content": "x"}, check=True)


def test_local_file_with_such_a_name_is_deployed(server: Server, tmp_path: Path) -> None:
    (tmp_path / "a;k=v").write_text("x")
    server.on["GET /api/repositories/r"] = LOCAL
    given = {**REPO, "path": "a/", "src": f"{tmp_path}/"}
    _plan, values = server.run(DEPLOY, given, check=True)
    assert [file["path"] for file in values["artifacts"]] == ["a/a;k=v"]
