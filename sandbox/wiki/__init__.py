# SPDX-License-Identifier: GPL-3.0-or-later
"""The wiki of the sandbox [W4.3, wiki-0]."""

from __future__ import annotations

from sandbox.wiki.service import WikiService

SERVICE = WikiService
