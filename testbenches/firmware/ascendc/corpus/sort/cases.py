from harness import Case


def cases():
    for kind, dtype in (("f32", "float"), ("f16", "half")):
        for n in (224, 1024):
            rows = 3 if n == 224 else 1
            c = Case("sort_rows.cpp", f"{kind}-{n}", blocks=2, define=[f"DTYPE_X={dtype}"])
            x = c.input("x", kind, [rows, n], [v / 8 for v in c.whole(rows * n, -300, 300)])
            order = [sorted(range(n), key=lambda i, r=r: -x[r * n + i]) for r in range(rows)]
            c.output("values", kind, [rows, n], [x[r * n + i] for r in range(rows) for i in order[r]])
            c.output("places", "i32", [rows, n], [i for row in order for i in row])
            c.workspace()
            c.tiling(("u32", rows), ("u32", n))
            yield c
    rows, n, inner, k = 3, 50, 64, 5
    for largest in (0, 1):
        c = Case("top_k.cpp", str(largest))
        x = c.input("x", "f32", [rows, n], [float(v) for v in c.whole(rows * n, -99, 99)])
        ended = c.input("finished", "u8", [rows], [0, 1, 0])
        order = [sorted(range(n), key=lambda i, r=r: -x[r * n + i] if largest else x[r * n + i])[:k] for r in range(rows)]
        c.output("values", "f32", [rows, k], [x[r * n + i] for r in range(rows) for i in order[r]])
        c.output("indices", "i32", [rows, k], [n if ended[r] else i for r in range(rows) for i in order[r]])
        c.workspace()
        c.tiling(*(("i32", v) for v in (rows, n, inner, k, 8, largest)), *(("u32", 0) for _ in range(24)))
        yield c
