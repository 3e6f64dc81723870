"""Rows of a result as a pandas frame, units in the names of its columns."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, Mapping, Optional

import pandas

_UNITS = {"ps": "ps", "ns": "ns", "us": "us", "ms": "ms", "s": "s", "GBps": "GB/s", "TBps": "TB/s", "MB": "MB",
          "TFLOPS": "TFLOPS", "TOPS": "TOPS", "db": "dB"}
# Endings that are a unit as a whole.
_RATES = {"tokens_s": "tokens/s", "tokens_s_npu": "tokens/s per NPU",
          "tokens_s_tflops": "tokens/s per TFLOPS", "_rps": "requests/s", "cycles": "cycles"}
# Units of quantities as the command writes them, by kind, in the kind's base unit.
_KINDS: List[Dict[str, float]] = [
    {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0},
    {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    {"B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12},
    {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
]
_QUANTITY = re.compile(r"([0-9.]+(?:e[+-]?[0-9]+)?)([A-Za-z/]+)")


def unit(column: str) -> str:
    """The unit of a column, as labels of axes have it: "us" of latency_us.mean; "" if it has none."""
    for part in reversed(column.split(".")):
        for name, rate in _RATES.items():
            if part.endswith(name):
                return rate
        ending = re.search(r"_([A-Za-z]+)$", part)
        if ending and ending[1] in _UNITS:
            return _UNITS[ending[1]]
        if ending and ending[1].replace("ps", "/s") in {name for kind in _KINDS for name in kind}:
            return ending[1].replace("ps", "/s")
        if ending and any(ending[1] in kind for kind in _KINDS):
            return ending[1]
    return ""


def flatten(row: Mapping[str, Any], prefix: str = "") -> Dict[str, Any]:
    """{"latency_us": {"mean": 1}, "phases": [{"name": "send", "mean_us": 2}]} is {"latency_us.mean": 1,
    "phases.send.mean_us": 2}."""
    flat: Dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{key}."))
        elif isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
            for number, one in enumerate(value):
                rest = {name: held for name, held in one.items() if name != "name"}
                flat.update(flatten(rest, f"{prefix}{key}.{one.get('name', number)}."))
        else:
            flat[prefix + key] = value
    return flat


def _numbers(values: Iterable[Any], unit_first: Optional[str]) -> Optional["tuple[str, List[float]]"]:
    """Texts such as "50ns" in one unit; None if one is no quantity, or of another kind."""
    found = [_QUANTITY.fullmatch(value) if isinstance(value, str) else None for value in values]
    if not found or not all(found):
        return None
    units = [match[2] for match in found if match]
    kind = next((kind for kind in _KINDS if all(name in kind for name in units)), None)
    if kind is None:
        return None
    wanted = unit_first if unit_first in kind else units[0]
    return wanted, [float(f"{float(match[1]) * kind[match[2]] / kind[wanted]:.12g}") for match in found if match]


def _bytes(value: Any) -> Any:
    """A size as the command line had it, where the other rows have numbers."""
    numbers = _numbers([value], "B") if isinstance(value, str) else None
    return int(numbers[1][0]) if numbers and numbers[0] == "B" else value


def with_units(frame: pandas.DataFrame, keys: Iterable[str], published: Mapping[str, str]) -> pandas.DataFrame:
    """Columns of quantities as numbers, their unit in the name: ub.link.bandwidth = "7GB/s" is
    ub.link.bandwidth_GBps = 7. In the unit of the published value, otherwise in that of the first row."""
    for key in keys:
        if key not in frame:
            continue
        match = _QUANTITY.fullmatch(str(published.get(key, "")))
        numbers = _numbers(frame[key].tolist(), match[2] if match else None)
        if numbers:
            frame[key] = numbers[1]
            frame = frame.rename(columns={key: f"{key}_{numbers[0].replace('/s', 'ps')}"})
        elif any(isinstance(value, int) for value in frame[key]):
            frame[key] = [_bytes(value) for value in frame[key]]
    return frame


def frame_of(document: Mapping[str, Any]) -> pandas.DataFrame:
    """The rows of a result. `frame.attrs` has the rest of it."""
    frame = pandas.DataFrame([flatten(row) for row in document["rows"]])
    sweep = document.get("sweep", {})
    axes = sweep.get("axes", [])
    frame = with_units(frame, [axis["key"] for axis in axes],
                       {axis["key"]: str(axis["published"]["value"]) for axis in axes if "published" in axis})
    frame.attrs.update({key: value for key, value in document.items() if key != "rows"})
    return frame
