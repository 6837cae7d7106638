# SPDX-License-Identifier: GPL-3.0-or-later
"""The issue tracker of the sandbox (written interface 4.2; server facts, tracker 2)."""

from __future__ import annotations

from sandbox.tracker.service import TrackerService

SERVICE = TrackerService
