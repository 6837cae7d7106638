# SPDX-License-Identifier: GPL-3.0-or-later
"""The Access service next to the repository manager: tokens, groups, users and permissions."""
