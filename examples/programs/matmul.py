#!/usr/bin/python3
"""Two kernels of cube cores against numpy: matmul.cpp on cube cores alone, linear_relu.cpp on cube and vector cores.

    matmul.py OUT [--m 256] [--n 192] [--k 128] [--blocks 4] [--type half|bfloat16_t] [--cm384 cm384]
              [... options of cm384 run program]

OUT gets the images, the inputs, what is expected, and the program files. Sums are compared within float's rounding.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np


def bits(values, kind):
    """The values as `kind`, to nearest even: the array to save, and the numbers that it stands for."""
    if kind == "half":
        halves = values.astype(np.float16)
        return halves, halves.astype(np.float64)
    u = values.astype(np.float32).view(np.uint32)
    u = (u + 0x7FFF + ((u >> 16) & 1)) >> 16
    return u.astype(np.uint16), (u << 16).astype(np.uint32).view(np.float32).astype(np.float64)


def program(kernel, buffers, structure, arguments, checked, blocks):
    """The text of a program file: `buffers` are (name, type, shape, filled)."""
    text = "ranks = 1\n"
    for name, kind, shape, filled in buffers:
        text += f'[[buffer]]\nname = "{name}"\ntype = "{kind}"\nshape = {list(shape)}\n'
        if filled:
            text += f'fill = {{file = "{name}.npy"}}\n'
    fields = ", ".join(f"{{u32 = {value}}}" for value in structure)
    names = ", ".join(f'"{name}"' for name in arguments)
    return text + (f'[[struct]]\nname = "tiling"\nfields = [{fields}]\n[[launch]]\nkernel = "{kernel}.elf"\n'
                   f"blocks = {blocks}\narguments = [{names}]\n"
                   f'[[check]]\nbuffer = "{checked}"\nclose = "{checked}.npy"\nrtol = 1e-5\natol = 1e-4\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    for name, default in (("m", 256), ("n", 192), ("k", 128), ("blocks", 4)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--type", choices=("half", "bfloat16_t"), default="half")
    parser.add_argument("--cm384", default="cm384")
    args, passed_on = parser.parse_known_args()
    here = pathlib.Path(__file__).resolve().parent
    out = args.out
    out.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(1)
    m, n, k = args.m, args.n, args.k
    kind = "f16" if args.type == "half" else "bf16"

    a_bits, a = bits(draw.standard_normal((m, k)), args.type)
    b_bits, b = bits(draw.standard_normal((k, n)), args.type)
    np.save(out / "a.npy", a_bits)
    np.save(out / "b.npy", b_bits)
    np.save(out / "c.npy", (a @ b).astype(np.float32))
    (out / "matmul.toml").write_text(program(
        "matmul", [("a", kind, (m, k), True), ("b", kind, (k, n), True), ("c", "f32", (m, n), False)],
        (m, n, k), ("a", "b", "c", "tiling"), "c", args.blocks))

    x_bits, x = bits(draw.standard_normal((m, k)), "half")
    w_bits, w = bits(draw.standard_normal((k, n)), "half")
    bias = draw.standard_normal(n).astype(np.float32)
    np.save(out / "x.npy", x_bits)
    np.save(out / "w.npy", w_bits)
    np.save(out / "bias.npy", bias)
    np.save(out / "y.npy", np.maximum(x @ w + bias, 0).astype(np.float32))
    (out / "linear_relu.toml").write_text(program(
        "linear_relu",
        [("x", "f16", (m, k), True), ("w", "f16", (k, n), True), ("bias", "f32", (n,), True),
         ("y", "f32", (m, n), False), ("workspace", "f32", (args.blocks, 2, 32, n), False)],
        (m, n, k), ("x", "w", "bias", "y", "workspace", "tiling"), "y", args.blocks))

    for kernel in ("matmul", "linear_relu"):
        subprocess.run([args.cm384, "kernel", "build", here / f"{kernel}.cpp", "-D", f"DTYPE_A={args.type}",
                        "-o", out / f"{kernel}.elf"], check=True)
        sys.stdout.flush()
        subprocess.run([args.cm384, "run", "program", out / f"{kernel}.toml", "--check-hazards", *passed_on], check=True)


if __name__ == "__main__":
    main()
