# SPDX-License-Identifier: GPL-3.0-or-later
"""Logins, pages and restarts of the server."""
