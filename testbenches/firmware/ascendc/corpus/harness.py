"""Cases of kernels that are built and run as their projects' users do: buffers with what is in them, tiling data, launches,
and what should come out to a stated rounding. Plain Python; nothing of the project's is used but the command."""
import math
import pathlib
import random
import struct

CODE = {"f32": "f", "f16": "e", "i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q"}
DESCR = {"f32": "<f4", "f16": "<f2", "i8": "|i1", "u8": "|u1", "i16": "<i2", "u16": "<u2", "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8"}


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def bits_of_bf16(x):
    bits = struct.unpack("<I", struct.pack("<f", x))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def bf16(x):
    return struct.unpack("<f", struct.pack("<I", bits_of_bf16(x) << 16))[0]


ROUND = {"f32": f32, "f16": f16, "bf16": bf16}


def npy(path, kind, shape, values):
    """A .npy file; bf16 as the bits of it."""
    if kind == "bf16":
        kind, values = "u16", [bits_of_bf16(v) for v in values]
    head = repr({"descr": DESCR[kind], "fortran_order": False, "shape": tuple(shape)})
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{CODE[kind]}", *values)
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def size_of(shape):
    return math.prod(shape)


def softmax(row):
    most = max(row)
    e = [math.exp(x - most) for x in row]
    total = sum(e)
    return [x / total for x in e]


