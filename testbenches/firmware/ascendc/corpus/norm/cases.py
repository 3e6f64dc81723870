import math

from harness import Case, bf16, f32, silu


def rms(row, gamma, eps):
    rstd = 1 / math.sqrt(sum(v * v for v in row) / len(row) + eps)
    return rstd, [v * rstd * g for v, g in zip(row, gamma)]


def cases():
    rows, n = 100, 96
    for column, (kind, rtol) in enumerate((("f32", 1e-5), ("f16", 1e-3), ("bf16", 2**-8))):
        c = Case("rms_norm", kind)
        c.column, c.shapes = column, [f"x={rows}x{n}", f"gamma={n}", "epsilon=0.01"]
        x = c.input("x", kind, [rows, n], c.normal(kind, rows * n))
        gamma = c.input("gamma", kind, [n], c.uniform(kind, n, 0.5, 1.5))
        done = [rms(x[i * n : (i + 1) * n], gamma, 0.01) for i in range(rows)]
        c.output("y", kind, [rows, n], [v for _, row in done for v in row], rtol, 1e-6)
        c.output("rstd", "f32", [rows, 1], [r for r, _ in done], 1e-5)
        yield c
    rows, n = 16, 192
    c = Case("layer_norm.cpp", blocks=2)
    x = c.input("x", "f16", [rows, n], c.normal("f16", rows * n))
    gamma = c.input("gamma", "f32", [n], c.uniform("f32", n))
    beta = c.input("beta", "f32", [n], c.uniform("f32", n))
    y = []
    for i in range(rows):
        row = x[i * n : (i + 1) * n]
        mean = sum(row) / n
        deviation = math.sqrt(sum((v - mean) ** 2 for v in row) / n + 1e-5)
        y += [(v - mean) / deviation * g + b for v, g, b in zip(row, gamma, beta)]
    c.output("y", "f16", [rows, n], y, 6e-4, 1e-4)
    c.workspace()
    c.tiling(("u32", rows), ("u32", n), ("f32", 1e-5))
    yield c
    batch, channels, hw, groups = 2, 8, 40, 4
    c = Case("group_norm_silu.cpp", blocks=3)
    x = c.input("x", "f32", [batch, channels, hw], c.normal("f32", batch * channels * hw, 2))
    gamma = c.input("gamma", "f32", [channels], c.uniform("f32", channels))
    beta = c.input("beta", "f32", [channels], c.uniform("f32", channels))
    y, each = [], channels // groups * hw
    for i in range(batch * groups):
        part = x[i * each : (i + 1) * each]
        mean = sum(part) / each
        deviation = math.sqrt(sum((v - mean) ** 2 for v in part) / each + 1e-5)
        for j, v in enumerate(part):
            channel = i % groups * (channels // groups) + j // hw
            y.append(silu((v - mean) / deviation * gamma[channel] + beta[channel]))
    c.output("y", "f32", [batch, channels, hw], y, 1e-5, 1e-6)
    c.workspace()
    c.tiling(("u32", batch), ("u32", channels), ("u32", hw), ("u32", groups), ("f32", 1e-5))
    yield c
    rows, n = 5, 128
    c = Case("add_rms_norm_quant.cpp", blocks=3)
    a = c.input("a", "bf16", [rows, n], c.normal("bf16", rows * n))
    b = c.input("b", "bf16", [rows, n], c.normal("bf16", rows * n))
    gamma = c.input("gamma", "bf16", [n], c.uniform("bf16", n, 0.5, 1.5))
    x = [bf16(f32(u + v)) for u, v in zip(a, b)]
    q, scales = [], []
    for i in range(rows):
        _, y = rms(x[i * n : (i + 1) * n], gamma, 1e-6)
        scales.append(max(map(abs, y)) / 127)
        q += [round(v / scales[-1]) for v in y]
    c.output("q", "i8", [rows, n], q, 0.0, 1.0)
    c.output("sum", "bf16", [rows, n], x)
    c.output("scale", "f32", [rows], scales, 1e-5)
    c.workspace()
    c.tiling(("u32", rows), ("u32", n), ("u32", 2), ("f32", 1e-6), *(("u32", v) for v in [1, 1, n, n] + [0] * 8))
    yield c
    rows, n, eps = 7, 48, 1e-3
    c = Case("layer_norm_grad.cpp", blocks=3)
    dy, x = c.input("dy", "f32", [rows, n], c.normal("f32", rows * n)), c.input("x", "f32", [rows, n], c.normal("f32", rows * n, 2))
    means = [f32(sum(x[i * n : (i + 1) * n]) / n) for i in range(rows)]
    spreads = [f32(sum((v - m) ** 2 for v in x[i * n : (i + 1) * n]) / n) for i, m in enumerate(means)]
    c.input("variance", "f32", [rows], spreads)
    c.input("mean", "f32", [rows], means)
    gamma = c.input("gamma", "f32", [n], c.uniform("f32", n, 0.5, 1.5))
    dx, dgamma, dbeta = [], [0.0] * n, [0.0] * n
    for i in range(rows):
        r = (spreads[i] + eps) ** -0.5
        hat = [(v - means[i]) * r for v in x[i * n : (i + 1) * n]]
        g = [a * b for a, b in zip(dy[i * n : (i + 1) * n], gamma)]
        s, p = sum(g) / n, sum(a * b for a, b in zip(g, hat)) / n
        dx += [r * (a - s - b * p) for a, b in zip(g, hat)]
        for j in range(n):
            dgamma[j] += dy[i * n + j] * hat[j]
            dbeta[j] += dy[i * n + j]
    c.output("dx", "f32", [rows, n], dx, 1e-4, 1e-5)
    c.output("dgamma", "f32", [n], dgamma, 1e-5, 1e-5)
    c.output("dbeta", "f32", [n], dbeta, 1e-5, 1e-5)
    c.workspace()
    c.tiling(("u32", rows), ("u32", n), ("u32", 3), ("f32", eps))
    yield c
    planes, pixels, strip = 5, 256, 64
    for key, kind in enumerate(("f16", "bf16")):
        c = Case("instance_norm.cpp", kind, blocks=2, key=key)
        x = c.input("x", kind, [planes, pixels], [round(v + 3, 0) / 4 for v in c.normal(kind, planes * pixels, 16)])
        gamma, beta = c.input("gamma", "f32", [planes], c.uniform("f32", planes)), c.input("beta", "f32", [planes], c.uniform("f32", planes))
        y = []
        for i in range(planes):
            row = x[i * pixels : (i + 1) * pixels]
            mean = sum(row) / pixels
            rstd = (sum((v - mean) ** 2 for v in row) / pixels + 1e-5) ** -0.5
            y += [(v - mean) * rstd * gamma[i] + beta[i] for v in row]
        c.output("y", kind, [planes, pixels], y, 1e-3 if kind == "f16" else 2**-8, 1e-4)
        c.workspace()
        c.tiling(("u32", planes), ("u32", pixels), ("u32", strip), ("f32", 1e-5))
        yield c
