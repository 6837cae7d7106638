# SPDX-License-Identifier: GPL-3.0-or-later
"""All services by name, for the controller: a module knows only its own service."""

from __future__ import annotations

from ...module_utils._lib.analysis import service as analysis
from ...module_utils._lib.ci import service as ci
from ...module_utils._lib.core.connection.service import Service
from ...module_utils._lib.repo import service as repo
from ...module_utils._lib.tracker import service as tracker
from ...module_utils._lib.wiki import service as wiki

SERVICES: dict[str, Service] = {
    package.SERVICE.name: package.SERVICE for package in (repo, tracker, wiki, ci, analysis)
}
