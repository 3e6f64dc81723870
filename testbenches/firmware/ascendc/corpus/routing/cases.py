from harness import Case, softmax


def cases():
    tokens, experts, k = 5, 128, 4
    c = Case("gating_top_k.cpp", blocks=3)
    scores = c.input("scores", "f32", [tokens, experts], c.normal("f32", tokens * experts, 2))
    weights, ids = [], []
    for t in range(tokens):
        p = softmax(scores[t * experts : (t + 1) * experts])
        best = sorted(range(experts), key=lambda e: -p[e])[:k]
        ids += best
        weights += [p[e] / sum(p[b] for b in best) for e in best]
    c.output("weights", "f32", [tokens, k], weights, 1e-5)
    c.output("ids", "i32", [tokens, k], ids)
    c.workspace()
    c.tiling(("u32", tokens), ("u32", experts), ("u32", k), ("u32", 2))
    yield c

    tokens, k, experts, hidden = 11, 2, 8, 64
    c = Case("init_routing.cpp", blocks=3)
    x = c.input("x", "f16", [tokens, hidden], c.normal("f16", tokens * hidden))
    ids = c.input("ids", "i32", [tokens, k], c.whole(tokens * k, 0, experts - 1))
    order = sorted(range(tokens * k), key=lambda i: ids[i])
    c.output("sorted", "f16", [tokens * k, hidden], [v for i in order for v in x[i // k * hidden : (i // k + 1) * hidden]])
    c.output("places", "i32", [tokens, k], [order.index(i) for i in range(tokens * k)])
    c.output("ends", "i32", [experts], [sum(e <= which for e in ids) for which in range(experts)])
    c.workspace(3 * experts * 4)
    c.tiling(*(("u32", v) for v in (tokens, k, experts, hidden, 4)))
    yield c

    tokens, k, experts, hidden = 5, 2, 4, 64
    for kind, dtype, rtol in (("f16", "half", 2**-10), ("bf16", "bfloat16_t", 2**-8)):
        c = Case("finalize_routing.cpp", kind, blocks=2, define=[f"DTYPE_Y={dtype}"])
        rows = c.input("rows", kind, [tokens * k, hidden], c.normal(kind, tokens * k * hidden))
        skip = c.input("skip", kind, [tokens, hidden], c.normal(kind, tokens * hidden))
        bias = c.input("bias", kind, [experts, hidden], c.normal(kind, experts * hidden))
        weights = c.input("weights", "f32", [tokens, k], c.uniform("f32", tokens * k, 0, 1))
        places = list(range(tokens * k))
        c.draw.shuffle(places)
        places[3] = -1
        c.input("places", "i32", [tokens, k], places)
        ids = c.input("ids", "i32", [tokens, k], c.whole(tokens * k, 0, experts - 1))
        y = []
        for t in range(tokens):
            for h in range(hidden):
                chosen = [i for i in range(t * k, t * k + k) if places[i] >= 0]
                y.append(skip[t * hidden + h] + sum(weights[i] * (rows[places[i] * hidden + h] + bias[ids[i] * hidden + h]) for i in chosen))
        c.output("y", kind, [tokens, hidden], y, rtol, 1e-6)
        c.workspace()
        c.tiling(("u32", tokens), ("u32", k), ("u32", hidden))
        yield c
