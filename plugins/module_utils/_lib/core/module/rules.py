# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules between the options of a dataclass, declared in its class attribute `option_rules` [C1.6].

`typed_options.parse` checks them before the first request: those of the task, and those of its
suboptions. Rules that Ansible knows, such as `mutually_exclusive`, are in `constraints`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import invalid


class Rule:
    """Options that a condition requires or forbids.

    A condition is the name of an option, which is met if the option differs from its default, or a
    value such as `state=absent`.

    :param conditions: the rule applies if any of them is met, or always if there are none
    :param requires: further conditions, of which at least one must be met
    :param forbids: further conditions, none of which must be met
    :param allows: the only options that may be set
    :param because: reason for the message
    """

    def __init__(
        self,
        *conditions: str,
        requires: str | tuple[str, ...] = (),
        forbids: str | tuple[str, ...] = (),
        allows: tuple[str, ...] | None = None,
        because: str = "",
    ) -> None:
        self.conditions, self.allows = conditions, allows
        self.requires = (requires,) if isinstance(requires, str) else requires
        self.forbids = (forbids,) if isinstance(forbids, str) else forbids
        self._because = f", because {because}" if because else ""

    def check(self, values: Mapping[str, Any], given: Mapping[str, bool]) -> None:
        """Raise `invalid` if the options break the rule.

        :param values: values of all options by name
        :param given: whether an option differs from its default
        """
        has_required = any(_is_met(each, values, given) for each in self.requires)
        if not self.conditions and not has_required:
            raise invalid(f"{' or '.join(self.requires)} is missing: set one of them")
        for condition in self.conditions:
            if not _is_met(condition, values, given):
                continue
            if self.requires and not has_required:
                one = "it" if len(self.requires) == 1 else "one of them"
                hint = f"set {one}" if "=" in condition else f"set {one}, or omit {condition}"
                needed = f"{' or '.join(self.requires)}{self._because}"
                raise invalid(f"{condition} requires {needed}: {hint}")
            if self.allows is None:
                wrong = [each for each in self.forbids if _is_met(each, values, given)]
            else:
                allowed = (*self.allows, condition.partition("=")[0])
                wrong = [name for name, is_set in given.items() if is_set and name not in allowed]
            for name in wrong:
                raise invalid(
                    f"{name} cannot be combined with {condition}{self._because}: omit {name}"
                )


def _is_met(condition: str, values: Mapping[str, Any], given: Mapping[str, bool]) -> bool:
    name, mark, value = condition.partition("=")
    return str(values[name]).lower() == value if mark else given[name]


def check_number(name: str, value: float, least: float | None, above: float | None) -> None:
    """Raise `invalid` for a number that is too small.

    :param least: smallest valid number
    :param above: largest number that is too small
    """
    if least is not None and value < least:
        raise invalid(f"{name} is {value:g}: set it to {least:g} or more")
    if above is not None and value <= above:
        raise invalid(f"{name} is {value:g}: set it to more than {above:g}")
