# SPDX-License-Identifier: GPL-3.0-or-later
"""The five services of the toolchain in one process.

For the demo, for tests, and for rehearsals of one's own playbooks.
"""

from __future__ import annotations
