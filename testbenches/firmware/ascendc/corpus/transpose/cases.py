from harness import Case


def cases():
    m, n = 32, 48
    for key, kind in enumerate(("f16", "f32")):
        c = Case("transpose_2d.cpp", kind, blocks=2, key=key)
        x = c.input("x", kind, [m, n], c.normal(kind, m * n))
        c.output("y", kind, [n, m], [x[i * n + j] for j in range(n) for i in range(m)])
        c.workspace()
        c.tiling(("u32", m), ("u32", n))
        yield c
    for hw in (32, 16):
        batch, channels = 2, 20
        c = Case("nchw_to_nc1hwc0.cpp", str(hw), blocks=3)
        x = c.input("x", "f16", [batch, channels, hw], c.normal("f16", batch * channels * hw))
        y = [x[(b * channels + c1 * 16 + c0) * hw + p] if c1 * 16 + c0 < channels else 0.0
             for b in range(batch) for c1 in range(2) for p in range(hw) for c0 in range(16)]
        c.output("y", "f16", [batch, 2, hw, 16], y)
        c.workspace()
        c.tiling(("u32", batch), ("u32", channels), ("u32", hw))
        yield c
    width, out_width = 87, 72
    c = Case("slice_copy.cpp")
    x = c.input("x", "f32", [3, width], c.normal("f32", 3 * width))
    y = [0.0] * (4 * out_width)
    for row in (0, 1):
        picked = [x[2 * row * width + first + i] for first in (16, 47) for i in range(24)]
        y[(1 + row) * out_width + 8 : (1 + row) * out_width + 56] = picked
    c.output("y", "f32", [4, out_width], y)
    c.workspace()
    c.tiling(("u32", width), ("u32", out_width))
    yield c
    rows, width, left, right, value = 5, 40, 3, 5, -1.5
    c = Case("pad_rows.cpp", blocks=2)
    x = c.input("x", "f16", [rows, width], c.normal("f16", rows * width))
    c.output("y", "f16", [rows, left + width + right], [v for r in range(rows) for v in [value] * left + x[r * width : (r + 1) * width] + [value] * right])
    c.workspace()
    c.tiling(("u32", rows), ("u32", width), ("u32", left), ("u32", right), ("f32", value))
    yield c
