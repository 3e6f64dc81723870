#!/usr/bin/python3
"""The four kernels of "normal" MoE communication, in sequence on many dies, every byte checked.

    moe_normal.py [KERNELS] OUT [--ranks 8] [--tokens 64] [--hidden 7168] [--type bf16|int8]
                  [--payload full|control] [--cm384 cm384] [... options of cm384 run program]

KERNELS is their folder: by default moe_normal beside this file; openEuler umdk's (MIT licence, not part of this project)
has the same names, arguments and tiling data. It holds dispatch_layout, notify_dispatch, moe_dispatch_normal,
moe_combine_normal and utils beside each other. OUT gets the images, the inputs, what is expected, and program.toml.
Tokens choose 8 of 256 experts at random; expected counts, offsets, rows and sums are computed here. With --payload
control tokens have no values: counts, offsets and rows are checked, at the same simulated time.
"""
import argparse
import pathlib
import subprocess
import sys

import numpy as np

OWN = pathlib.Path(__file__).resolve().parent / "moe_normal"
EXPERTS, TOP_K = 256, 8
UBUFFER = 196352


def bf16(values):
    """The bits of BF16, to nearest even."""
    u = values.astype(np.float32).view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)


def make_inputs(args, out):
    """Writes inputs and expected results; returns how many rows the rank with the fewest, the most receives."""
    draw = np.random.default_rng(1)
    own = EXPERTS // args.ranks
    chosen = np.stack([np.argsort(draw.random((args.tokens, EXPERTS)), axis=1)[:, :TOP_K] for _ in range(args.ranks)])
    counts = np.stack([np.bincount(c.ravel(), minlength=EXPERTS) for c in chosen])
    offsets = np.cumsum(counts, axis=1) - counts
    rows, xs, sent = [], [], []
    for rank in range(args.ranks):
        def save(name, values, kind):
            np.save(out / f"{name}_{rank}.npy", np.ascontiguousarray(values).astype(kind, copy=False))
        experts = chosen[rank].ravel()
        order = np.argsort(experts, kind="stable")
        index = np.empty_like(experts)
        index[order] = np.arange(experts.size) - offsets[rank][experts[order]]
        at_rank = np.zeros((args.tokens, args.ranks), np.int32)
        np.put_along_axis(at_rank, chosen[rank] // own, 1, axis=1)
        save("topk", chosen[rank], np.int64)
        save("ids", chosen[rank], np.int32)
        save("index", index.reshape(args.tokens, TOP_K), np.int32)
        save("in_rank", at_rank, np.int32)
        save("per_rank", at_rank.sum(axis=0), np.int32)
        save("per_expert", counts[rank], np.int32)
        save("send_offset", offsets[rank], np.int32)
        mine = slice(rank * own, (rank + 1) * own)
        save("recv_count", np.cumsum(counts[:, mine].T.ravel()), np.int32)
        save("recv_offset", offsets[:, mine].T.ravel(), np.int32)
        save("total", [counts[:, mine].sum()], np.int32)
        save("per_own_expert", counts[:, mine].sum(axis=0), np.int64)
        # Received: by expert, source rank, then token.
        triples = []
        for expert in range(mine.start, mine.stop):
            for source in range(args.ranks):
                token, k = np.nonzero(chosen[source] == expert)
                triples.append(np.stack([np.full_like(token, source), token, k], axis=1))
        triples = np.concatenate(triples)
        rows.append(len(triples))
        sent.append(triples)
        save("triples", triples.ravel(), np.int32)
        weights = draw.random((args.tokens, TOP_K)).astype(np.float32)
        save("weights", weights, np.float32)
        if args.payload == "control":
            continue
        x = draw.integers(-8, 9, (args.tokens, args.hidden)).astype(np.float32) / 8
        xs.append(x)
        save("x", bf16(x), np.uint16)
        save("y", bf16(x * weights.sum(axis=1, dtype=np.float64)[:, None]), np.uint16)
    if args.type == "int8" and xs:
        for rank, triples in enumerate(sent):
            received = np.stack([xs[source][token] for source, token, _ in triples])
            scales = np.abs(received).max(axis=1) / np.float32(127)
            np.save(out / f"scales_{rank}.npy", scales.astype(np.float32))
            np.save(out / f"out_{rank}.npy", np.rint(received / scales[:, None]).astype(np.int8))
    return min(rows), max(rows)


class Program:
    """The text of program.toml."""

    def __init__(self, ranks):
        self.lines = [f"ranks = {ranks}"]

    def buffer(self, name, kind, shape, fill=False, payload=False):
        self.lines += ["[[buffer]]", f'name = "{name}"', f'type = "{kind}"', f"shape = {shape}"]
        if fill:
            self.lines.append(f'fill = {{file = "{name}_{{rank}}.npy"}}')
        if payload:
            self.lines.append("payload = true")

    def struct(self, name, *fields):
        texts = [f"{{{kind} = {value}}}" for kind, value in fields]
        self.lines += ["[[struct]]", f'name = "{name}"', f"fields = [{', '.join(texts)}]"]

    def launch(self, kernel, key, *arguments):
        texts = ", ".join(f'"{a}"' for a in arguments)
        self.lines += ["[[launch]]", f'kernel = "{kernel}.elf"', "blocks = 48", f"arguments = [{texts}]",
                       f"tiling_key = {key}"]

    def check(self, name, count=None, close=None):
        self.lines += ["[[check]]", f'buffer = "{name}"', f'{"close" if close else "equal"} = "{name}_{{rank}}.npy"']
        if count is not None:
            self.lines.append(f"count = {count}")
        if close:
            self.lines += [f"rtol = {close[0]}", f"atol = {close[1]}"]


def write_program(args, fewest, most):
    p = Program(args.ranks)
    tokens, quantised, values = args.tokens, args.type == "int8", args.payload == "full"
    # In each half of the window the rows of combine, a state, the rows of dispatch; notify's part before both.
    window = 2 * (tokens * TOP_K * 2 * (args.hidden * 2 + 1024) + (4 << 20))
    for name, kind, shape in [("topk", "i64", [tokens, TOP_K]), ("ids", "i32", [tokens, TOP_K]),
                              ("weights", "f32", [tokens, TOP_K])]:
        p.buffer(name, kind, shape, fill=True)
    p.buffer("x", "bf16", [tokens, args.hidden], fill=values, payload=True)
    for name, kind, shape in [("per_rank", "i32", args.ranks), ("per_expert", "i32", EXPERTS),
                              ("in_rank", "i32", [tokens, args.ranks]), ("notify", "i32", [48, EXPERTS]),
                              ("index", "i32", [tokens, TOP_K]), ("send", "i32", 3 * EXPERTS),
                              ("send_offset", "i32", EXPERTS), ("recv", "i32", 3 * EXPERTS), ("total", "i32", 8),
                              ("recv_count", "i32", EXPERTS), ("recv_offset", "i32", EXPERTS), ("max_bs", "i32", 16),
                              ("per_own_expert", "i64", EXPERTS // args.ranks), ("scales", "f32", most),
                              ("triples", "i32", 3 * most), ("statistics", "i32", 512), ("workspace", "u8", 16 << 20),
                              ("window", "u8", window + (204 << 20)), ("window_exp", "u8", 4 << 20)]:
        p.buffer(name, kind, shape)
    p.buffer("out", "i8" if quantised else "bf16", [most, args.hidden], payload=True)
    p.buffer("y", "bf16", [tokens, args.hidden], payload=True)
    ranks, rank = ("u32", '"ranks"'), ("u32", '"rank"')
    one, two = [("bytes", 64), ("bytes", 280)], [("bytes", 64), ("bytes", 280), ("bytes", 280)]
    p.struct("layout", *one, ("u32", tokens), ranks, ("u32", EXPERTS), ("u32", TOP_K), ranks, ("u64", UBUFFER))
    p.struct("notified", *one, ranks, rank, ranks, rank, ("u32", 3 * EXPERTS), ("u32", tokens), ("u32", 48),
             ("u64", UBUFFER))
    p.struct("dispatched", *two, ranks, ("u32", 1), rank, ("u32", 0), ("u32", EXPERTS),
             ("u32", 2 if quantised else 0), ("u32", tokens * args.ranks), ("u32", tokens), ("u32", TOP_K),
             ("u32", args.hidden), ("u32", 48), ("bytes", 4), ("u64", UBUFFER), ("u64", window))
    p.struct("combined", *two, ranks, ("u32", 1), rank, ("u32", 0), ("u32", 0), ("u32", EXPERTS),
             ("u32", EXPERTS // args.ranks), ("u32", tokens * args.ranks), ("u32", tokens), ("u32", TOP_K),
             ("u32", args.hidden), ("u32", 48), ("u64", UBUFFER), ("u64", window), ("bytes", 12))
    p.lines += ["[[context]]", 'window_in = "window"', 'window_exp = "window_exp"']
    p.launch("dispatch_layout", 23, "topk", "per_rank", "per_expert", "in_rank", "notify", "index", "workspace", "layout")
    p.launch("notify_dispatch", 23, "send", "per_expert", "send_offset", "recv", "total", "recv_count", "recv_offset",
             "max_bs", "per_own_expert", "workspace", "notified")
    p.launch("moe_dispatch_normal", 10002 if quantised else 10000, "x", "ids", "send_offset", "index", "recv_offset",
             "recv_count", "out", "scales", "triples", "statistics", "workspace", "dispatched")
    for name in ["per_rank", "per_expert", "in_rank", "index", "send_offset", "recv_count", "recv_offset",
                 "per_own_expert"]:
        p.check(name)
    p.check("total", count=1)
    p.check("triples", count=3 * fewest)
    if not quantised:
        p.launch("moe_combine_normal", 0, "out", "triples", "recv_count", "weights", "recv_count", "y", "statistics",
                 "workspace", "combined")
        if values:  # one rounding of FP32 sums to BF16, and where it falls on the other side, one more
            p.check("y", close=(0.0079, 0.0001))
    elif values and args.kernels == OWN:  # how others round is theirs
        p.check("scales", count=fewest, close=(1e-6, 0))
        p.check("out", count=fewest * args.hidden, close=(0, 1))
    return "\n".join(p.lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels", type=pathlib.Path, nargs="?", default=OWN)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=8, choices=[2, 4, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=7168)
    parser.add_argument("--type", choices=["bf16", "int8"], default="bf16")
    parser.add_argument("--cm384", default="cm384")
    parser.add_argument("--payload", choices=["full", "control"], default="full")
    args, options = parser.parse_known_args()
    args.out.mkdir(parents=True, exist_ok=True)
    sent = {"bf16": ("BF16", "bfloat16_t"), "int8": ("INT8", "int8_t")}[args.type]
    for kernel in ["dispatch_layout", "notify_dispatch", "moe_dispatch_normal", "moe_combine_normal"]:
        if args.type == "int8" and kernel == "moe_combine_normal":
            continue
        folder = args.kernels / kernel / "op_kernel"
        built = subprocess.run([args.cm384, "kernel", "build", folder / f"{kernel}.cpp", "-I", folder,
                                "-I", args.kernels / "utils" / "op_kernel", "-D", f"ORIG_DTYPE_RECV_X=DT_{sent[0]}",
                                "-D", "DTYPE_X=bfloat16_t", "-D", f"DTYPE_RECV_X={sent[1]}",
                                "-o", args.out / f"{kernel}.elf"], stderr=subprocess.PIPE, text=True)
        if built.returncode != 0:  # warnings of others' sources are no affair of ours, errors are
            sys.exit(built.stderr)
    fewest, most = make_inputs(args, args.out)
    (args.out / "program.toml").write_text(write_program(args, fewest, most), encoding="utf-8")
    sys.exit(subprocess.run([args.cm384, "run", "program", args.out / "program.toml", "--payload", args.payload,
                             *options]).returncode)


if __name__ == "__main__":
    main()
