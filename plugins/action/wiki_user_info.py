# SPDX-License-Identifier: GPL-3.0-or-later
"""Written by `python -m tools.generated`. ansible-lint reads the arguments from `main`."""

from ansible_collections.delivery.toolchain.plugins.modules.wiki_user_info import main
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.in_process import action_of

ActionModule = action_of(main, "wiki")
