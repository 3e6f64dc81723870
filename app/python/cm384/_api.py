"""Calls of the command."""

from __future__ import annotations

import json
import os
import pathlib
import warnings
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

import pandas

from ._errors import Error, Interrupted
from ._files import Path, document_of, read
from ._frames import frame_of
from ._plan import to_toml
from ._program import Call, call
from ._progress import Display, Progress, display_of

# Options that the command takes several times, where others take a list with commas.
_REPEATED = ("fault", "rtl", "stats_parts", "wave_links")
_CHECK_FAILED, _INTERRUPTED = 1, 130


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, range)):
        return ",".join(_text(one) for one in value)
    return str(os.fspath(value)) if isinstance(value, os.PathLike) else str(value)


def words_of(options: Mapping[str, Any]) -> List[str]:
    """{"ranks": [8, 64], "top_k": 8, "detail": True} is --ranks=8,64 --top-k=8 --detail=true; None is left out."""
    words = []
    for name, value in options.items():
        if value is None:
            continue
        given = value if name in _REPEATED and isinstance(value, (list, tuple)) else [value]
        words += [f"--{name.replace('_', '-')}={_text(one)}" for one in given]
    return words


def _settings(values: Optional[Mapping[str, Any]]) -> List[str]:
    return [f"--set={key}={_text(value)}" for key, value in (values or {}).items()]


def _error(ended: Call, rows: Optional[pandas.DataFrame] = None) -> Error:
    message, whole = ended.error()
    return Error(message, ended.exit_code, ended.command, whole, rows)


def _plain(words: Iterable[str]) -> str:
    """Of a call that is over at once."""
    ended = call(list(words), Display())
    if ended.interrupted:
        raise Interrupted()
    if ended.exit_code != 0:
        raise _error(ended)
    return ended.output


def run(study: str, *arguments: Path, machine: Optional[Path] = None, set: Optional[Mapping[str, Any]] = None,
        seed: Optional[int] = None, out: Optional[Path] = None, progress: Progress = None,
        **options: Any) -> pandas.DataFrame:
    """`cm384 run STUDY`: its rows, as `--format csv` names their fields; `attrs` of the frame has the rest of the result.

    `arguments` are those without a name, such as a kernel's file; `set` changes parameters of the machine; lists become
    values with commas. With `out` the result and what `report` shows are kept in that folder. Progress is shown in notebooks
    and on terminals; True, False or a function that takes a text change that.

    Raises Error with the command's line; a failed check and a machine that hangs give the rows with it. An interrupt is
    passed on and comes back as Interrupted, with the rows so far.
    """
    words = ["run", study, *(os.fspath(one) for one in arguments), *words_of(options), *_settings(set),
             *words_of({"machine": machine, "seed": seed, "out": out}), "--format=json"]
    ended = call(words, display_of(progress))
    rows = frame_of(document_of(ended.output, f"output of `{' '.join(words)}`")) if ended.output.strip() else None
    if ended.interrupted:
        raise Interrupted(rows)
    if ended.exit_code == _CHECK_FAILED and rows is not None:
        raise Error(f"run {study}: a check failed", ended.exit_code, ended.command, "\n".join(ended.said), rows)
    if ended.exit_code != 0:
        raise _error(ended, rows)
    assert rows is not None
    return rows


def sweep(plan: Union[Path, Mapping[str, Any]], *, out: Optional[Path] = None, store: Optional[Path] = None,
          jobs: Optional[int] = None, memory: Optional[str] = None, retry: Optional[bool] = None,
          progress: Progress = None, **options: Any) -> pandas.DataFrame:
    """`cm384 sweep`: runs what the store lacks; a row per row of each point, the axes first. Further options are those of
    the command, such as slurm=True.

    `plan` is a sweep's file, or its content as a dictionary, which is kept in the folder `out` (required then) under the
    folder's name. Axes over quantities are numbers with their unit in the column's name: ub.link.bandwidth_GBps. Points
    that failed have their reason in `failed`; a warning says how many. `attrs["sweep"]` says what was swept, `attrs["found"]`
    what `find` found.

    Raises Error, and Interrupted with the rows so far; the same call goes on where that one stopped.
    """
    if isinstance(plan, Mapping):
        if out is None:
            raise Error("sweep: a plan that is no file requires out=, the folder of its results")
        folder = pathlib.Path(out)
        text = to_toml(plan)
        file = folder / f"{folder.resolve().name}.toml"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                file.write_text(text, encoding="utf-8")
        except OSError as failure:
            raise Error(f"{file}: {failure.strerror}") from failure
    else:
        file = pathlib.Path(plan)
        folder = pathlib.Path(out) if out is not None else pathlib.Path(file.name).with_suffix("")
    words = ["sweep", os.fspath(file), f"--out={folder}", "--format=json",
             *words_of({"store": store, "jobs": jobs, "memory": memory, "retry": retry, **options})]
    ended = call(words, display_of(progress))
    complete = ended.exit_code in (0, _CHECK_FAILED) or ended.interrupted
    rows = frame_of(document_of(ended.output, f"output of `{' '.join(words)}`")) if ended.output.strip() and complete else None
    if ended.interrupted:
        raise Interrupted(rows)
    if rows is None or not complete:
        raise _error(ended)
    if ended.exit_code == _CHECK_FAILED:
        failed = rows["failed"].notna()
        warnings.warn(f"{int(failed.sum())} of {len(rows)} rows of {file} failed: {rows.loc[failed, 'failed'].iloc[0]}"
                      f"{' ...' if failed.sum() > 1 else ''}", stacklevel=2)
    return rows


def report(*folders: Path, to: Optional[Path] = None, figures: Optional[Path] = None, png: bool = False,
           points: Optional[bool] = None) -> List[pathlib.Path]:
    """`cm384 report` of a finished run, of several, or of a sweep: the page, or with `figures` the pictures' files."""
    words = words_of({"to": to, "figures": figures, "png": True if png else None, "points": points})
    return [pathlib.Path(line) for line in _plain(["report", *(os.fspath(one) for one in folders), *words]).splitlines()]


def machine(preset: Optional[Path] = None, set: Optional[Mapping[str, Any]] = None) -> pandas.DataFrame:
    """`cm384 machine show`: every parameter by its name, with value, origin, source and meaning."""
    words = ["machine", "show", *words_of({"machine": preset}), *_settings(set), "--format=json"]
    document: Dict[str, Any] = json.loads(_plain(words))
    frame = pandas.DataFrame.from_dict(document.pop("parameters"), orient="index")
    frame.index.name = "parameter"
    frame.attrs.update(document)
    return frame


def compare(before: Path, after: Path, *, tolerance: Optional[Path] = None, same_conditions: Optional[bool] = None) -> pandas.DataFrame:
    """`cm384 compare`: every field that moved; `attrs["within"]` says whether all of it may."""
    words = ["compare", os.fspath(before), os.fspath(after), "--format=json",
             *words_of({"tolerance": tolerance, "same_conditions": same_conditions})]
    ended = call(words, Display())
    if ended.interrupted:
        raise Interrupted()
    if ended.exit_code not in (0, _CHECK_FAILED):
        raise _error(ended)
    frame = pandas.DataFrame(json.loads(ended.output), columns=["row", "field", "before", "after", "change", "allowed", "status"])
    frame.attrs["within"] = ended.exit_code == 0
    return frame
