"""A sweep given as a dictionary: the content of its file."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping

from ._errors import Error


def _value(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise Error(f"sweep: {where}: {value} is no number that a plan can have")
        return repr(value)
    if isinstance(value, str):
        # JSON's escapes are TOML's; DEL has to be one as well.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_value(str(key), where)} = {_value(one, f'{where}.{key}')}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple, range)):
        return "[" + ", ".join(_value(one, where) for one in value) + "]"
    # Numbers of numpy.
    if hasattr(value, "item"):
        return _value(value.item(), where)
    raise Error(f"sweep: {where}: {type(value).__name__} is nothing that a plan can have")


def to_toml(plan: Mapping[str, Any]) -> str:
    """The plan as TOML: a line per key, tables inline."""
    return "".join(f"{_value(str(key), str(key))} = {_value(value, str(key))}\n" for key, value in plan.items())
