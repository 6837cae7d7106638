# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and accounts of projects."""
