# SPDX-License-Identifier: GPL-3.0-or-later
"""Release Lifecycle next to the repository manager: release bundles of version 2."""
