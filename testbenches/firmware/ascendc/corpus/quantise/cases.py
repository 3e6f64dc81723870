from harness import Case, silu


def cases():
    rows, n = 7, 70
    for key, kind in enumerate(("f16", "bf16")):
        for smooth in (0, 1):
            c = Case("dynamic_quant.cpp", f"{kind}-{smooth}", blocks=4, key=key)
            x = c.input("x", kind, [rows, n], c.normal(kind, rows * n))
            factor = c.uniform(kind, n, 0.5, 2)
            c.input("smooth", kind, [n], factor)
            scaled = [v * (factor[i % n] if smooth else 1) for i, v in enumerate(x)]
            scales = [max(map(abs, scaled[i * n : (i + 1) * n])) / 127 for i in range(rows)]
            c.output("y", "i8", [rows, n], [round(v / scales[i // n]) for i, v in enumerate(scaled)], 0.0, 1.0)
            c.output("scale", "f32", [rows], scales, 1e-6)
            c.workspace()
            c.tiling(*(("u32", v) for v in (3, n, 1, 3, 2, smooth)))
            yield c
    rows, h = 4, 64
    c = Case("dequant_swiglu_quant.cpp", blocks=2)
    x = c.input("x", "i32", [rows, 2 * h], c.whole(rows * 2 * h, -50000, 50000))
    w = c.input("w", "f32", [2 * h], c.uniform("f32", 2 * h, 0.001, 0.01))
    a = c.input("a", "f32", [rows], c.uniform("f32", rows, 0.005, 0.02))
    y = []
    for r in range(rows):
        f = [v * s * a[r] for v, s in zip(x[r * 2 * h : (r + 1) * 2 * h], w)]
        y.append([silu(u) * v for u, v in zip(f[:h], f[h:])])
    scales = [max(map(abs, row)) / 127 for row in y]
    c.output("y", "i8", [rows, h], [round(v / s) for row, s in zip(y, scales) for v in row], 0.0, 1.0)
    c.output("scale", "f32", [rows], scales, 1e-5)
    c.workspace()
    c.tiling(("u32", rows), ("u32", h))
    yield c
    k, n, group = 64, 64, 16
    c = Case("group_dequant.cpp", blocks=2)
    w = c.input("w", "i8", [k, n], c.whole(k * n, -128, 127))
    scale = c.input("scale", "f16", [k // group, n], c.uniform("f16", k // group * n, 0.01, 0.1))
    offset = c.input("offset", "f16", [k // group, n], c.uniform("f16", k // group * n, -8, 8))
    at = lambda i: i // n // group * n + i % n
    c.output("y", "f16", [k, n], [(v + offset[at(i)]) * scale[at(i)] for i, v in enumerate(w)], 2**-10, 1e-6)
    c.workspace()
    c.tiling(("u32", k), ("u32", n), ("u32", group))
    yield c
    rows, groups, group = 3, 2, 128
    c = Case("int4_weights.cpp", blocks=4)
    w = c.input("w", "f16", [rows, groups * group], c.normal("f16", rows * groups * group))
    packed, scales, back = [], [], []
    for i in range(0, len(w), group):
        row, step = w[i : i + group], 0.0078125
        while step * 7 < max(map(abs, row)):
            step *= 2
        q = [max(min(int(abs(v / step) + 0.5) * (1 if v > 0 else -1), 7), -8) for v in row]
        packed += [(q[j] & 15) | (q[j + 1] & 15) << 4 for j in range(0, group, 2)]
        scales.append(step)
        back += [float(v * step) for v in q]
    c.output("packed", "u8", [rows, groups * group // 2], packed)
    c.output("scale", "f16", [rows * groups], scales)
    c.output("back", "f16", [rows, groups * group], back)
    c.workspace()
    c.tiling(("u32", rows), ("u32", groups), ("u32", group))
    yield c
