# SPDX-License-Identifier: GPL-3.0-or-later
"""Issues: reading, writing, transitions, files, comments and links."""
