from harness import Case, cube_tiling, softmax


def attend(q, keys, values, scale):
    p = softmax([sum(a * b for a, b in zip(q, k)) * scale for k in keys])
    return [sum(w * v[i] for w, v in zip(p, values)) for i in range(len(q))]


def rows_of(flat, d):
    return [flat[i : i + d] for i in range(0, len(flat), d)]


def cases():
    heads, queries, keys, d, piece = 2, 16, 64, 64, 32
    c = Case("flash_attention.cpp", blocks=2)
    q = c.input("q", "f16", [heads, 2 * queries, d], c.normal("f16", heads * 2 * queries * d))
    k = c.input("k", "f16", [heads, keys, d], c.normal("f16", heads * keys * d))
    v = c.input("v", "f16", [heads, keys, d], c.normal("f16", heads * keys * d))
    out = []
    for h in range(heads):
        of_head = [rows_of(t, d)[h * keys : (h + 1) * keys] for t in (k, v)]
        for row in rows_of(q, d)[h * 2 * queries : (h + 1) * 2 * queries]:
            out += attend(row, *of_head, d**-0.5)
    # Probabilities of half.
    c.output("out", "f16", [heads, 2 * queries, d], out, 2**-9, 2e-3)
    c.workspace(4 * (queries * (piece + d) * 4 + queries * piece * 2))
    c.tiling(*cube_tiling(queries, piece, d, (16, 32, 32)), *cube_tiling(queries, d, piece, (16, 64, 32)), *(("u32", 0) for _ in range(16)),
             *(("u32", x) for x in (heads, queries, keys, d, piece)), ("f32", d**-0.5))
    yield c

    batch, heads, kv_heads, block, most, blocks = 2, 4, 2, 16, 3, 6
    c = Case("paged_decode.cpp", blocks=3)
    q = c.input("q", "f16", [batch, heads, d], c.normal("f16", batch * heads * d))
    cache = [c.input(name, "f16", [blocks, block, kv_heads, d], c.normal("f16", blocks * block * kv_heads * d)) for name in "kv"]
    table, lengths = [5, 0, 3, 2, 4, 1], [37, 16]
    c.input("table", "i32", [batch, most], table)
    c.input("lengths", "i32", [batch], lengths)
    y = []
    for s in range(batch):
        for h in range(heads):
            place = lambda t, s=s, h=h: ((table[s * most + t // block] * block + t % block) * kv_heads + h // (heads // kv_heads)) * d
            of_head = [[flat[place(t) : place(t) + d] for t in range(lengths[s])] for flat in cache]
            y += attend(q[(s * heads + h) * d : (s * heads + h + 1) * d], *of_head, d**-0.5)
    c.output("y", "f16", [batch, heads, d], y, 2**-10, 1e-5)
    c.workspace()
    c.tiling(*(("u32", x) for x in (batch, heads, kv_heads, d, block, most)), ("f32", d**-0.5))
    yield c

    tokens, row, slots = 6, 64, 12
    c = Case("reshape_and_cache.cpp", blocks=2)
    places = [3, 11, -1, 0, 7, 4]
    new = [c.input(name, "f16", [tokens, row], c.normal("f16", tokens * row)) for name in ("key", "value")]
    for name, rows in zip(("keyCache", "valueCache"), new):
        before = c.normal("f16", slots * row)
        after = list(before)
        for t, slot in enumerate(places):
            if slot >= 0:
                after[slot * row : (slot + 1) * row] = rows[t * row : (t + 1) * row]
        c.output(name, "f16", [slots, row], after, before=before)
    c.input("slots", "i64", [tokens], places)
    c.tiling(("u32", tokens), ("u32", row))
    yield c
