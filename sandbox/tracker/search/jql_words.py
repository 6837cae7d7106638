# SPDX-License-Identifier: GPL-3.0-or-later
"""Reserved words and characters of the query language (vendor's JQL reference)."""

from __future__ import annotations

# Characters that must be inside a quoted string, or be written as \uXXXX.
RESERVED_CHARACTERS = frozenset("{}*/%+^$#@?;[]")

# fmt: off
RESERVED_WORDS = frozenset(
    [
        "abort", "access", "add", "after", "alias", "all", "alter", "and", "any", "as", "asc",
        "audit", "avg", "before", "begin", "between", "boolean", "break", "by", "byte", "catch",
        "cf", "char", "character", "check", "checkpoint", "collate", "collation", "column",
        "commit", "connect", "continue", "count", "create", "current", "date", "decimal",
        "declare", "decrement", "default", "defaults", "define", "delete", "delimiter", "desc",
        "difference", "distinct", "divide", "do", "double", "drop", "else", "empty", "encoding",
        "end", "equals", "escape", "exclusive", "exec", "execute", "exists", "explain", "false",
        "fetch", "file", "field", "first", "float", "for", "from", "function", "go", "goto",
        "grant", "greater", "group", "having", "identified", "if", "immediate", "in", "increment",
        "index", "initial", "inner", "inout", "input", "insert", "int", "integer", "intersect",
        "intersection", "into", "is", "isempty", "isnull", "join", "last", "left", "less", "like",
        "limit", "lock", "long", "max", "min", "minus", "mode", "modify", "modulo", "more",
        "multiply", "next", "noaudit", "not", "notin", "nowait", "null", "number", "object", "of",
        "on", "option", "or", "order", "outer", "output", "power", "previous", "prior",
        "privileges", "public", "raise", "raw", "remove", "rename", "resource", "return",
        "returns", "revoke", "right", "row", "rowid", "rownum", "rows", "select", "session",
        "set", "share", "size", "sqrt", "start", "strict", "string", "subtract", "sum", "synonym",
        "table", "then", "to", "trans", "transaction", "trigger", "true", "uid", "union",
        "unique", "update", "user", "validate", "values", "view", "when", "whenever", "where",
        "while", "with",
    ]
)
# fmt: on
