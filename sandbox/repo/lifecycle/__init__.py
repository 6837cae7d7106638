# SPDX-License-Identifier: GPL-3.0-or-later
"""Release Lifecycle: release bundles of version 2."""
