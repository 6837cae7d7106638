# SPDX-License-Identifier: GPL-3.0-or-later
"""Issues: reading, writing, transitions, attachments, comments and links."""
