# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugins and the update center."""
