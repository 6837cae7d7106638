# SPDX-License-Identifier: GPL-3.0-or-later
"""Edit configurations in files of a desired state, and keep what does not differ."""

from __future__ import annotations

import copy
import difflib
import random
import re

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import (
    configuration,
    configuration_file,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.xml_reader import (
    KEPT,
    XmlElement,
    parse,
    written_in_lines,
)

#: Random edits of the test below. Thousands have been run by hand.
RANDOM_EDITS = 30
OWN = """<?xml version='1.1' encoding='UTF-8'?>
<!-- ours -->
<project>
  <description>old</description> <!-- why -->
  <keepDependencies>false</keepDependencies>
  <scm class="hudson.scm.NullSCM"/>
  <builders>
    <!-- first -->
    <hudson.tasks.Shell><command><![CDATA[make <all>]]></command></hudson.tasks.Shell>
    <hudson.tasks.Shell>
      <command>make test</command>
    </hudson.tasks.Shell>
  </builders>
  <properties>
    <x.Token plugin="x@1"><token>s-1&#13;</token><!-- of x --><on>true</on></x.Token>
  </properties>
</project>
"""


def _exported(*changes: tuple[str, str]) -> str:
    """Return an export of the configuration, with replaced strings."""
    text = written_in_lines(parse(OWN)).replace("s-1&#xd;", KEPT)
    for old, new in changes:
        assert old in text, text
        text = text.replace(old, new, 1)
    return text


CHANGES: list[tuple[list[tuple[str, str]], list[str]]] = [
    ([], []),
    # the server adds defaults
    (
        [("<builders>", "<actions></actions><canRoam>true</canRoam><builders>")],
        ["+  <canRoam>true</canRoam>"],
    ),
    (
        [("<description>old", "<description>&lt;new>")],
        [
            "-  <description>old</description> <!-- why -->",
            "+  <description>&lt;new&gt;</description> <!-- why -->",
        ],
    ),
    (
        [("<on>true", "<on>false")],
        [
            '-    <x.Token plugin="x@1"><token>s-1&#13;</token><!-- of x --><on>true</on></x.Token>',
            '+    <x.Token plugin="x@1"><token>s-1&#13;</token><!-- of x --><on>false</on></x.Token>',
        ],
    ),
    (
        [('<scm class="hudson.scm.NullSCM"></scm>', '<scm class="a.Git"><url>u</url></scm>')],
        [
            '-  <scm class="hudson.scm.NullSCM"/>',
            '+  <scm class="a.Git">',
            "+    <url>u</url>",
            "+  </scm>",
        ],
    ),
    (
        [("make test", "make more")],
        ["-      <command>make test</command>", "+      <command>make more</command>"],
    ),
    (
        [
            (
                "  </builders>",
                "    <hudson.tasks.Shell>\n      <command>z</command>\n    </hudson.tasks.Shell>\n  </builders>",
            )
        ],
        ["+    <hudson.tasks.Shell>", "+      <command>z</command>", "+    </hudson.tasks.Shell>"],
    ),
    (
        [
            (
                "    <hudson.tasks.Shell>\n      <command>make test</command>\n    </hudson.tasks.Shell>\n",
                "",
            )
        ],
        [
            "-    <hudson.tasks.Shell>",
            "-      <command>make test</command>",
            "-    </hudson.tasks.Shell>",
        ],
    ),
]


@pytest.mark.parametrize("line", ["\n", "\r\n"])
@pytest.mark.parametrize(("changes", "lines"), CHANGES, ids=range(len(CHANGES)))
def test_only_elements_that_differ_change(
    changes: list[tuple[str, str]], lines: list[str], line: str
) -> None:
    own = OWN.replace("\n", line)
    text = configuration_file.merged(own, _exported(*changes))
    assert line == "\n" or text.count("\n") == text.count("\r\n")
    found = difflib.unified_diff(OWN.splitlines(), text.splitlines(), n=0, lineterm="")
    assert [row for row in found if row[:2] not in ("--", "++", "@@")] == lines


def test_unreadable_files_are_replaced() -> None:
    assert configuration_file.merged("<a", "<project/>") == "<project/>"
    assert configuration_file.merged("", "<project/>") == "<project/>"
    assert configuration_file.merged(OWN, "<folder/>").endswith("ours -->\n<folder></folder>\n")


def _random_tree(chance: random.Random, depth: int) -> XmlElement:
    if chance.random() < 0.4:
        names = [chance.choice(("x.A", "x.B", "string")) for _number in range(chance.randint(1, 4))]
    else:
        names = chance.sample(["a", "b", "c", "disabled", "name"], chance.randint(1, 4))
    children = []
    for name in names:
        if depth and chance.random() < 0.5 and name not in ("disabled", "name"):
            children.append(XmlElement(name, children=_random_tree(chance, depth - 1).children))
        else:
            text = chance.choice(["", "true", "false", "1", "u v", "ü < &", "two\nlines"])
            children.append(XmlElement(name, text=text))
    return XmlElement("project", children=children)


def _change_at_random(chance: random.Random, root: XmlElement) -> bool:
    """Change an element. Return whether that was its text."""
    elements = [element for element, _parent in root.iterate()]
    element = chance.choice(elements)
    kind = chance.random()
    if not element.children:
        element.text = chance.choice(["new", "", "x\ny", "false"])
    elif kind < 0.3 and len(element.children) > 1:
        element.children.pop(chance.randrange(len(element.children)))
    elif kind < 0.6:
        new = _random_tree(chance, 1).children[0]
        if all(child.name != new.name for child in element.children) or "." in new.name:
            element.children.insert(chance.randint(0, len(element.children)), new)
    else:
        chance.shuffle(element.children)
    return not element.children


def _check_random_edit(seed: int) -> None:
    chance = random.Random(seed)
    root = _random_tree(chance, 3)
    number = 0

    def comment(line: re.Match[str]) -> str:
        nonlocal number
        number += 1
        return f"{line[0]}<!-- c{number:03} -->" if chance.random() < 0.5 else line[0]

    own = re.sub(r"(?m)</[\w.]+>$", comment, written_in_lines(root))
    wanted = copy.deepcopy(root)
    texts_only = all(_change_at_random(chance, wanted) for _number in range(chance.randint(1, 3)))
    exported = written_in_lines(wanted)
    text = configuration_file.merged(own, exported)
    assert not configuration.drift(exported, text).found, f"{seed}\n{own}\n{exported}\n{text}"
    if not configuration.drift(exported, own).found:
        assert text == own
    elif texts_only:
        assert re.findall("<!-- c.*?-->", text) == re.findall("<!-- c.*?-->", own), (
            f"{seed}\n{text}"
        )


@pytest.mark.parametrize("seed", range(RANDOM_EDITS))
def test_random_edits_have_the_meaning_of_the_server(seed: int) -> None:
    _check_random_edit(seed)
