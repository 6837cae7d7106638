# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs, folders and their configuration."""
