# SPDX-License-Identifier: GPL-3.0-or-later
"""JQL and issue search."""
