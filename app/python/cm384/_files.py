"""What finished runs and sweeps have left."""

from __future__ import annotations

import json
import os
import pathlib
import sqlite3
from typing import Any, List, Mapping, Union
from urllib.parse import quote

import pandas

from ._errors import Error
from ._frames import flatten, frame_of

Path = Union[str, "os.PathLike[str]"]

_APPLICATION, _VERSION = 0x434D3834, 2  # of the store's file


def document_of(text: str, name: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as failure:
        raise Error(f"{name}: not valid JSON: {failure}") from failure
    if not isinstance(document, dict) or document.get("schema") != 1 or not isinstance(document.get("rows"), list):
        raise Error(f"{name}: is no result of a run (schema 1)")
    return document


def read(path: Path) -> pandas.DataFrame:
    """The rows of a finished run or sweep, from its folder or its result.json."""
    file = pathlib.Path(path)
    if file.is_dir():
        file = file / "result.json"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as failure:
        raise Error(f"{file}: {failure.strerror}") from failure
    return frame_of(document_of(text, str(file)))


def store(path: Path) -> pandas.DataFrame:
    """All runs that a store has, of whatever sweep: a line per row of each, `study`, `command`, `exit_code`, `failed`
    (the reason, or nothing), `wall_s`, `peak_MB` and `finished` first. From the store's file or a sweep's folder."""
    file = pathlib.Path(path)
    if file.is_dir():
        file = file / "store.sqlite"
    if not file.is_file():
        raise Error(f"{file}: no such store")
    lines: List[Mapping[str, Any]] = []
    try:
        database = sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=60)
        try:
            known = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
            if known != [_APPLICATION, _VERSION]:
                raise Error(f"{file}: is no store of results that this version reads")
            runs = database.execute("SELECT study, arguments, exit_code, reason, wall_s, peak_MB, finished, document"
                                    " FROM results ORDER BY study, finished, key")
            for study, arguments, code, reason, wall_s, peak, finished, document in runs:
                run = {"study": study, "command": f"cm384 run {arguments}", "exit_code": code, "failed": reason or None,
                       "wall_s": wall_s, "peak_MB": peak, "finished": finished}
                rows = json.loads(document)["rows"] if document else []
                lines += [{**run, **flatten(row)} for row in rows] or [run]
        finally:
            database.close()
    except sqlite3.Error as failure:
        raise Error(f"{file}: {failure}") from failure
    return pandas.DataFrame(lines)
