import math

from harness import Case


def cases():
    for columns in (203, 64):
        rows = 7
        c = Case("reduce_rows.cpp", str(columns), blocks=4)
        x = [v / 8 for v in c.whole(rows * columns, -400, 400)]
        c.input("x", "f32", [rows, columns], x)
        parts = [x[r * columns : (r + 1) * columns] for r in range(rows)]
        c.output("sum", "f32", [rows], [sum(p) for p in parts])
        c.output("most", "f32", [rows], [max(p) for p in parts])
        c.output("where", "i32", [rows], [p.index(max(p)) for p in parts])
        c.workspace()
        c.tiling(("u32", rows), ("u32", columns), ("u32", 2), ("u32", (columns + 63) // 64 * 64))
        yield c
    c = Case("norm_of_all.cpp", blocks=4)
    x = c.input("x", "f16", [3000], c.normal("f16", 3000))
    c.output("y", "f32", [1], [math.sqrt(sum(v * v for v in x))], 1e-5)
    c.workspace(64)
    c.tiling(("u32", 3000), ("u32", 512))
    yield c
    for kind, dtype in (("f16", "DT_FLOAT16"), ("bf16", "DT_BF16")):
        rows, columns = 37, 96
        c = Case("mean_variance.cpp", kind, blocks=3, define=[f"ORIG_DTYPE_X={dtype}"])
        x = c.input("x", kind, [rows, columns], [v + 3 for v in c.normal(kind, rows * columns)])
        if kind == "bf16":
            x[:] = [v - v % 0.0625 for v in x]
        else:
            x[:] = [v - v % 0.015625 for v in x]
        means = [sum(x[i::columns]) / rows for i in range(columns)]
        c.output("mean", "f32", [columns], means, 1e-5)
        c.output("variance", "f32", [columns], [sum((v - means[i]) ** 2 for v in x[i::columns]) / rows for i in range(columns)], 1e-4)
        c.workspace()
        c.tiling(("u32", rows), ("u32", columns), ("u32", 8))
        yield c
    for key, (label, join) in enumerate((("prod", math.prod), ("max", max), ("min", min))):
        a, r, n = 5, 7, 24
        c = Case("prod_of_axis.cpp", label, blocks=2, key=key)
        x = c.input("x", "f32", [a, r, n], c.uniform("f32", a * r * n, 0.5, 2))
        y = [join([x[(i * r + k) * n + j] for k in range(r)]) for i in range(a) for j in range(n)]
        c.output("y", "f32", [a, n], y, 1e-6 if key == 0 else None)
        c.workspace()
        c.tiling(("i64", a), ("i64", r), ("i64", n))
        yield c
    each, blocks = 64, 4
    c = Case("cum_sum.cpp", blocks=blocks)
    x = c.input("x", "f32", [each * blocks], [float(v) for v in c.whole(each * blocks, -9, 9)])
    c.output("y", "f32", [each * blocks], [sum(x[: i + 1]) for i in range(each * blocks)])
    c.workspace(2 * blocks * 32)
    c.tiling(("u32", each))
    yield c
