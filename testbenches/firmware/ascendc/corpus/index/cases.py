from harness import Case, f32


def cases():
    rows, width = 20, 45
    for kind, dtype, of, code in (("f16", "half", "i64", "DT_INT64"), ("f32", "float", "i32", "DT_INT32")):
        c = Case("embedding.cpp", kind, blocks=3, define=[f"DTYPE_TABLE={dtype}", f"ORIG_DTYPE_INDICES={code}"])
        table = c.input("table", kind, [rows, width], c.normal(kind, rows * width))
        indices = c.input("indices", of, [70], [-1, rows, rows + 5, *c.whole(67, 0, rows - 1)])
        y = [v for i in indices for v in (table[i * width : (i + 1) * width] if 0 <= i < rows else [0.0] * width)]
        c.output("y", kind, [70, width], y, fill=3)
        c.workspace()
        c.tiling(*(("i64", v) for v in (70, width, rows, 32)))
        yield c

    rows, width, total = 10, 32, 6
    for key, kind in enumerate(("f32", "bf16")):
        c = Case("scatter_add.cpp", kind, blocks=3, key=key)
        x = c.input("x", kind, [rows, width], [float(v) for v in c.whole(rows * width, -9, 9)])
        index = c.input("index", "i32", [rows], c.whole(rows, 0, total - 1))
        y = [float(sum(x[i * width + j] for i in range(rows) if index[i] == r)) for r in range(total) for j in range(width)]
        c.output("y", kind, [total, width], y, fill=7)
        c.workspace()
        c.tiling(("u32", rows), ("u32", width), ("u32", total))
        yield c

    each = 192
    c = Case("masked_select.cpp", blocks=3)
    x = c.input("x", "f32", [3 * each], c.normal("f32", 3 * each))
    kept = [v for v in x if v > f32(0.2)]
    c.output("y", "f32", [3 * each], kept + [0.0] * (3 * each - len(kept)))
    c.output("count", "i64", [1], [len(kept)])
    c.workspace(3 * 32)
    c.tiling(("u32", each), ("f32", 0.2))
    yield c

    rows, width, chosen = 4, 50, 37
    for kind, dtype in (("f16", "half"), ("f32", "float"), ("i32", "int32_t")):
        c = Case("gather_elements.cpp", kind, blocks=2, define=[f"DTYPE_X={dtype}"])
        x = c.input("x", kind, [rows, width], c.whole(rows * width, -999, 999) if kind == "i32" else c.normal(kind, rows * width))
        index = c.input("index", "i32", [rows, chosen], c.whole(rows * chosen, 0, width - 1))
        c.output("y", kind, [rows, chosen], [x[i // chosen * width + at] for i, at in enumerate(index)])
        c.workspace()
        c.tiling(("u32", rows), ("u32", width), ("u32", chosen))
        yield c

    rows, depth = 9, 128
    c = Case("one_hot.cpp", blocks=2)
    index = c.input("index", "i32", [rows], [-1, depth, *c.whole(rows - 2, 0, depth - 1)])
    c.output("y", "f32", [rows, depth], [0.75 if i == j else -0.5 for i in index for j in range(depth)])
    c.arguments += [str(rows), str(depth), "0.75", "-0.5"]
    yield c
