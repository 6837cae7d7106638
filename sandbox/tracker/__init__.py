# SPDX-License-Identifier: GPL-3.0-or-later
"""The issue tracker of the sandbox [W4.2, tracker-0]."""

from __future__ import annotations

from sandbox.tracker.service import TrackerService

SERVICE = TrackerService
