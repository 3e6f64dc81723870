"""How far a call is, where people look: in a notebook's cell, on a terminal, or nowhere."""

from __future__ import annotations

import codecs
import os
import sys
from typing import Any, Callable, List, Optional, Union

Progress = Union[None, bool, Callable[[str], None]]
CLEAR = "\033[K"


class Display:
    """Shows nothing of the progress; lines that the command prints go to standard error."""

    def update(self, state: str) -> None:
        """Replaces what was shown before; empty: nothing is shown."""

    def line(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        self.update("")


class _Called(Display):
    def __init__(self, function: Callable[[str], None]) -> None:
        self._function = function

    def update(self, state: str) -> None:
        if state:
            self._function(state)


class _Terminal(Display):
    def update(self, state: str) -> None:
        sys.stderr.write(f"\r{state}{CLEAR}")
        sys.stderr.flush()


class _Lines(Display):
    """For logs: one line for each state."""

    def update(self, state: str) -> None:
        if state:
            self.line(state)


class _Notebook(Display):
    """One line in the cell's output, which moves and is gone at the end."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def update(self, state: str) -> None:
        content = {"text/plain": state}
        if self._handle is not None:
            self._handle.update(content, raw=True)
        elif state:
            self._handle = self._display(content, raw=True, display_id=True)


def _notebook() -> Optional[Display]:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display
    return _Notebook(display)


def display_of(progress: Progress) -> Display:
    """None: in notebooks and on terminals; True: everywhere; False: nowhere; a function: gets each state."""
    if callable(progress):
        return _Called(progress)
    if progress is False:
        return Display()
    terminal = sys.stderr.isatty()
    return _notebook() or (_Terminal() if terminal else _Lines() if progress else Display())


class Screen:
    """What the command writes to a terminal: lines that stay, and a last one that it writes again and again. Its last
    words are held back until they are known to be none: an exception says them."""

    def __init__(self, display: Display) -> None:
        self.lines: List[str] = []
        self._display = display
        self._text = ""
        self._shown = False
        self._held: List[str] = []

    def read(self, descriptor: int) -> None:
        """Until the other end is closed."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while True:
            try:
                block = os.read(descriptor, 65536)
            except OSError:  # what Linux says when the last process has closed it
                block = b""
            if not block:
                break
            self.feed(decoder.decode(block))
        os.close(descriptor)
        if self._text:
            self.feed("\n")

    def feed(self, text: str) -> None:
        *whole, self._text = (self._text + text).split("\n")
        for line in whole:
            self._show("")
            # What it drew before on the same line is gone.
            line = line.rsplit(CLEAR, 1)[-1].rsplit("\r", 1)[-1]
            self.lines.append(line)
            if line.startswith("cm384: "):
                self.flush()
            if self._held or line.startswith("cm384: "):
                self._held.append(line)
            else:
                self._display.line(line)
        if self._text.endswith(CLEAR):
            state = self._text[: -len(CLEAR)].rsplit("\r", 1)[-1]
            self._text = ""
            self.flush()
            self._show(state)

    def flush(self) -> None:
        for line in self._held:
            self._display.line(line)
        self._held = []

    def _show(self, state: str) -> None:
        if state or self._shown:
            self._display.update(state)
        self._shown = bool(state)
