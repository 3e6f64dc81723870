"""Kernels of one's own with numpy arrays as their arguments."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
import weakref
from typing import Any, Dict, List, Mapping, Optional

import numpy
import pandas
from numpy.typing import NDArray

from ._api import run, words_of
from ._errors import Error, Interrupted
from ._files import Path
from ._plan import to_toml
from ._program import call
from ._progress import Display, Progress

# As a program file names the types of buffers. numpy has no bfloat16: uint16 stands for its bits.
_TYPES = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
          "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64"}
_REPEATED = ("include", "define", "template", "tiling")


class Kernel:
    """A kernel that is called with arrays: see `kernel`."""

    def __init__(self, image: pathlib.Path) -> None:
        self.image = image

    def __call__(self, *arguments: Any, blocks: int = 1, tiling_key: Optional[int] = None, set: Optional[Mapping[str, Any]] = None,
                 machine: Optional[Path] = None, out: Optional[Path] = None, progress: Progress = None,
                 **options: Any) -> pandas.DataFrame:
        """Launches it with these arguments, in the kernel's order, and returns the row of the launch: kernel_us, task_us, ..

        An array is memory of the die that begins with its values, and afterwards has what the kernel left there; one that is
        not writeable stays as it is, and one that is given twice is one buffer. `bytes` are memory, too: tiling data, say.
        Whole numbers are passed as they are. `blocks` are cores or groups; further options are those of `cm384 run program`.
        """
        if isinstance(blocks, bool) or not isinstance(blocks, (int, numpy.integer)):
            raise Error(f"kernel: blocks={blocks!r}: allowed: a whole number")
        buffers: List[NDArray[Any]] = []
        words: List[Any] = []
        with tempfile.TemporaryDirectory(prefix="cm384-") as made_in:
            folder = pathlib.Path(made_in)
            plan: Dict[str, Any] = {"ranks": 1, "buffer": [], "launch": [], "save": []}
            for place, given in enumerate(arguments):
                if isinstance(given, (int, numpy.integer)) and not isinstance(given, bool):
                    words.append(int(given))
                    continue
                array = _array_of(given, place)
                number = next((n for n, known in enumerate(buffers) if known is array), len(buffers))
                words.append(f"argument{number}")
                if number < len(buffers):
                    continue
                buffers.append(array)
                numpy.save(folder / f"in{number}.npy", numpy.ascontiguousarray(array))
                plan["buffer"].append({"name": words[-1], "type": _TYPES[array.dtype.name], "shape": list(array.shape),
                                       "fill": {"file": f"in{number}.npy"}})
                if array.flags.writeable:
                    plan["save"].append({"buffer": words[-1], "file": os.fspath(folder / f"out{number}.npy")})
            launch: Dict[str, Any] = {"kernel": os.fspath(self.image), "blocks": int(blocks), "arguments": words}
            if tiling_key is not None:
                launch["tiling_key"] = int(tiling_key)
            plan["launch"].append(launch)
            file = folder / "program.toml"
            file.write_text(to_toml({name: value for name, value in plan.items() if value != []}), encoding="utf-8")
            rows = run("program", file, set=set, machine=machine, out=out, progress=progress, **options)
            for number, array in enumerate(buffers):
                if array.flags.writeable:
                    array[...] = numpy.load(folder / f"out{number}.npy")
        return rows


def _array_of(given: Any, place: int) -> NDArray[Any]:
    if isinstance(given, (bytes, bytearray, memoryview)):
        array = numpy.frombuffer(bytes(given), dtype=numpy.uint8)
    elif isinstance(given, numpy.ndarray):
        array = given
    else:
        raise Error(f"kernel: argument {place} is a {type(given).__name__}; allowed: arrays, bytes and whole numbers")
    if array.dtype.name not in _TYPES or not array.dtype.isnative:
        raise Error(f"kernel: argument {place} is an array of {array.dtype}; allowed: {', '.join(_TYPES)}")
    if array.ndim == 0 or array.size == 0:
        raise Error(f"kernel: argument {place} is an array of shape {array.shape}; allowed: at least one dimension, and an element")
    return array


def kernel(source: Path, *, out: Optional[Path] = None, **options: Any) -> Kernel:
    """Compiles a kernel in Ascend C by `cm384 kernel build`, to call it with arrays:

        add = cm384.kernel("add.cpp")
        x, y, z = numpy.arange(2048, dtype="f4"), numpy.ones(2048, "f4"), numpy.empty(2048, "f4")
        times = add(x, y, z, 2048, blocks=8)      # z is x + y, times has a row

    An image (.elf) is taken as it is. `out` keeps the image that is made; further options are those of the command, such as
    entry="add", define=["TILE=128"], template="T=half". Raises Error with what the compiler said.
    """
    path = pathlib.Path(source)
    if path.suffix == ".elf":
        if options or out is not None:
            raise Error(f"kernel: {path} is an image already: there is nothing to build with options")
        if not path.is_file():
            raise Error(f"{path}: no such file")
        return Kernel(path.resolve())
    folder = tempfile.mkdtemp(prefix="cm384-") if out is None else None
    image = pathlib.Path(out) if out is not None else pathlib.Path(str(folder)) / f"{path.stem}.elf"
    words = ["kernel", "build", os.fspath(path), f"--out={image}"]
    for name, value in options.items():
        several = value if name in _REPEATED and isinstance(value, (list, tuple)) else [value]
        for one in several:
            words += words_of({name: one})
    made = Kernel(image.resolve())
    if folder is not None:
        weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    ended = call(words, Display())
    if ended.interrupted:
        raise Interrupted()
    if ended.exit_code != 0:
        # What the compiler said first is what to mend.
        message = next((line for line in ended.said if ": error: " in line), ended.error()[0])
        raise Error(message, ended.exit_code, ended.command, "\n".join(ended.said))
    return made
