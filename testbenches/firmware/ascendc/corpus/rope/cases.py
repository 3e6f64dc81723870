import math

from harness import ROUND, Case, f32


def cases():
    tokens, heads, d = 5, 3, 128
    for key, kind, rtol in ((10, "f16", 2**-10), (11, "bf16", 2**-8)):
        c = Case("rotary_half.cpp", kind, blocks=3, key=key)
        x = c.normal(kind, tokens * heads * d)
        angle = [t * 10000 ** (-2 * (i % (d // 2)) / d) for t in range(tokens) for i in range(d)]
        cos, sin = ([ROUND[kind](f(a)) for a in angle] for f in (math.cos, math.sin))
        y = []
        for i, v in enumerate(x):
            token, at = i // d // heads, i % d
            other = -x[i + d // 2] if at < d // 2 else x[i - d // 2]
            y.append(v * cos[token * d + at] + other * sin[token * d + at])
        c.output("x", kind, [tokens, heads, d], y, rtol, 1e-6, before=x)
        c.input("cos", kind, [tokens, d], cos)
        c.input("sin", kind, [tokens, d], sin)
        c.workspace()
        c.tiling(("u32", tokens), ("u32", heads), ("u32", d), ("u32", 2))
        yield c
    tokens, heads, d, places = 4, 2, 64, 50
    c = Case("rotary_interleaved.cpp", blocks=2)
    x = c.input("x", "f32", [tokens, heads, d], c.normal("f32", tokens * heads * d))
    positions = c.input("positions", "i64", [tokens], c.whole(tokens, 0, places - 1))
    table = []
    for p in range(places):
        angle = [p * 10000 ** (-2 * i / d) for i in range(d // 2)]
        table += [f32(math.cos(a)) for a in angle] + [f32(math.sin(a)) for a in angle]
    c.input("table", "f32", [places, d], table)
    y = []
    for i, v in enumerate(x):
        at = positions[i // d // heads] * d + i % d // 2
        cos, sin = table[at], table[at + d // 2]
        y.append(v * cos - x[i + 1] * sin if i % 2 == 0 else v * cos + x[i - 1] * sin)
    c.output("y", "f32", [tokens, heads, d], y, 1e-6, 1e-6)
    c.workspace()
    c.tiling(("u32", tokens), ("u32", heads), ("u32", d))
    yield c
