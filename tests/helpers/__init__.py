# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared test helpers: run real playbooks, and connect to the sandbox."""
