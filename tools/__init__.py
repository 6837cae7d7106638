# SPDX-License-Identifier: GPL-3.0-or-later
"""What the repository needs to build, check and show itself; no part of the collection."""

from __future__ import annotations
