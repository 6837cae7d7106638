# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the files of a new module from the templates in `tools/new_module_templates`, and all files
that are generated from the modules.

    python -m tools.new_module wiki_label                      below module_utils/_lib/wiki
    python -m tools.new_module wiki_label --package wiki/pages below module_utils/_lib/wiki/pages
    python -m tools.new_module wiki_label_info                 a module that only reads

Replace each FILL_IN. `python -m tools.module_check wiki_label` lists what is still missing.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path
from string import Template

import yaml

from tools.descriptors import DESCRIPTORS
from tools.tree import ROOT

#: Placeholder for the parts of a new module that the author must write.
MARK = "FILL_IN"
_TEMPLATES = ROOT / "tools" / "new_module_templates"


def files(module: str, package: str = "") -> dict[Path, str]:
    """Return the files of a new module: path below the checkout to content.

    :param package: folder below module_utils; empty for the folder of the service
    """
    first, _underscore, rest = module.partition("_")
    # as other modules of the same first word, such as artifact_copy
    services = {name.partition("_")[0]: one.service_name for name, one in DESCRIPTORS.items()}
    service = services.get(first) or first
    package, prefix = package or service, "info_" if module.endswith("_info") else ""
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    dots = "." * len(package.split("/"))
    values = {
        "module": module,
        "service": service,
        "camel": "".join(word.capitalize() for word in module.split("_")),
        "noun": rest.removesuffix("_info"),
        "info": ".info" if prefix else "",
        "package": package.replace("/", "."),
        "dots": f"{dots}.",
        "version": galaxy["version"],
        "client": f"from {dots}service import SERVICE\n",
        "transport": "task.transport()",
        "permissions": "names in tests/helpers/permissions.py",
    }
    if service == "ci":  # requests that write need a crumb, which the client sends
        values["client"] = f"from {dots}client import server_of\n{values['client']}"
        values["transport"] = "server_of(task)"
        values["permissions"] = "constants of ci/client.py"
    places = {
        "module.py": f"plugins/modules/{module}.py",
        f"{prefix}operation.py": f"plugins/module_utils/_lib/{package}/{module}.py",
        f"{prefix}case.yml": f"tests/contract/cases/{module}.yml",
        "test.py": f"tests/unit/{service}/test_{module}.py",
        "fragment.yml": f"changelogs/fragments/{module.replace('_', '-')}.yml",
    }
    return {
        Path(path): Template(
            (_TEMPLATES / f"{name}.template").read_text(encoding="utf-8")
        ).substitute(values)
        for name, path in places.items()
    }


def main(arguments: list[str] | None = None) -> int:
    """Write the files, and print their names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", help="as wiki_label: the service, then the object")
    parser.add_argument("--package", default="", help="folder below plugins/module_utils/_lib")
    options = parser.parse_args(arguments)
    if not re.fullmatch(r"[a-z]+(_[a-z]+)+", options.module):
        parser.error(f"{options.module} is not a name of a module: write it as wiki_label")
    written = files(options.module, options.package)
    for path in written:
        if (ROOT / path).exists():
            parser.error(f"{path} exists already")
        if not (ROOT / path.parent).is_dir():
            parser.error(f"there is no folder {path.parent}: name another with --package")
    for path, text in written.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path, flush=True)
    # The names decide about the order of imports and about line breaks.
    code = [str(path) for path in written if path.suffix == ".py"]
    ruff = str(Path(sys.executable).parent / "ruff")
    for command in (["check", "--fix", "--select=I"], ["format"]):
        subprocess.run([ruff, *command, "--quiet", *code], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "tools.generated"], cwd=ROOT, check=True)
    print(f"Replace each {MARK}, then: python -m tools.module_check {options.module}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
