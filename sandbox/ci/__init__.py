# SPDX-License-Identifier: GPL-3.0-or-later
"""The CI server of the sandbox [W4.4, ci-0]."""

from __future__ import annotations

from sandbox.ci.service import CiService

SERVICE = CiService

__all__ = ["SERVICE", "CiService"]
