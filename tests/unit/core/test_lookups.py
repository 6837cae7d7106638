# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the options of lookups, which Ansible reads by other rules than the options of modules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, ClassVar

import pytest
from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import lookup_cache, lookups

FOLDER = Path(__file__).parents[3] / "plugins" / "lookup"


class Upper:
    """Simulate the templating of Ansible."""

    def template(self, value: str) -> str:
        return value.upper()


class LookupModule(LookupBase):
    """Record the options that Ansible would find."""

    option_definitions: ClassVar = {
        "_terms": {},
        "url": {"type": "str"},
        "jql": {"type": "str"},
        "username": {"type": "str", "aliases": ["user"]},
    }

    def set_options(
        self, task_keys: Any = None, var_options: Any = None, direct: Any = None
    ) -> None:
        self.seen = {name: value for name, value in os.environ.items() if "TOOLCHAIN" in name}
        self.given = (var_options, direct)
        if direct == {"jql": "wrong"}:
            raise AnsibleError("no such option")

    def run(self, terms: Any, variables: Any = None, **kwargs: Any) -> list[Any]:
        return []


def test_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCHAIN_WIKI_VALIDATE_CERTS", "")
    monkeypatch.setenv("TOOLCHAIN_REPO_DIALECT", "")
    monkeypatch.setenv("TOOLCHAIN_WIKI_RETRIES", "7")
    monkeypatch.setenv("TOOLCHAIN", "")
    lookup = LookupModule(templar=Upper())
    variables = {"toolchain_wiki_url": "http://y", "toolchain_wiki_token": "a", "url": "http://z"}
    lookups.set_options(lookup, "wiki", variables, {"url": "http://y/x"})
    assert lookup.given == (None, {"url": "http://y/x", "token": "A"})
    assert lookup.seen == {"TOOLCHAIN_WIKI_RETRIES": "7", "TOOLCHAIN": ""}
    with pytest.raises(AnsibleError, match="no such option"):
        lookups.set_options(lookup, "wiki", None, {"jql": "wrong"})
    assert os.environ["TOOLCHAIN_WIKI_VALIDATE_CERTS"] == ""
    assert os.environ["TOOLCHAIN_REPO_DIALECT"] == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"jql": 1.1}, "jql is the number 1.1"),
        ({"url": " "}, "url is empty"),
        ({"usrname": "a"}, r"^usrname is not an option of the lookup: did you mean username\?$"),
        (
            {"limit": 5},
            "^limit is not an option of the lookup: its options are url, jql, username, user$",
        ),
        ({"_terms": "a"}, "^_terms is not an option"),
    ],
)
def test_invalid_option_is_rejected(given: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleError, match=words):
        lookups.set_options(LookupModule(templar=Upper()), "wiki", None, given)


def test_option_alias_is_accepted() -> None:
    lookup = LookupModule(templar=Upper())
    lookups.set_options(lookup, "wiki", None, {"user": "ann"})
    assert lookup.given[1]["user"] == "ann"


@pytest.mark.parametrize("terms", [[True], ["a", 1.1], ["a", [" "]], [{"a": "b"}]])
def test_invalid_term_is_rejected(terms: list[Any]) -> None:
    with pytest.raises(AnsibleError, match="_terms"):
        lookups.string_terms(terms, "a text")


def test_terms_become_strings() -> None:
    assert lookups.string_terms(["a", [7, "b"]], "a text") == ["a", "7", "b"]


def test_every_lookup_reads_its_options_with_the_helper() -> None:
    for path in FOLDER.glob("[a-z]*.py"):
        text = path.read_text(encoding="utf-8")
        if "lookups.run_query(" not in text:  # a lookup without a request to a service
            continue
        assert "lookups.set_options(self, " in text, path.name
        assert "self.set_options(" not in text, path.name


def test_every_querying_lookup_caches_its_responses() -> None:
    for path in FOLDER.glob("[a-z]*.py"):
        text = path.read_text(encoding="utf-8")
        is_query = "(lookups.QueryLookup)" in text and "def run(" not in text
        asks = is_query or "lookups.run_query" in text
        assert (is_query or "lookups.cached(" in text) == asks, path.name
        assert ("- delivery.toolchain.lookup_cache\n" in text) == asks, path.name


def test_response_is_not_cached_if_forgotten_in_the_meantime(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible.constants.DEFAULT_LOCAL_TMP", str(tmp_path))
    asked: list[int] = []

    def response() -> list[int]:
        asked.append(len(asked))
        if len(asked) == 1:
            lookup_cache.forget()
            lookup_cache.cached({"another": "question"}, list)
        return asked

    assert lookup_cache.cached({"a": "question"}, response) == [0]
    assert lookup_cache.cached({"a": "question"}, response) == [0, 1]
    assert lookup_cache.cached({"a": "question"}, response) == [0, 1]
    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")} == {0}


def test_failure_is_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible.constants.DEFAULT_LOCAL_TMP", str(tmp_path))

    def broken() -> list[int]:
        raise AnsibleError("no such page")

    with pytest.raises(AnsibleError, match="no such page"):
        lookup_cache.cached({"a": "question"}, broken)
    assert lookup_cache.cached({"a": "question"}, lambda: [1]) == [1]
