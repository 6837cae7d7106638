# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that the query language keeps for itself: as a field they stand in quotation marks."""

from __future__ import annotations

RESERVED_WORDS = frozenset(
    """
    a abort access add after alias all alter and any are as asc audit avg be before begin between
    boolean break but by byte catch cf changed char character check checkpoint collate collation
    column commit connect continue count create current date decimal declare decrement default
    defaults define delete delimiter desc difference distinct divide do double drop else empty
    encoding end equals escape exclusive exec execute exists explain false fetch file field first
    float for from function go goto grant greater group having identified if immediate in increment
    index initial inner inout input insert int integer intersect intersection into is isempty
    isnull it join last left less like limit lock long max min minus mode modify modulo more
    multiply next no noaudit not notin nowait null number object of on option or order outer output
    power previous prior privileges public raise raw remainder remove rename resource return
    returns revoke right row rowid rownum rows select session set share size sqrt start strict
    string subtract such sum synonym table that the their then there these they this to trans
    transaction trigger true uid union unique update user validate values view was when whenever
    where while will with
    """.split()  # noqa: SIM905 - a list of two hundred literals would be longer than the page
)
