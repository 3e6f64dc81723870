import math

from harness import Case, f16, f32


def cases():
    for kind, key in (("f32", 1), ("f16", 2)):
        c = Case("hard_swish.cpp", kind, blocks=3, key=key)
        x = c.input("x", kind, [1003], c.uniform(kind, 1003, -5, 5))
        r = f16 if kind == "f16" else f32
        y = [r(v * r(min(max(r(v + 3), 0), 6) * r(1 / 6))) for v in x]
        c.output("y", kind, [1003], y, None if kind == "f16" else 1e-6, 1e-6)
        c.workspace()
        c.tiling(("u32", 2), ("u32", 3), ("u32", 2), ("u32", 128), ("u32", 1003))
        yield c
    for kind, dtype in (("f32", "float"), ("f16", "half")):
        c = Case("masked_fill.cpp", kind, blocks=2, define=[f"DTYPE_X={dtype}"])
        x, mask = c.uniform(kind, 1500), c.whole(1500, 0, 1)
        c.input("x", kind, [1500], x)
        c.input("mask", "u8", [1500], mask)
        c.output("y", kind, [1500], [-1024.5 if m else v for v, m in zip(x, mask)])
        c.workspace()
        c.tiling(("i64", 1500), ("i64", 768), ("i32", 512), ("f32", -1024.5))
        yield c
    c = Case("bit_mix.cpp", blocks=2)
    n, shift, modulus = 1024, 3, 7
    x, a = c.whole(n, -100000, 100000), c.whole(n, -(2**31), 2**31 - 1)
    signed = lambda v: (v & 0xFFFFFFFF) - ((v & 0x80000000) << 1)
    rest = [v - modulus * (f32(v * f32(1 / modulus)) // 1) for v in x]
    c.input("x", "i32", [n], x)
    c.input("a", "i32", [n], a)
    c.output("bits", "i32", [n], [signed((u << shift) & v | (~u >> shift)) for u, v in zip(x, a)])
    c.output("rest", "i32", [n], [int(v) for v in rest])
    c.tiling(("u32", n), ("u32", 128), ("i32", shift), ("i32", modulus))
    yield c
    c = Case("addcmul_bf16.cpp", blocks=2)
    n = 2 * 3 * 192
    x, a, b = (c.normal("bf16", n) for _ in range(3))
    for name, values in (("x", x), ("a", a), ("b", b)):
        c.input(name, "bf16", [n], values)
    c.output("y", "bf16", [n], [u + 0.75 * v * w for u, v, w in zip(x, a, b)], 2**-8, 1e-6)
    c.tiling(("u32", 3), ("u32", 192), ("f32", 0.75))
    yield c
    n = 128
    c = Case("complex_mul.cpp", blocks=2)
    a, b = ([complex(v, w) for v, w in zip(c.whole(2 * n, -99, 99), c.whole(2 * n, -99, 99))] for _ in range(2))
    pairs = lambda z: [float(p) for v in z for p in (v.real, v.imag)]
    c.input("a", "f32", [2 * n, 2], pairs(a))
    c.input("b", "f32", [2 * n, 2], pairs(b))
    c.output("y", "f32", [2 * n, 2], pairs(v * w for v, w in zip(a, b)))
    c.arguments.append(str(n))
    yield c

    c = Case("mask_modes.cpp")
    x = c.input("x", "f32", [256], [float(v) / 8 for v in [*c.whole(8, -9, 9), *c.whole(5, 1, 9), *c.whole(243, -9, 9)]])
    y = [-1.0] * 1280
    y[:200] = [v + 1 for v in x[:200]]
    y[256:512] = [2 * v if 0xF0F0F0F0F0F0F0F0 >> i % 64 & 1 else -1.0 for i, v in enumerate(x)]
    for r in range(2):
        for i in range(64):
            if i < 32:
                y[512 + r * 128 + i // 8 * 16 + i % 8] = 7.0
            y[768 + r * 128 + i] = x[r * 64 + i] + x[64 + r * 64 + i]
    y[1024:1101] = [math.exp(v) for v in x[:77]]
    y[1200:1205] = [math.log(v) for v in x[8:13]]
    c.output("y", "f32", [1280], y, 1e-6, 1e-7)
    yield c

    c = Case("debug_forms.cpp", blocks=2)
    x = c.input("x", "i32", [64], list(range(64)))
    c.output("y", "i32", [64], [v + 1 for v in x])
    yield c
