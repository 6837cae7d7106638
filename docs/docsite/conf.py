# SPDX-License-Identifier: GPL-3.0-or-later
"""How Sphinx builds the site; `tools/docs.py` gathers its sources elsewhere."""

from __future__ import annotations

import gc

# The trees of pages have many nodes, and hardly any is garbage: search for it less often.
gc.set_threshold(200_000, 20, 20)

project = "delivery.toolchain"
copyright = "delivery.toolchain contributors"  # noqa: A001 - the name that Sphinx has
# `tools/docs.py` adds the version, and the scorer of the search
title = html_title = "delivery.toolchain"

extensions = ["myst_parser", "sphinx_antsibull_ext", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# every heading can be linked to, as on a page of a repository
myst_heading_anchors = 4
pygments_style, pygments_dark_style = "ansible", "monokai"
# a copied command has no prompt
copybutton_prompt_text = "$ "
highlight_language = "YAML+Jinja"
html_theme = "furo"
antsibull_ext_color_scheme = "default-autodark"
html_static_path = ["static"]
html_css_files = ["options.css"]
html_show_sphinx = False
html_copy_source = False
html_use_smartypants = True
# The pages of Ansible's own site are not looked up: this site is built without a network.
nitpicky = False
suppress_warnings = ["ref.envvar", "ref.ref", "toc.not_included"]
