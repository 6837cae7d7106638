# SPDX-License-Identifier: GPL-3.0-or-later
"""The CI server of the sandbox (written interface 4.4; server facts, CI 2)."""

from __future__ import annotations

from sandbox.ci.service import CiService

SERVICE = CiService

__all__ = ["SERVICE", "CiService"]
