# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx builds the site; `make docs` copies this file beside its sources."""

from __future__ import annotations

project = "delivery.toolchain"
copyright = "delivery.toolchain contributors"  # noqa: A001 - the name that Sphinx has
title = html_title = html_short_title = "delivery.toolchain"

extensions = ["myst_parser", "sphinx_antsibull_ext"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# every heading can be linked to, as on a page of a repository
myst_heading_anchors = 4
pygments_style = "ansible"
highlight_language = "YAML+Jinja"
html_theme = "sphinx_ansible_theme"
html_show_sphinx = False
html_copy_source = False
html_use_smartypants = True
# The pages of Ansible's own site are not looked up: this site is built without a network.
nitpicky = False
suppress_warnings = ["ref.envvar", "ref.ref", "toc.not_included"]
