"""Groups of options that commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, get_type_hints


@dataclass(frozen=True)
class OptionGroup:
    """Options of a command, a field each; the annotation of a field is what typer reads."""


def expanded(command: Callable[..., int]) -> Callable[..., int]:
    """Return ``command`` as typer reads it: a parameter that is a group of options becomes the options of the group."""
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[inspect.Parameter] = []
    told = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        group = told[name]
        if not (isinstance(group, type) and issubclass(group, OptionGroup)):
            parameters.append(parameter.replace(annotation=group, kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(group, include_extras=True)
        groups[name] = group, [field.name for field in fields(group)]
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in fields(group)
        ]

    def gathered(**given: Any) -> int:
        values = {name: group(**{key: given.pop(key) for key in keys}) for name, (group, keys) in groups.items()}
        return command(**values, **given)

    gathered.__name__, gathered.__doc__ = command.__name__, command.__doc__
    gathered.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    gathered.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return gathered
