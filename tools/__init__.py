# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools that build, check and document the repository; not part of the collection."""

from __future__ import annotations
