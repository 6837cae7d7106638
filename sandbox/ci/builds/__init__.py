# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds and the queue."""
