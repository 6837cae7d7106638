# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the checkout importable as `ansible_collections.delivery.toolchain`, also for programs.

`make test` has done that already when it starts pytest; this is for pytest started by hand.
"""

from __future__ import annotations

from tools import tree

tree.make_importable()
