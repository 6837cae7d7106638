# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of antsibull-nox; `antsibull-nox.toml` configures them."""

from __future__ import annotations

import antsibull_nox

antsibull_nox.load_antsibull_nox_toml()
