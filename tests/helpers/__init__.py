# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests share: playbooks that are run for real, and connections to the sandbox."""
