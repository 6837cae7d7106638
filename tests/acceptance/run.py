# SPDX-License-Identifier: GPL-3.0-or-later
"""Try the modules of a service on a server of your own, and print a table for an issue.

    python -m tests.acceptance.run wiki https://wiki.example.com --write space=REL
    python -m tests.acceptance.run ci https://ci.example.com --record FILE --product 'Jenkins 2.516'

Logins come from the environment variables of the service (docs/connections.md). Without `--write`
only modules that read are run. With it, each object gets a name with a random prefix. It is created
and updated in check mode, in a run and once again, and deleted at the end, also after an error.
`--record` writes all exchanges with the server, without anything private (docs/recording.md).
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible import release

from tests.acceptance import recordings
from tests.helpers import exchanges, playbook
from tools import tree

SUITES = Path(__file__).parent
#: Seconds for all steps of a service.
_SECONDS = 1800


@dataclass(frozen=True)
class Step:
    """A task, and whether it has to report a change."""

    name: str
    module: str
    options: Mapping[str, Any]
    changed: bool = False
    check: bool = False


@dataclass(frozen=True)
class Outcome:
    """The result of a step."""

    step: Step
    text: str
    requests: int
    passed: bool


def suite_of(name: str) -> dict[str, Any]:
    """Return the content of a suite; by default its name is that of its service."""
    suite: dict[str, Any] = yaml.safe_load((SUITES / f"{name}.yml").read_text("utf-8"))
    return {"service": name, **suite}


def steps_of(
    suite: Mapping[str, Any], *, write: bool, only: Collection[str] = ()
) -> tuple[list[Step], list[Step]]:
    """Return the steps of a suite, and those that delete its objects.

    :param only: the modules to try; by default all
    """
    steps: list[Step] = []
    deletions: list[Step] = []
    for one in suite["read"]:
        if not only or one["module"] in only:
            steps.append(Step("read", one["module"], one["options"]))
    for one in suite["write"] if write else ():
        module = one["module"]
        if only and module not in only:
            continue
        for name in [each for each in ("create", "update") if each in one]:
            steps += [
                Step(f"{name} in check mode", module, one[name], changed=True, check=True),
                Step(name, module, one[name], changed=True),
                Step(f"{name} again", module, one[name]),
            ]
        for each in one.get("use", ()):
            steps.append(Step("use", each["module"], each["options"], each.get("changed", False)))
        remover = one.get("remove", module)
        again = Step("delete again", remover, one["delete"])
        deletions[:0] = [Step("delete", remover, one["delete"], changed=True), again]
    return steps, deletions


def run(
    name: str,
    connection: Mapping[str, Any],
    values: Mapping[str, str],
    *,
    write: bool,
    only: Collection[str] = (),
    product: str = "",
    record: Path | None = None,
) -> list[Outcome]:
    """Run a suite.

    :param name: name of the suite
    :param connection: connection options of the server, in addition to the environment
    :param values: the values that the suite needs
    :param product: name and version of the server, for the recording
    :param record: file for the exchanges with the server
    """
    tree.make_importable()
    suite = suite_of(name)
    service = suite["service"]
    steps, deletions = steps_of(suite, write=write, only=only)
    named = {f"{number} {step.name}": step for number, step in enumerate([*steps, *deletions])}
    tasks = [
        playbook.task(step.module, step.options, label, check_mode=step.check)
        for label, step in named.items()
    ]
    tried = tasks[: len(steps)] or [{"ansible.builtin.meta": "noop"}]
    prefix = f"toolchain-acceptance-{secrets.token_hex(3)}"
    play = playbook.play(
        [{"name": "Try", "block": tried, "always": tasks[len(steps) :]}],
        vars={"prefix": prefix, **values},
        module_defaults={f"group/{playbook.NAMESPACE}.{service}": dict(connection)},
    )
    variables = {key: text for key, text in os.environ.items() if key.startswith("TOOLCHAIN_")}
    found: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="toolchain-acceptance-") as folder,
        exchanges.listening(found) as listening,
    ):
        given = {**variables, **(listening if record else {})}
        done = playbook.run(Path(folder), [play], variables=given, seconds=_SECONDS)
    events = {event.task: event for event in done.events}
    outcomes = {label: _outcome(step, events.get(label)) for label, step in named.items()}
    if record is not None:
        dialect, account = (
            str(connection.get(key) or variables.get(f"TOOLCHAIN_{service}_{key}".upper(), ""))
            for key in ("dialect", "username")
        )
        recordings.write(
            record,
            {"service": service, "suite": name, "product": product, "dialect": dialect},
            url=str(connection["url"]),
            prefix=prefix,
            values={**values, "account": account} if account else values,
            taken=[
                (outcome.step, outcome.text, [each for each in found if each["task"] == label])
                for label, outcome in outcomes.items()
            ],
        )
    return list(outcomes.values())


def _outcome(step: Step, event: playbook.Event | None) -> Outcome:
    if event is None:
        return Outcome(step, "not run", 0, passed=False)
    requests = (event.result.get("http") or {}).get("requests", 0)
    if event.status != "ok":
        error = event.result.get("error") or {}
        text = f"{error.get('kind', 'failed')}: {event.result.get('msg')}"
        return Outcome(step, text, requests, passed=False)
    changed = bool(event.result.get("changed"))
    text = "changed" if changed else "unchanged"
    return Outcome(step, text, requests, passed=step.changed == changed)


def table(outcomes: Sequence[Outcome], url: str) -> str:
    """Return the outcomes as Markdown, without the address of the server."""
    lines = ["| module | step | result | server | requests |", "|---|---|---|---|---|"]
    for one in outcomes:
        said = " ".join(one.text.replace(url.rstrip("/"), "URL").replace("|", "\\|").split())
        result = "passed" if one.passed else "FAILED"
        cells = (one.step.module, one.step.name, result, said, str(one.requests))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a suite, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("service", choices=sorted(file.stem for file in SUITES.glob("*.yml")))
    parser.add_argument("url", help="address of the server")
    parser.add_argument("--write", action="store_true", help="also create, change and delete")
    parser.add_argument("--only", action="append", default=[], help="a module; may be repeated")
    parser.add_argument("--record", type=Path, help="a file for all exchanges with the server")
    parser.add_argument("--product", help="name and version of the server, for the recording")
    parser.add_argument("values", nargs="*", help="what the suite needs, as space=REL")
    given = parser.parse_args(arguments)
    values = dict(each.partition("=")[::2] for each in given.values)
    needs = suite_of(given.service)["needs"]
    missing = [
        f"give {name}=..., the {text}" for name, text in needs.items() if not values.get(name)
    ]
    unknown = sorted(values.keys() - needs.keys())
    if given.record and not given.product:
        parser.error("give --product, the name and version of the server, as 'Jira 10.3.1'")
    if missing:
        parser.error("; ".join(missing))
    if unknown:
        parser.error(f"{', '.join(unknown)}: not known; {given.service} needs {', '.join(needs)}")
    options = {"write": given.write, "only": given.only, "record": given.record}
    outcomes = run(
        given.service, {"url": given.url}, values, product=given.product or "", **options
    )
    print(table(outcomes, given.url))
    passed = sum(one.passed for one in outcomes)
    print(f"\n{passed} of {len(outcomes)} steps passed, ansible-core {release.__version__}")
    print("Add the product, edition and version of the server.")
    return int(passed < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
