# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: report
type: aggregate
short_description: Report the differences of a run as a page, JSON, JUnit and Markdown
version_added: 1.0.0
description:
  - Collects the objects that modules of this collection compare, and writes the report at the end of the run if the variable
    C(drift_report) or E(TOOLCHAIN_REPORT) names a folder.
  - C(report.json) has a finding for every object that differs, with both sides. C(report.html) shows the same as a single page that
    loads no other files, C(report.xml) is JUnit, C(report.md) a summary, C(history.json) the counts of the last 365 runs.
  - In check mode findings are differences, otherwise changes. The results of reported tasks contain C(findings) with both
    sides, which Ansible shows from C(-v) on, and C(diff), which it shows with C(--diff) only. C(no_log) hides both.
  - The playbooks of this collection load the callback. For other playbooks enable it with C(callbacks_enabled) in the configuration or
    with E(ANSIBLE_CALLBACKS_ENABLED).
  - A task with the variable C(toolchain_report) set to V(failures) is only reported if it fails, with V(none) it is never reported.
author: delivery.toolchain contributors (@delivery-toolchain)
options: {}
"""

import os
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, ClassVar

from ansible import context
from ansible.constants import config
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase
from ansible.template import Templar
from ansible.utils.display import Display

from ..module_utils._lib.core.module import (
    import_finders,  # noqa: F401 - importing it installs the finder  # pylint: disable=unused-import
)
from ..plugin_utils._lib import ansible_internals, collection, survey
from ..plugin_utils._lib.report import commands, ignored, since, switch, terminal, texts, writing
from ..plugin_utils._lib.report.contents import Contents
from ..plugin_utils._lib.report.recorder import Recorder

_VARIABLES = ("drift_report", "drift_table", "drift_ignore", "drift_output")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "delivery.toolchain.report"
    CALLBACK_NEEDS_ENABLED = True

    #: The instance that records. Playbooks of the collection load the callback a second time.
    _active: ClassVar[CallbackModule | None] = None

    def __init__(self) -> None:
        super().__init__()
        self.disabled = CallbackModule._active is not None
        if not self.disabled:
            CallbackModule._active = self
            switch.turn_on(self._so_far)
        self._recorder = Recorder(Contents())
        #: Whether the results of the play, and of any play, are reported.
        self._reports_play, self._reports = True, False
        self._play: Any = None
        self._settings: dict[str, Any] = {}
        self._read_hosts: set[str] = set()
        self._folder = Path()
        self._looped: set[tuple[str, str]] = set()
        self._checks: list[bool] = []
        #: A missing private name of Ansible, which makes a report impossible.
        self._missing = ""

    def v2_playbook_on_start(self, playbook: Any) -> None:
        for play in playbook.get_plays():
            survey.read_extra_variables(play.get_variable_manager().extra_vars)
        try:
            file = Path(ansible_internals.playbook_file(playbook)).resolve()
        except ansible_internals.Missing as missing:
            self._missing = str(missing)
            return
        in_collection = _is_playbooks_of_collection(file.parent)
        self._recorder.contents.playbook = (
            f"delivery.toolchain.{file.stem}" if in_collection else file.name
        )
        self._folder = file.parent

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self._play = play
        # playbooks of the collection that compare nothing must not replace the report of drift
        self._reports_play = boolean(play.get_vars().get("drift_written", True))
        self._reports = self._reports or self._reports_play
        self._checks.append(bool(context.CLIARGS.get("check") or play.check_mode))
        self._read_hosts.clear()
        self._read_settings()

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._record(result, item=True)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._record(result, item=True, failed=True)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        self._record(result, item=True, skipped=True)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._record(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._record(result, failed=True)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._record(result, failed=True)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        try:
            self._end(stats)
        finally:
            CallbackModule._active = None
            switch.turn_off()

    def _end(self, stats: Any) -> None:
        if self._missing:
            # no report is better than a report without differences that exist
            Display().warning(
                "delivery.toolchain cannot write a report with this release of ansible-core:"
                f" {self._missing}."
            )
            return
        if not self._reports:
            return
        self._recorder.end(stats.processed, check=any(self._checks))
        contents = self._so_far()
        for warning in self._warnings():
            Display().warning(warning)
        stdout = str(config.get_config_value("DEFAULT_STDOUT_CALLBACK"))
        lines = self._lines(contents, is_plan=stdout == "delivery.toolchain.plan")
        if self._settings.get("drift_output") == "github":
            lines = [*lines[:-1], *terminal.github(contents), *lines[-1:]]
            self._add_to_step_summary(contents)
        if lines and "json" not in stdout:
            for line in (terminal.Line(""), *lines):
                Display().display(line.text, color=line.colour or None)

    def _lines(self, contents: Contents, *, is_plan: bool) -> list[terminal.Line]:
        """Write the report, and return the lines at the end of the run.

        :param is_plan: the callback `plan` shows nothing but these lines: they have all values, and
            the commands that adopt or enforce
        """
        values = is_plan or bool(context.CLIARGS.get("diff"))
        lines = terminal.table(contents, values=values) if switch.lists_findings() else []
        folder = self._report_folder()
        if folder is not None and not self._recorder.has_compared:
            lines.append(terminal.Line(f"No report was written to {folder}: nothing was compared."))
        elif folder is not None:
            lines += self._write(folder, contents)
        # a playbook of your own may set what these commands need
        is_drift = contents.playbook == "delivery.toolchain.drift"
        shown = self._commands(folder) if is_plan and is_drift else None
        if shown is not None:
            lines += map(terminal.Line, commands.next_steps(contents, shown))
        return [*lines, terminal.result(contents)] if lines else []

    def _write(self, folder: Path, contents: Contents) -> list[terminal.Line]:
        """Write the report, and return the line that names it."""
        try:
            warnings = writing.write(folder, contents, self._recorder.plan, self._commands(folder))
        except OSError as error:
            raise AnsibleError(f"Cannot write the report to {folder}: {error}") from error
        for warning in warnings:
            Display().warning(warning)
        return [terminal.Line(f"Report: {folder / 'report.html'}")]

    def _commands(self, folder: Path | None) -> dict[str, str] | None:
        """Return the commands for what was found, `None` if no desired state was compared: then
        there is no plan.
        """
        recorder = self._recorder
        if recorder.plan is None:
            return None
        return commands.commands(context.CLIARGS, folder, recorder.mask)

    def _add_to_step_summary(self, contents: Contents) -> None:
        file = os.environ.get("GITHUB_STEP_SUMMARY")
        if not file:
            return
        try:
            with Path(file).open("a", encoding="utf-8") as stream:
                stream.write(texts.markdown(contents))
        except OSError as error:
            Display().warning(f"Cannot write the step summary {file}: {error.strerror}")

    def _record(
        self, result: Any, *, item: bool = False, failed: bool = False, skipped: bool = False
    ) -> None:
        try:
            host, task, values = ansible_internals.result_parts(result)
            loop = host.get_name(), ansible_internals.task_id(task)
        except ansible_internals.Missing as missing:
            self._missing = str(missing)
            return
        facts = values.get("ansible_facts")
        # settings of the report that a task sets, such as the answers of a survey
        if isinstance(facts, Mapping):
            for name in facts.keys() & _VARIABLES:
                self._settings.setdefault(name, facts[name])
        if item:
            self._looped.add(loop)
        elif loop in self._looped:
            return  # the items of the loop have been recorded
        if not skipped and self._reports_play:
            self._read_settings(host)
            self._recorder.result(task, host.get_name(), values, failed=failed)

    def _read_settings(self, host: Any = None) -> None:
        """Read the settings of the report from variables of the play, or of the first host that has
        them.
        """
        names = [name for name in _VARIABLES if name not in self._settings]
        if not names or str(host) in self._read_hosts:
            return
        self._read_hosts.add(str(host))
        variables = self._play.get_variable_manager().get_vars(play=self._play, host=host)
        if _is_playbooks_of_collection(Path(str(variables.get("playbook_dir", ".")))):
            self._folder = Path.cwd()
        templar = Templar(loader=self._play.get_loader(), variables=variables)
        self._settings.update(
            {name: templar.template(variables[name]) for name in names if name in variables}
        )
        if boolean(self._settings.get("drift_table", False)):
            switch.list_findings()

    def _so_far(self) -> Contents:
        """Return the findings of the run, compared with the last run [C9]."""
        recorder = self._recorder
        recorder.contents.check = recorder.is_check(default=any(self._checks))
        accepted = ignored.active(self._accepted(), _today())
        return recorder.contents.since(
            since.last_run(self._report_folder()), accepted, summarised=recorder.summarised
        )

    def _accepted(self) -> list[ignored.Ignored]:
        """Return the entries of `drift_ignore`. Invalid entries cause a warning."""
        try:
            return ignored.parse(self._settings.get("drift_ignore"))
        except ignored.IgnoreError as error:
            Display().warning(f"drift_ignore has no effect: {error}")
            return []

    def _warnings(self) -> list[str]:
        last = since.last_run(self._report_folder())
        warned = [last.warning] if last.warning else []
        return warned + list(ignored.warnings(self._accepted(), _today()))

    def _report_folder(self) -> Path | None:
        """Return the folder of the report, or `None` if no report is requested.

        Relative paths start in the folder of the playbook, or in the working directory for a
        playbook of the collection [C1.6].
        """
        if self._recorder.folder is not None:
            return self._recorder.folder
        named = self._settings.get("drift_report") or os.environ.get("TOOLCHAIN_REPORT")
        if not named or not writing.is_path(named):  # the playbooks reject other values
            return None
        return self._folder / Path(str(named)).expanduser()


def _today() -> date:
    """Return the current day in the local time zone, as `until` in `drift_ignore`."""
    return datetime.now().astimezone().date()


def _is_playbooks_of_collection(folder: Path) -> bool:
    return folder.resolve() == collection.ROOT / "playbooks"
