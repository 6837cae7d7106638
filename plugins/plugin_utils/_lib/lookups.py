# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared code of the lookups: options, connections, cached results."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, TypeVar

from ansible.errors import AnsibleLookupError
from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins import AnsiblePlugin
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ...module_utils._lib.core.connection.options import argument_spec, resolve
from ...module_utils._lib.core.errors import ToolchainError, printable
from ...module_utils._lib.core.http.connections import REQUESTS_MISSING
from ...module_utils._lib.core.module import input_check, typed_options
from ...module_utils._lib.core.module.task import Task
from ...module_utils._lib.core.secret import hidden, secrets_in_addresses
from . import ansible_internals, lookup_cache
from .services import SERVICES
from .variables import from_variables

Options = TypeVar("Options")

#: Variables that identify a play, as a part of the cache key.
_PLAY = ("ansible_play_name", "ansible_play_hosts_all")


def set_options(
    lookup: LookupBase, service: str, variables: Mapping[str, Any] | None, values: Mapping[str, Any]
) -> None:
    """Set the options of a lookup, with the same input checks and connection variables as modules.

    Empty variables and environment variables count as unset.
    """
    reject_unknown(lookup, values)
    template = ansible_internals.template_of(lookup)
    values = {
        name: value for name, value in values.items() if not ansible_internals.is_omitted(value)
    }
    try:
        values = {**from_variables(service, values, variables or {}, template), **values}
        input_check.require_whole_characters(values)
        values = input_check.check_options(lookup.option_definitions, values)
    except ToolchainError as error:
        raise AnsibleLookupError(error.message) from None
    with without_empty_variables():
        lookup.set_options(direct=values)
    play = {name: (variables or {}).get(name) for name in _PLAY}
    lookup.cache_scope = service, play


@contextmanager
def without_empty_variables() -> Iterator[None]:
    """Hide empty environment variables: Ansible would read an empty `validate_certs` as false."""
    empty = [
        name for name, value in os.environ.items() if name.startswith("TOOLCHAIN_") and not value
    ]
    for name in empty:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(dict.fromkeys(empty, ""))


def reject_unknown(plugin: AnsiblePlugin, names: Mapping[str, Any]) -> None:
    """Raise AnsibleLookupError for unknown options, because Ansible ignores them.

    A query with a misspelt option would run without its limit, or with another login.
    """
    options: Mapping[str, Mapping[str, Any]] = plugin.option_definitions
    aliases = [alias for option in options.values() for alias in option.get("aliases") or ()]
    known = [name for name in (*options, *aliases) if name != "_terms"]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]}?" if near else f"its options are {', '.join(known)}"
            raise AnsibleLookupError(
                f"{name} is not an option of the {plugin.plugin_type}: {meant}"
            )


def further_service(
    lookup: LookupBase, service: str, variables: Mapping[str, Any] | None, values: Mapping[str, Any]
) -> Callable[[str], Any] | None:
    """Return a function that returns the connection options of an additional service.

    The options come from `values`, variables and the environment. Returns `None` if they contain no
    address.
    """
    template = ansible_internals.template_of(lookup)
    spec = argument_spec(SERVICES[service])
    try:
        named = {**from_variables(service, values, variables or {}, template), **values}
        checked = ArgumentSpecValidator(spec).validate(input_check.check_options(spec, named))
    except ToolchainError as error:
        raise AnsibleLookupError(f"{service}: {error.message}") from None
    if checked.error_messages:
        raise AnsibleLookupError(f"{service}: {'; '.join(checked.error_messages)}")
    options = checked.validated_parameters
    return options.get if options["url"] else None


def cached(
    lookup: LookupBase,
    term: Any,
    query: Callable[[], Sequence[Any]],
    further: Mapping[str, Callable[[str], Any] | None] | None = None,
) -> list[Any]:
    """Return the result of a lookup for a term, cached during the play if `cache` is true.

    :param query: computes the result
    :param further: connection options of additional services
    """
    if not lookup.get_option("cache"):
        return list(query())
    service, play = lookup.cache_scope
    options = {name: value for name, value in lookup.get_options().items() if name != "_terms"}
    others = {
        name: get and {option: get(option) for option in argument_spec(SERVICES[name])}
        for name, get in (further or {}).items()
    }
    key = {"service": service, "lookup": type(lookup).__module__, "term": term, "play": play}
    return lookup_cache.cached({**key, "options": options, "further": others}, query)


def require_terms(terms: Sequence[Any], wanted: str) -> None:
    """Raise AnsibleLookupError for a lookup without a term. An empty list is a valid term.

    :param wanted: the expected term, for the message
    """
    if not terms:
        raise AnsibleLookupError(f"this lookup was called without a term: specify {wanted}")


def string_terms(terms: Sequence[Any], wanted: str | None = None) -> list[str]:
    """Return the terms of a lookup as a list of strings. A term may be a list of strings.

    :param wanted: the expected term for the message, `None` if the lookup requires no term
    """
    if wanted is not None:
        require_terms(terms, wanted)
    try:
        return input_check.texts(
            itertools.chain.from_iterable(
                term if isinstance(term, (list, tuple)) else [term] for term in terms
            ),
            input_check.Place("_terms"),
        )
    except ToolchainError as error:
        raise AnsibleLookupError(error.message) from None


def parsed(options: type[Options], values: Mapping[str, Any]) -> Options:
    """Return the typed options of a lookup. Raises AnsibleLookupError if they break a rule."""
    try:
        return typed_options.parse(options, values)
    except ToolchainError as error:
        raise AnsibleLookupError(error.message) from None


def run_query(
    service: str, get: Callable[[str], Any], values: Mapping[str, Any], query: Callable[[Task], Any]
) -> Any:
    """Call `query` with a read-only task, and return its result. Raises AnsibleLookupError.

    :param get: returns the value of a connection option
    :param values: other options, searched for secrets
    """
    if REQUESTS_MISSING is not None:
        raise AnsibleLookupError(missing_required_lib("requests"))
    hidden.clear()  # secrets of the previous lookup in this process
    hidden.add(*secrets_in_addresses("url", get("url")), *secrets_in_addresses("", values))
    try:
        warn: Callable[[str], None] = lambda text: Display().warning(printable(text))  # noqa: E731
        task = Task(resolve(SERVICES[service], get), warn, read_only=True)
    except ToolchainError as error:
        hint = "" if get("url") else "; lookups do not use module_defaults"
        raise AnsibleLookupError(error.message + hint) from None
    try:
        return query(task)
    except ToolchainError as error:
        raise AnsibleLookupError(task.failure(error)["msg"]) from None


class QueryLookup(LookupBase):
    """A lookup that sends a query to a service for each of its terms.

    :cvar wanted: the expected term, for the message
    :cvar has_strings: whether the terms are strings
    """

    service: ClassVar[str]
    wanted: ClassVar[str]
    has_strings: ClassVar[bool] = True

    def run(
        self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        set_options(self, self.service, variables, kwargs)
        require_terms(terms, self.wanted)
        found = string_terms(terms) if self.has_strings else terms
        return [row for term in found for row in cached(self, term, partial(self.rows, term))]

    def rows(self, term: Any) -> list[Any]:
        """Return the result for a term."""
        raise NotImplementedError

    def ask(self, values: Mapping[str, Any], query: Callable[[Task], list[Any]]) -> list[Any]:
        """Return the result of a query. See :func:`run_query`."""
        found: list[Any] = run_query(self.service, self.get_option, values, query)
        return found
