# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiki of the sandbox (written interface 4.3; server facts, tracker 3)."""

from __future__ import annotations

from sandbox.wiki.service import WikiService

SERVICE = WikiService
