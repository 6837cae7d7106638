# SPDX-License-Identifier: GPL-3.0-or-later
"""The code analysis server of the sandbox [W4.5, analysis-0]."""

from __future__ import annotations

from sandbox.analysis.service import AnalysisService

SERVICE = AnalysisService

__all__ = ["SERVICE", "AnalysisService"]
