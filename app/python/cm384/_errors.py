"""What goes wrong."""

from __future__ import annotations

from typing import Optional, Sequence

import pandas


class Error(RuntimeError):
    """The command refused, failed or was killed. Its text is the one line that the command ends with."""

    def __init__(self, message: str, exit_code: Optional[int] = None, command: Sequence[str] = (),
                 report: str = "", rows: Optional[pandas.DataFrame] = None) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # as docs/cli.md lists them; negative: the signal; None: it did not start
        self.command = list(command)
        self.report = report  # all that it said with this line, such as who waits on what
        self.rows = rows  # what it wrote before: a failed check has all rows, a hung machine those before


class Interrupted(KeyboardInterrupt):
    """An interrupt that was passed on to the command, which has ended. `rows`: what was known by then, if any."""

    def __init__(self, rows: Optional[pandas.DataFrame] = None) -> None:
        super().__init__("interrupted")
        self.rows = rows
