# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as JSON, XML and XPath results."""
