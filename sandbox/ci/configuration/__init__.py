# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials, nodes, views and the configuration of the server."""
