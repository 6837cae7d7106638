# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a recording of `make acceptance` with the sandbox, and keep it as facts and a test.

    python -m tests.acceptance.recordings FILE

This prints the differences, copies the recording to `tests/strangers/recorded`, where a test plays
it to the modules, and writes docs/interfaces/recordings.md. With `--compare` it only prints.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Template

from sandbox.client import Sandbox
from tests.acceptance.pseudonyms import SERVER, Pseudonyms, interface_of
from tests.helpers.replay import Comparison, label, members
from tools.tree import ROOT

KEPT = ROOT / "tests" / "strangers" / "recorded"
_SUITES = Path(__file__).parent
PAGE = ROOT / "docs" / "interfaces" / "recordings.md"
_HEAD = """\
# Seen on servers

Written by `python -m tests.acceptance.recordings`; a test compares it. Each section is a
[recording](../recording.md) of one server, which another test plays to the modules. The mark (w)
says that this server responded so: the statuses of a request, and the members of its responses.
`{}` is a segment of a path that names an object. The tables compare with the
[sandbox](../sandbox.md) in the flavour `real`.
"""


def write(
    file: Path,
    head: Mapping[str, Any],
    *,
    url: str,
    prefix: str,
    values: Mapping[str, str],
    taken: Sequence[tuple[Any, str, Sequence[Mapping[str, Any]]]],
) -> None:
    """Write a recording, and print what was replaced in it.

    :param head: service, suite, product and dialect
    :param values: the values of the suite that name objects of the server
    :param taken: each step, its result, and its exchanges
    """
    suite = yaml.safe_load((_SUITES / f"{head['suite']}.yml").read_text("utf-8"))
    own = {text.replace("{{ prefix }}", prefix) for text in _texts([suite["read"], suite["write"]])}
    interface, private = interface_of(head["service"]), list(values.values())
    names = Pseudonyms(interface, url=url, own=own, prefix=prefix, private=private)
    given = {name: names.string(value, name) for name, value in values.items()}
    lines: list[Any] = [{**head, "month": f"{datetime.now(UTC):%Y-%m}", "values": given}]
    begun = [each["begun"] for _step, _result, found in taken for each in found]
    for step, result, found in taken:
        options = names.value(filled(step.options, {"prefix": prefix, **values}))
        about = {"step": step.name, "module": step.module, "options": options}
        lines.append({**about, "check": step.check, "result": result.partition(":")[0]})
        lines += [record_of(exchange, names, min(begun)) for exchange in found]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    replaced = [f"{len(found)} {kind}" for kind, found in names.replaced.items() if found]
    left_out = [f"{count} {name}" for name, count in names.left_out.items() if count]
    print(f"\nReplaced in {file}: {', '.join(replaced)}")
    print(f"Left out: {', '.join(left_out) or 'nothing'}")
    if not begun:
        print("No exchange was recorded, because the server did not respond.")
    print("Read the file before you send it: docs/recording.md says how.\n")


def _texts(value: Any) -> Iterator[str]:
    """Yield the strings in a suite, and the words in them."""
    if isinstance(value, str):
        yield from (value, *re.findall(r"[\w:.-]+", value))
    elif isinstance(value, dict | list):
        for each in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(each)


def filled(value: Any, variables: Mapping[str, str]) -> Any:
    """Return an option with the values of its templates."""
    if isinstance(value, Mapping):
        return {name: filled(each, variables) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, variables) for each in value]
    return Template(value).render(variables) if isinstance(value, str) else value


def record_of(exchange: Mapping[str, Any], names: Pseudonyms, first: float) -> dict[str, Any]:
    """Return an exchange without anything private.

    :param first: the time at which the first exchange of the recording began
    """
    path = names.string(exchange["url"]).removeprefix(SERVER)
    record = {"method": exchange["method"], "status": exchange["status"], "path": path}
    for name, headers in (("body", "headers"), ("response", "response_headers")):
        lower = {each.lower(): value for each, value in exchange[headers].items()}
        if exchange[name]:
            kind = lower.get("content-type", "")
            record[name] = names.body(exchange[name], kind, path.partition("?")[0])
        record[headers] = names.headers(exchange[headers])
    begun = round(exchange["begun"] - first, 3)
    return {**record, "begun": begun, "seconds": round(exchange["seconds"], 3)}


def read(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a recording: its head, steps, and after each step its exchanges."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def table(differences: Iterable[tuple[str, str]]) -> str:
    """Return differences as Markdown."""
    rows = [f"| `{which}` | {difference} |" for which, difference in differences]
    return "\n".join(["| request | difference |", "|---|---|", *rows])


def page(fresh: Callable[[], Mapping[str, str]]) -> str:
    """Return the page about all recordings.

    :param fresh: resets the sandbox, and returns its addresses
    """
    sections = [_HEAD]
    for file in sorted(KEPT.glob("*.jsonl")):
        head, *records = recording = read(file)
        interface = interface_of(head["service"])
        statuses: dict[str, set[str]] = defaultdict(set)
        known: dict[str, set[str]] = defaultdict(set)
        for record in (each for each in records if "method" in each):
            which = label(record, interface)
            statuses[which].add(str(record["status"]))
            places = members(record, interface) if record["status"] < 400 else ()
            known[which] |= {
                one for one in places if one.strip("[]") and not re.search(r"\[\]$|\*", one)
            }
        facts = []
        for which, found in statuses.items():
            seen = [*sorted(found), *(f"`{one}`" for one in sorted(known[which]))]
            facts.append(f"- `{which}`: {', '.join(seen)} (w)")
        differences = Comparison(recording, fresh()).differences
        title = f"## {head['product']}: suite {head['suite']}, {head['month']}"
        compared = table(differences) if differences else "The sandbox responds in the same way."
        sections.append("\n\n".join([title, "\n".join(facts), compared]) + "\n")
    return "\n".join(sections)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare a recording, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", action="store_true", help="keep nothing")
    given = parser.parse_args(arguments)
    recording = read(given.file)
    with Sandbox.start(flavour="real") as sandbox:

        def fresh() -> Mapping[str, str]:
            sandbox.reset()
            return sandbox.urls

        found = Comparison(recording, sandbox.urls).differences
        print(table(found) if found else "The sandbox responds in the same way.")
        if not given.compare:
            name = f"{recording[0]['suite']}-{recording[0]['product']}".lower()
            kept = KEPT / f"{re.sub('[^a-z0-9.]+', '-', name)}.jsonl"
            KEPT.mkdir(exist_ok=True)
            kept.write_bytes(given.file.read_bytes())
            PAGE.write_text(page(fresh), encoding="utf-8")
            print(f"Kept as {kept}, which a test plays to the modules, and in {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
