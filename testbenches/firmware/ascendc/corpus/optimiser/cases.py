import math

from harness import Case, size_of


def cases():
    lr, beta1, beta2, eps, decay, step = 0.01, 0.9, 0.95, 1e-8, 0.1, 3
    shapes = [(3, 50), (77,)]
    c = Case("adam_w.cpp", blocks=3)
    before = {}
    for name, kind in (("p", "bf16"), ("g", "bf16"), ("m", "f32"), ("v", "f32")):
        for i, shape in enumerate(shapes):
            values = c.uniform(kind, size_of(shape), 0.01, 1) if name == "v" else c.normal(kind, size_of(shape))
            before[name, i] = values
            c.buffer(f"{name}{i}", kind, shape, values)
        c.tensors(name, shapes)
    correction1, correction2 = 1 - beta1**step, 1 - beta2**step
    for i, shape in enumerate(shapes):
        p, g, m, v = (before[name, i] for name in "pgmv")
        m = [beta1 * a + (1 - beta1) * b for a, b in zip(m, g)]
        v = [beta2 * a + (1 - beta2) * b * b for a, b in zip(v, g)]
        p = [a * (1 - lr * decay) - lr * (b / correction1) / (math.sqrt(w / correction2) + eps) for a, b, w in zip(p, m, v)]
        c.check(f"p{i}", "bf16", shape, p, 2**-8, 1e-5)
        c.check(f"m{i}", "f32", shape, m, 1e-5, 1e-6)
        c.check(f"v{i}", "f32", shape, v, 1e-5, 1e-6)
    c.workspace()
    c.tiling(*(("f32", x) for x in (lr, beta1, beta2, eps, decay, correction1, correction2)), ("u32", len(shapes)), ("u32", 64))
    yield c

    n, lr, momentum = 300, 0.1, 0.9
    for most in (1.0, 100.0):
        c = Case("sgd_clip.cpp", str(int(most)), blocks=3)
        p, g, v = (c.normal("f32", n) for _ in range(3))
        norm = math.sqrt(sum(x * x for x in g))
        factor = most / norm if norm > most else 1.0
        after = [momentum * a + factor * b for a, b in zip(v, g)]
        c.output("param", "f32", [n], [a - lr * b for a, b in zip(p, after)], 1e-5, 1e-6, before=p)
        c.input("grad", "f32", [n], g)
        c.output("velocity", "f32", [n], after, 1e-5, 1e-6, before=v)
        c.workspace(3 * 32)
        c.tiling(("i32", n), ("i32", 128), ("f32", lr), ("f32", momentum), ("f32", most))
        yield c

    n, lr, beta1, beta2, decay = 500, 0.125, 0.75, 0.5, 0.25
    c = Case("lion.cpp", blocks=3)
    master, grad, momentum = c.normal("f32", n), c.normal("bf16", n), c.normal("f32", n)
    sign = lambda x: (x > 0) - (x < 0)
    update = [sign(beta1 * m + (1 - beta1) * g) for m, g in zip(momentum, grad)]
    after = [p * (1 - lr * decay) - lr * u for p, u in zip(master, update)]
    c.output("param", "bf16", [n], after, 2**-8, 1e-6)
    c.output("master", "f32", [n], after, 1e-6, 1e-6, before=master)
    c.input("grad", "bf16", [n], grad)
    c.output("momentum", "f32", [n], [beta2 * m + (1 - beta2) * g for m, g in zip(momentum, grad)], 1e-6, 1e-6, before=momentum)
    c.workspace()
    c.tiling(("u32", n), ("u32", 128), ("f32", lr), ("f32", beta1), ("f32", beta2), ("f32", decay))
    yield c
