import math

from harness import Case, f16


def cases():
    rows, classes, ignore = 7, 150, -100
    c = Case("cross_entropy.cpp", blocks=3)
    x = c.input("x", "f32", [rows, classes], c.normal("f32", rows * classes, 3))
    target = c.whole(rows, 0, classes - 1)
    target[2] = ignore
    c.input("target", "i64", [rows], target)
    loss = []
    for r in range(rows):
        row = x[r * classes : (r + 1) * classes]
        loss.append(0.0 if target[r] == ignore else math.log(sum(map(math.exp, row))) - row[target[r]])
    c.output("loss", "f32", [rows], loss, 1e-5, 1e-6)
    c.output("mean", "f32", [1], [sum(loss) / (rows - 1)], 1e-5)
    c.workspace(3 * 32 + 64)
    c.tiling(("u32", rows), ("u32", classes), ("u32", 64), ("i32", ignore))
    yield c

    n = 512
    c = Case("smooth_l1.cpp", blocks=2)
    x = c.input("x", "f16", [n], c.normal("f16", n))
    y = c.input("y", "f16", [n], c.normal("f16", n))
    loss = []
    for u, v in zip(x, y):
        d = abs(f16(u - v))
        q = min(d, 1.0)
        loss.append(f16(f16(d - f16(q * 0.5)) * q))
    c.output("loss", "f16", [n], loss)
    c.tiling(("u32", n // 2))
    yield c

    n, factor = 500, 0.125
    for key, (kind, log_target) in enumerate((("f32", False), ("f32", True), ("f16", False))):
        c = Case("kl_div_grad.cpp", f"{kind}-{log_target}", blocks=3, key=key)
        grad = c.input("grad", kind, [n], c.normal(kind, n))
        target = c.input("target", kind, [n], c.uniform(kind, n, -1, 1))
        value = lambda v, log=log_target: math.exp(v) if log else max(v, 0.0)
        c.output("d", kind, [n], [-factor * g * value(v) for g, v in zip(grad, target)], 2**-9 if kind == "f16" else 1e-6, 1e-7)
        c.workspace()
        c.tiling(("u32", n), ("u32", 128), ("f32", factor))
        yield c
