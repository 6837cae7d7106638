# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `ansible-playbook` in forks of this process, which has imported Ansible and the collection.

Started by `play_server.py`, which describes the limits. Each line of standard input is a JSON
object with the arguments of `_play`. The process ID of the play, and then its exit code, are lines
on standard output.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import importlib
import inspect
import json
import marshal
import os
import pkgutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import mock

import jinja2
from ansible import constants, template
from ansible.cli import playbook
from ansible.parsing.dataloader import DataLoader
from ansible.plugins import loader
from ansible.utils.path import cleanup_tmp_file

from tests.helpers import tasks_here

_PLUGINS = "ansible_collections.delivery.toolchain.plugins"
# Not the actions, nor their `in_process`: it keeps the standard error of the process that imports it.
_IMPORTS = (
    "module_utils._lib.core.http.connections",
    "module_utils._lib.core.module.runner",
    "plugin_utils._lib.enforcement",
    "plugin_utils._lib.report.recorder",
    "plugin_utils._lib.report.terminal",
    "plugin_utils._lib.report.tickets",
    "plugin_utils._lib.report.writing",
)
_LOADERS = (
    loader.action_loader,
    loader.become_loader,
    loader.cache_loader,
    loader.callback_loader,
    loader.connection_loader,
    loader.filter_loader,
    loader.inventory_loader,
    loader.lookup_loader,
    loader.shell_loader,
    loader.strategy_loader,
    loader.test_loader,
)


def main() -> None:
    """Import everything, then run a play for each line of the input."""
    loader.init_plugin_loader()
    modules = [f"modules.{name}" for name in _names("modules")]
    for name in (*_IMPORTS, *modules):
        importlib.import_module(f"{_PLUGINS}.{name}")
    _load_plugins()
    _read_files()
    _compile_once(Path.cwd())
    # every play initializes the loader again
    warnings.filterwarnings("ignore", "AnsibleCollectionFinder has already been configured")
    # the parent removes the temporary folder of this process; a play must not
    atexit.unregister(cleanup_tmp_file)
    # the garbage collector would write to, and so copy, the memory that forks share; a play is short
    gc.freeze()
    gc.disable()
    # a check for results each millisecond takes processor time from the workers
    constants.DEFAULT_INTERNAL_POLL_INTERVAL = 0.01
    # a terminal interrupts the tests and the play, too; the tests then end this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        play = os.fork()
        if play == 0:
            _play(**json.loads(line))
        print(play, flush=True)
        _, status = os.waitpid(play, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _names(folder: str) -> Iterator[str]:
    """Yield the names of the plugins in a folder of the collection."""
    package = importlib.import_module(f"{_PLUGINS}.{folder}")
    for module in pkgutil.iter_modules(package.__path__):
        yield module.name


def _load_plugins() -> None:
    """Load the plugins once, for all plays and their workers."""
    for plugins in _LOADERS:
        list(plugins.all(class_only=True))
    for name in _names("filter"):
        loader.filter_loader.get(f"delivery.toolchain.{name}")
    # core 2.16 to 2.18 compile every string as a template
    trusted = getattr(template, "trust_as_template", str)
    template.Templar(loader=None).template(trusted("{{ 1 | string }}"))


def _read_files() -> None:
    """Parse the files of roles and playbooks once, for all plays.

    A play gets the parsed file itself, and may change it: its process has its own copy. If it loads
    the file again, it parses it. Only the options of a role are not changed.
    """
    # the loader of plugins must have been initialized before this import
    utils = f"{_PLUGINS}.plugin_utils._lib"
    role_variables = importlib.import_module(f"{utils}.role_variables")
    survey = importlib.import_module(f"{utils}.survey")
    for owner in role_variables.owners():
        # parses all files that may set a variable
        role_variables.unknown(owner, [f"{owner}_"])
        role_variables.internal(owner, {owner: None}, role_variables.Origins())
    for name in ("drift", "enforce"):
        survey.answers(name, {})
    load: Callable[..., Any] = DataLoader.load_from_file
    # core loads tasks, roles and playbooks in this way; 2.16 to 2.18 trust every file
    known = inspect.signature(load).parameters
    options = dict.fromkeys({"trusted_as_template"} & known.keys(), True)
    root = Path(importlib.import_module(_PLUGINS).__path__[0]).parent
    parsed = {
        str(path): load(DataLoader(), str(path), **options)
        for pattern in ("playbooks/*.yml", "playbooks/tasks/**/*.yml", "roles/*/*/*.yml")
        for path in root.glob(pattern)
    }

    def load_once(loader: DataLoader, file_name: str, **given: Any) -> Any:
        path = loader.path_dwim(file_name)
        if given == options and path in parsed:
            return parsed[path] if path.endswith("/argument_specs.yml") else parsed.pop(path)
        return load(loader, file_name, **given)

    mock.patch.object(DataLoader, "load_from_file", load_once).start()


def _compile_once(folder: Path) -> None:
    """Let all plays and their workers share the code of templates, in files of a folder.

    Each worker would compile all templates of its task. The code of an environment that evaluates
    constants, as up to core 2.18, may depend on the folder of the play: it is not shared.
    """
    compiled: Callable[..., CodeType] = jinja2.Environment.compile

    def compile_once(
        environment: jinja2.Environment, source: Any, *given: Any, **more: Any
    ) -> CodeType:
        key = f"{type(environment)} {type(source)} {source!r}"
        # the meaning of a backslash depends on the task
        if given or more or environment.overlayed or environment.optimized or "\\" in key:
            return compiled(environment, source, *given, **more)
        file = folder / hashlib.sha256(key.encode()).hexdigest()
        if file.exists():
            found: CodeType = marshal.loads(file.read_bytes())
            return found
        code = compiled(environment, source)
        own = file.with_suffix(f".{os.getpid()}")
        own.write_bytes(marshal.dumps(code))
        own.rename(file)
        return code

    mock.patch.object(jinja2.Environment, "compile", compile_once).start()


def _play(
    command: Sequence[str], folder: str, variables: Mapping[str, str], output: str, seconds: int
) -> None:
    """Become the process of a command, and exit with its code. SIGALRM ends it after `seconds`."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(seconds)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    with open(os.devnull, "rb") as nothing, open(output, "wb") as file:
        for opened, standard in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(opened.fileno(), standard)
    # the last one creates the temporary folder of this play and removes it at exit
    for name in (
        *("CALLBACKS_ENABLED", "DEFAULT_STDOUT_CALLBACK"),
        *("ANSIBLE_HOME", "DEFAULT_LOCAL_TMP"),
    ):
        value = constants.config.get_config_value(name, variables=vars(constants))
        setattr(constants, name, value)
    tasks_here.use()
    # what its tasks leave, other than a worker, does not end with them
    gc.enable()
    gc.set_threshold(50_000, 20, 20)
    importlib.import_module("tests.helpers.foreign").install()
    sys.exit(playbook.main(command))


if __name__ == "__main__":
    main()
