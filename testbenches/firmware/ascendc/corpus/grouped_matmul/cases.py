from harness import Case, cube_tiling, product


def cases():
    k, n, ends = 64, 96, [20, 20, 61]
    c = Case("grouped_matmul.cpp", blocks=2)
    x = c.input("x", "bf16", [ends[-1], k], c.normal("bf16", ends[-1] * k))
    weights = [c.normal("bf16", k * n) for _ in ends]
    for i, w in enumerate(weights):
        c.buffer(f"weight{i}", "bf16", [k, n], w)
    c.tensors("weight", [(k, n)] * len(ends))
    c.input("groups", "i64", [len(ends)], ends)
    y, first = [], 0
    for end, w in zip(ends, weights):
        y += product(x[first * k : end * k], w, end - first, n, k)
        first = end
    c.output("y", "bf16", [ends[-1], n], y, 2**-8, 1e-4)
    c.workspace()
    c.tiling(*cube_tiling(64, n, k, (32, 48, 32)), *(("u32", v) for v in (len(ends), k, n, 32, 48)))
    yield c
