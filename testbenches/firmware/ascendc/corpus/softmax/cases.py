import math

from harness import Case, f16, softmax


def cases():
    rows, n = 37, 100
    for column, (kind, rtol) in enumerate((("f16", 1e-3), ("f32", 1e-5))):
        c = Case("softmax_rows", kind)
        c.column, c.shapes = column, [f"x={rows}x{n}"]
        x = c.input("x", kind, [rows, n], c.normal(kind, rows * n, 2))
        c.output("y", kind, [rows, n], [v for i in range(rows) for v in softmax(x[i * n : (i + 1) * n])], rtol, 1e-7)
        yield c
    s, scale = 128, 0.125
    c = Case("causal_softmax.cpp", blocks=4)
    x = c.input("x", "f16", [s, s], c.normal("f16", s * s, 8))
    y = []
    for i in range(s):
        y += softmax([v * scale for v in x[i * s : i * s + i + 1]]) + [0.0] * (s - 1 - i)
    c.output("y", "f16", [s, s], y, 1e-3, 1e-7)
    c.workspace()
    c.tiling(("u32", 1), ("u32", s), ("f32", scale))
    yield c
    rows, n = 5, 301
    c = Case("log_softmax_grad.cpp", blocks=2)
    grad = c.input("grad", "f32", [rows, n], c.normal("f32", rows * n))
    p = [v for i in range(rows) for v in softmax(c.normal("f32", n))]
    c.input("y", "f32", [rows, n], [math.log(v) for v in p])
    sums = [sum(grad[i * n : (i + 1) * n]) for i in range(rows)]
    c.output("dx", "f32", [rows, n], [g - v * sums[i // n] for i, (g, v) in enumerate(zip(grad, p))], 1e-5, 1e-5)
    c.workspace()
    c.tiling(("i64", rows), ("i64", n), ("i32", 128), ("i32", 0))
    yield c
    rows, n = 11, 48
    c = Case("softmax_grad.cpp", blocks=2)
    y = c.input("y", "f16", [rows, n], [f16(v) for _ in range(rows) for v in softmax(c.normal("f32", n))])
    grad = c.input("grad", "f16", [rows, n], c.normal("f16", rows * n, 4))
    sums = [sum(y[i * n + j] * grad[i * n + j] for j in range(n)) for i in range(rows)]
    before = [f16(y[i] * (grad[i] - sums[i // n])) for i in range(rows * n)]
    # A step of half more where the product's rounding goes the other way.
    c.output("dx", "f16", [rows, n], [math.tan(v) for v in before], 2**-9, 1e-6)
    c.output("sums", "f16", [rows, 16], [s for s in sums for _ in range(16)], 2**-10, 1e-5)
    c.workspace()
    c.tiling(("u32", rows), ("u32", n), ("u32", 4), *(("u32", 0) for _ in range(16)))
    yield c
