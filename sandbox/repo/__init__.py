# SPDX-License-Identifier: GPL-3.0-or-later
"""Artifact repository manager."""

from __future__ import annotations

from sandbox.repo.service import RepoService

SERVICE = RepoService
