# SPDX-License-Identifier: GPL-3.0-or-later
"""The five services of the toolchain in a single process.

For the demo, for tests, and for rehearsals of your playbooks.
"""

from __future__ import annotations