def gelu(x):
    return x / (1 + math.exp(-1.59576912 * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + math.exp(-x))


def product(a, b, m, n, k):
    """Rows of A (m x k) times columns of B (k x n)."""
    return [sum(a[i * k + p] * b[p * n + j] for p in range(k)) for i in range(m) for j in range(n)]


class Case:
    """Launches of a kernel, one after another. Arguments are passed in the order in which they are declared."""

    def __init__(self, source, label="", blocks=1, key=0, define=(), ranks=1):
        self.source, self.label, self.blocks, self.key, self.ranks = source, label, blocks, key, ranks
        self.define = list(define)
        self.draw = random.Random(source + label)
        self.buffers, self.arguments, self.structs, self.checks, self.contexts = [], [], [], [], []
        self.column, self.shapes = None, []  # of a project
        self.launches = 1

    @property
    def name(self):
        return pathlib.Path(self.source).stem + ("-" + self.label if self.label else "")

    # Values as the elements hold them.
    def uniform(self, kind, count, low=-1.0, high=1.0):
        return [ROUND[kind](self.draw.uniform(low, high)) for _ in range(count)]

    def normal(self, kind, count, scale=1.0):
        return [ROUND[kind](max(min(self.draw.gauss(0, scale), 8 * scale), -8 * scale)) for _ in range(count)]

    def whole(self, count, low, high):
        return [self.draw.randint(low, high) for _ in range(count)]

    # What `fill` is: values of every rank, or a list of values a rank.
    def buffer(self, name, kind, shape, values=None, fill=None):
        self.buffers.append((name, kind, list(shape), values, fill))

    def input(self, name, kind, shape, values):
        assert len(values) == size_of(shape) * (self.ranks if self.ranks > 1 else 1), name
        self.buffer(name, kind, shape, values)
        self.arguments.append(f'"{name}"')
        return values

    def output(self, name, kind, shape, expected, rtol=None, atol=0.0, fill=None, before=None):
        """Equal without a tolerance. `before`: what stands there at first."""
        self.buffer(name, kind, shape, before, fill)
        self.arguments.append(f'"{name}"')
        self.check(name, kind, shape, expected, rtol, atol)

    def check(self, name, kind, shape, expected, rtol=None, atol=0.0):
        self.checks.append((name, kind, list(shape), expected, rtol, atol))

    def workspace(self, size=0):
        if size:
            self.buffer("workspace", "u8", [size])
        self.arguments.append('"workspace"' if size else "0")

    def tiling(self, *fields):
        self.struct("tiling", fields)

    def struct(self, name, fields):
        self.structs.append((name, list(fields)))
        self.arguments.append(f'"{name}"')

    def tensors(self, name, shapes):
        """A list of the buffers NAME0, NAME1, ..: rank and place, dimensions, then the addresses."""
        head, at = [], 8
        for i, shape in enumerate(shapes):
            head += [("u32", len(shape)), ("u32", i), *(("u64", d) for d in shape)]
            at += 8 + 8 * len(shape)
        self.struct(name, [("u64", at), *head, *(("address", f"{name}{i}") for i in range(len(shapes)))])

    def context(self, **windows):
        self.contexts.append(windows)

    # Files of the case in `folder`, the program's text.
    def write(self, folder, image):
        lines = [f"ranks = {self.ranks}"]
        for name, kind, shape, values, fill in self.buffers:
            lines += ["[[buffer]]", f'name = "{name}"', f'type = "{kind}"', f"shape = {shape}"]
            if values is not None:
                each = size_of(shape)
                for rank in range(self.ranks):
                    part = values[rank * each : (rank + 1) * each] if self.ranks > 1 else values
                    npy(folder / f"{self.name}-{name}-{rank}.npy", kind, shape, part)
                lines.append(f'fill = {{file = "{self.name}-{name}-{{rank}}.npy"}}')
            elif fill is not None:
                lines.append(f"fill = {fill}")
        for name, fields in self.structs:
            texts = [f'{{u64 = {{buffer = "{v}"}}}}' if t == "address" else f"{{{t} = {v}}}" for t, v in fields]
            lines += ["[[struct]]", f'name = "{name}"', "fields = [" + ", ".join(texts) + "]"]
        for windows in self.contexts:
            lines += ["[[context]]", *(f'{key} = "{name}"' for key, name in windows.items())]
        for _ in range(self.launches):
            lines += ["[[launch]]", f'kernel = "{image}"', f"blocks = {self.blocks}"]
            lines += ["arguments = [" + ", ".join(self.arguments) + "]", f"tiling_key = {self.key}"]
        (folder / f"{self.name}.toml").write_text("\n".join(lines + self.written_checks(folder)) + "\n")

    def written_checks(self, folder):
        lines = []
        for name, kind, shape, expected, rtol, atol in self.checks:
            each = size_of(shape)
            assert len(expected) == each * (self.ranks if self.ranks > 1 else 1), (self.name, name, len(expected), each)
            # Within a tolerance from the exact value, not from what the element holds of it.
            of = kind if rtol is None or kind[0] in "iu" else "f32"
            for rank in range(self.ranks):
                part = expected[rank * each : (rank + 1) * each] if self.ranks > 1 else expected
                npy(folder / f"{self.name}-{name}-{rank}-expected.npy", of, shape, part)
            file = f'"{self.name}-{name}-{{rank}}-expected.npy"'
            lines += ["[[check]]", f'buffer = "{name}"']
            lines += [f"equal = {file}"] if rtol is None else [f"close = {file}", f"rtol = {rtol!r}", f"atol = {atol!r}"]
        return lines

    # Of a project: its tiling function has written the program; values and checks go in.
    def complete(self, folder):
        path = folder / f"{self.name}.toml"
        parts = path.read_text().split("\n\n")
        for name, kind, shape, values, _ in self.buffers:
            found = [i for i, part in enumerate(parts) if f'name = "{name}"\n' in part + "\n" and "[[buffer]]" in part]
            assert len(found) == 1, f"{self.name}: no buffer {name}"
            if values is None:
                continue
            npy(folder / f"{self.name}-{name}.npy", kind, shape, values)
            kept = [line for line in parts[found[0]].split("\n") if not line.startswith("fill = ")]
            parts[found[0]] = "\n".join([*kept, f'fill = {{file = "{self.name}-{name}.npy"}}'])
        parts = [part for part in parts if not part.startswith("[[save]]")]
        path.write_text("\n\n".join(parts) + "\n" + "\n".join(self.written_checks(folder)) + "\n")


# The sizes that kernels' Matmul<> look at, of struct TCubeTiling's 33 fields.
def cube_tiling(m, n, k, base, single=None, bias=0, cores=1):
    single = single or (m, n, k)
    return [("i32", v) for v in [cores, m, n, k, k, *single, *base, 1, 1, 1, 1, bias, 0, 0] + [0] * 15]
