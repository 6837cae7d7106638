# SPDX-License-Identifier: GPL-3.0-or-later
"""Fields, their values and their screens."""
