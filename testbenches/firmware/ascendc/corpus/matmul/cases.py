import struct

from harness import Case, cube_tiling, gelu, product


def cases():
    m, n, k = 64, 96, 64
    c = Case("matmul_leaky_relu")
    c.column, c.shapes = 0, [f"a={m}x{k}", f"b={k}x{n}", f"bias={n}", "alpha=0.25"]
    a = c.input("a", "f16", [m, k], [float(v) for v in c.whole(m * k, -4, 4)])
    b = c.input("b", "f16", [k, n], [float(v) for v in c.whole(k * n, -4, 4)])
    bias = c.input("bias", "f32", [n], [float(v) for v in c.whole(n, -4, 4)])
    sums = [v + bias[i % n] for i, v in enumerate(product(a, b, m, n, k))]
    c.output("c", "f32", [m, n], [v if v >= 0 else 0.25 * v for v in sums])
    yield c

    m, n, k = 64, 64, 128
    c = Case("quant_matmul.cpp", blocks=2)
    a = c.input("a", "i8", [m, k], c.whole(m * k, -128, 127))
    turned = c.input("b", "i8", [n, k], c.whole(n * k, -128, 127))
    bias = c.input("bias", "i32", [n], c.whole(n, -9999, 9999))
    scale = c.uniform("f32", n, 0.0001, 0.001)
    c.input("scale", "u64", [n], [struct.unpack("<I", struct.pack("<f", s))[0] for s in scale])
    b = [turned[j * k + p] for p in range(k) for j in range(n)]
    c.output("c", "f16", [m, n], [(v + bias[i % n]) * scale[i % n] for i, v in enumerate(product(a, b, m, n, k))], 2**-10, 1e-7)
    c.workspace()
    c.tiling(("u32", m), ("u32", n), ("u32", k))
    yield c

    batch, m, n, k = 5, 32, 64, 64
    c = Case("batch_matmul_gelu.cpp", blocks=2)
    a = c.input("a", "f16", [batch, m, k], c.uniform("f16", batch * m * k))
    b = c.input("b", "f16", [batch, k, n], c.uniform("f16", batch * k * n, -0.5, 0.5))
    y = [gelu(v) for i in range(batch) for v in product(a[i * m * k : (i + 1) * m * k], b[i * k * n : (i + 1) * k * n], m, n, k)]
    c.output("c", "f16", [batch, m, n], y, 2**-10, 1e-5)
    c.workspace(2 * 2 * m * n * 4)
    c.tiling(("u32", batch), ("u32", m), ("u32", n), ("u32", k))
    yield c

    m, k = 13, 192
    c = Case("gemv.cpp", blocks=4)
    w = c.input("w", "f16", [m, k], c.normal("f16", m * k))
    x = c.input("x", "f16", [k], c.normal("f16", k))
    c.output("y", "f32", [m], product(w, x, m, 1, k), 1e-5, 1e-5)
    c.workspace()
    c.tiling(("u32", m), ("u32", k), ("u32", 4))
    yield c

    m, k, n, p = 40, 32, 64, 48
    c = Case("chained_matmul.cpp", blocks=2)
    a = c.input("a", "f16", [2, m, k], [float(v) for v in c.whole(2 * m * k, -3, 3)])
    b = c.input("b", "f16", [k, n], [float(v) for v in c.whole(k * n, -3, 3)])
    w = c.input("c", "f16", [n, p], [float(v) for v in c.whole(n * p, -3, 3)])
    c.output("y", "f32", [2, m, p], product(product(a, b, 2 * m, n, k), w, 2 * m, p, n))
    c.tiling(("u32", m), ("u32", k), ("u32", n), ("u32", p))
    yield c

    m, n, k, pitch = 40, 48, 64, 128
    c = Case("matmul_parts.cpp")
    a = c.input("a", "f16", [m, k], [float(v) for v in c.whole(m * k, -4, 4)])
    turned = c.input("b", "f16", [n, k], [float(v) for v in c.whole(n * k, -4, 4)])
    a8, b8 = c.input("a8", "i8", [m, k], c.whole(m * k, -9, 9)), c.input("b8", "i8", [k, n], c.whole(k * n, -9, 9))
    scale = [2.0 ** v for v in c.whole(n, -6, 0)]
    c.input("scales", "u64", [n], [struct.unpack("<I", struct.pack("<f", s))[0] for s in scale])
    b = [turned[j * k + p] for p in range(k) for j in range(n)]
    sums, whole = product(a, b, m, n, k), product(a8, b8, m, n, k)
    c.output("scaled", "f32", [m, n], [2 * v + 1 for v in sums])
    c.output("one", "f16", [m, n], [v * 0.5 for v in whole], 2**-10, 1e-7)
    c.output("many", "f16", [m, n], [v * scale[i % n] for i, v in enumerate(whole)], 2**-10, 1e-7)
    c.output("apart", "f32", [m, pitch], [v for i in range(m) for v in sums[i * n : (i + 1) * n] + [-1.0] * (pitch - n)], fill=-1)
    c.workspace(64)
    c.tiling(*cube_tiling(m, n, k, (32, 32, 32)), ("u32", pitch), ("f32", 2.0))
    yield c

    m, n, k, pitch, skip = 40, 48, 72, 64, 7
    c = Case("own_copies.cpp")
    a = c.input("a", "f16", [m, 2 * k], [float(v) for v in c.whole(2 * m * k, -4, 4)])
    b = c.input("b", "f16", [k, pitch], [float(v) for v in c.whole(pitch * k, -4, 4)])
    a = [a[i * 2 * k + p] for i in range(m) for p in range(k)]
    b = [b[p * pitch + skip + j] for p in range(k) for j in range(n)]
    c.output("c", "f32", [m, n], product(a, b, m, n, k))
    c.struct("defs", [("i32", 2 * k), ("i32", pitch), ("i32", skip)])
    c.workspace(64)
    c.tiling(*cube_tiling(m, n, k, (32, 32, 32)))
    yield c

    m, n, k = 48, 32, 192
    c = Case("mmad_int4.cpp")
    a, b = c.whole(m * k, -8, 7), c.whole(n * k, -8, 7)
    for name, rows, v in (("a", m, a), ("b", n, b)):
        c.input(name, "u8", [rows, k // 2], [(v[i] & 15) | (v[i + 1] & 15) << 4 for i in range(0, len(v), 2)])
    scale = [2.0 ** v for v in c.whole(n, -4, 0)]
    c.input("scales", "u64", [n], [struct.unpack("<I", struct.pack("<f", s))[0] for s in scale])
    y = [sum(a[i * k + p] * b[j * k + p] for p in range(k)) for i in range(m) for j in range(n)]
    c.output("y", "i32", [m, n], y)
    z = [y[i * n + j + h] * scale[j + h] for j in range(0, n, 16) for i in range(m) for h in range(16)]
    c.output("z", "f16", [2, m * n], z + [max(v, 0.0) for v in z], 2**-11, 1e-7)
    yield c
