# SPDX-License-Identifier: GPL-3.0-or-later
"""JQL, the query language of the tracker, and searches for issues."""
