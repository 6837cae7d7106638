# SPDX-License-Identifier: GPL-3.0-or-later
"""Test whole tasks on a server that rewrites pages on save, as the sandbox does."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sandbox.wiki.rewrite import rewrite
from tests.unit.stub import Stub
from tests.unit.wiki.documents import BODIES, SPACE, Writer, as_seen, edited
from tests.unit.wiki.running import Run
from tests.unit.wiki.server import Wiki, page


def test_saved_page_is_unchanged_and_every_edit_is_saved() -> None:
    wiki = Wiki(page(space=SPACE))
    wiki.saved = lambda body: rewrite(body, SPACE)
    with Stub(response=wiki) as stub:

        @settings(max_examples=40, deadline=None)
        @given(BODIES, st.integers(0, 2**32).map(random.Random))
        def save(blocks: list[Any], chance: random.Random) -> None:
            changed = edited(blocks, chance)
            assume(as_seen(changed) != as_seen(blocks))
            body, other = Writer(chance).body(blocks), Writer(chance).body(changed)
            first = Run(stub, page_id="7", body=body)
            first()
            stored = wiki.pages["7"]
            version = stored["version"]
            respelled = Writer(chance).body(blocks)
            assert not Run(stub, page_id="7", body=body)()[0].changed
            assert not Run(stub, page_id="7", body=respelled)()[0].changed
            plan, _result = Run(stub, page_id="7", body=other)()
            assert plan.changed
            assert plan.before != plan.after
            assert stored["version"] == version + 1
            assert not Run(stub, page_id="7", body=other)()[0].changed
            assert first.warnings == []

        save()
