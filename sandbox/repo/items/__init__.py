# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, folders, properties and searches."""
