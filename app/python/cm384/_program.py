"""Where the command is, and one call of it."""

from __future__ import annotations

import os
import pathlib
import pty
import shutil
import signal
import subprocess
import termios
import threading
import tty
from dataclasses import dataclass
from typing import List, Sequence, Tuple

from ._errors import Error
from ._progress import Display, Screen


def program() -> str:
    """Path of the command: $CM384 if that is set, of the tree this package is installed in, or on the PATH."""
    named = os.environ.get("CM384")
    if named:
        return named
    # PREFIX/lib/python3/dist-packages/cm384
    beside = pathlib.Path(__file__).resolve().parents[4] / "bin" / "cm384"
    found = str(beside) if beside.is_file() else shutil.which("cm384")
    if found is None:
        raise Error("no program cm384 on the PATH; the variable CM384 names another place")
    return found


@dataclass
class Call:
    """A call that has ended."""

    command: List[str]
    output: str
    said: List[str]  # lines of standard error, without progress
    exit_code: int
    interrupted: bool  # by us

    def error(self) -> Tuple[str, str]:
        """The line that it ended with, and all that it said from there on."""
        first = next((i for i in range(len(self.said) - 1, -1, -1) if self.said[i].startswith("cm384: ")), None)
        if first is not None:
            return self.said[first][len("cm384: "):], "\n".join(self.said[first:])
        ended = f"killed by signal {-self.exit_code}" if self.exit_code < 0 else f"ended with exit code {self.exit_code}"
        return f"{self.command[0]}: {ended}", "\n".join(self.said)


def call(words: Sequence[str], display: Display) -> Call:
    """Runs the command to its end. An interrupt is passed on, and waits for what the command still writes; a second
    one kills it."""
    command = [program(), *words]
    # Standard error is a terminal, so that the command shows progress as it does to people.
    ours, theirs = pty.openpty()
    tty.setraw(theirs, termios.TCSANOW)
    try:
        # A session of its own: an interrupt comes from us alone, and once.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs,
                                   start_new_session=True)
    except OSError as failure:
        os.close(ours)
        raise Error(f"{command[0]}: {failure.strerror}", command=command) from failure
    finally:
        os.close(theirs)
    assert process.stdout is not None
    output: List[bytes] = []
    screen = Screen(display)
    readers = [threading.Thread(target=lambda: output.append(process.stdout.read()), daemon=True),  # type: ignore
               threading.Thread(target=screen.read, args=(ours,), daemon=True)]
    for reader in readers:
        reader.start()
    interrupts = 0
    while True:
        try:
            process.wait()
            for reader in readers:
                reader.join()
            break
        except KeyboardInterrupt:
            interrupts += 1
            process.send_signal(signal.SIGINT if interrupts == 1 else signal.SIGKILL)
    process.stdout.close()
    display.close()
    if process.returncode == 0:
        screen.flush()
    return Call(command, b"".join(output).decode(), screen.lines, process.returncode, interrupts > 0)
