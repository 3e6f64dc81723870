from harness import Case


def cases():
    ranks, count = 4, 16
    c = Case("all_to_all_windows.cpp", blocks=2, ranks=ranks)
    c.buffer("window", "u8", [1024 + ranks * count * 4])
    c.context(window_in="window", window_out="window")
    send = c.input("send", "i32", [ranks, count], c.whole(ranks * ranks * count, -(2**31), 2**31 - 1))
    at = lambda source, target: (source * ranks + target) * count
    c.output("recv", "i32", [ranks, count], [v for t in range(ranks) for s in range(ranks) for v in send[at(s, t) : at(s, t) + count]])
    c.workspace()
    c.tiling(("bytes", 64 + 280), ("u32", count), ("u32", 3))
    yield c

    ranks, count = 4, 128
    c = Case("reduce_scatter_read.cpp", blocks=2, ranks=ranks)
    c.buffer("window", "u8", [512 + ranks * count * 4])
    c.context(window_in="window", window_out="window")
    x = c.input("x", "f32", [ranks, count], [float(v) for v in c.whole(ranks * ranks * count, -999, 999)])
    c.output("y", "f32", [count], [sum(x[(r * ranks + t) * count + i] for r in range(ranks)) for t in range(ranks) for i in range(count)])
    c.workspace()
    c.tiling(("u32", count), ("u32", 64))
    yield c

    # Collectives that the kernel asks for, in tiles, at once, launched twice: 4 and 3 ranks.
    for label, ranks, count, repeat, kind in (("", 4, 64, 2, "f32"), ("half", 3, 48, 1, "f16"), ("int32", 8, 32, 4, "i32"), ("int8", 2, 1024, 1, "i8")):
        names = {"f32": ("float", "FP32"), "f16": ("half", "FP16"), "i32": ("int32_t", "INT32"), "i8": ("int8_t", "INT8")}[kind]
        c = Case("collectives.cpp", label, blocks=2, ranks=ranks, define=(f"ITEM={names[0]}", f"ITEM_TYPE=HcclDataType::HCCL_DATA_TYPE_{names[1]}"))
        c.launches = 2
        c.buffer("window", "u8", [1024])
        c.context(window_in="window")
        most = 10 if kind == "i8" else 100
        x = c.input("x", kind, [ranks, count], [v if kind[0] == "i" else float(v) for v in c.whole(ranks * ranks * count, -most, most)])
        of = lambda rank, first, number: x[rank * ranks * count + first : rank * ranks * count + first + number]
        # Rank r sends (r + p) % 3 * 8 elements to rank p.
        send = lambda r, p: (r + p) % 3 * 8
        table = []
        for r in range(ranks):
            table += [send(r, p) for p in range(ranks)] + [p * count for p in range(ranks)]
            table += [send(p, r) for p in range(ranks)] + [p * count for p in range(ranks)]
        c.input("counts", "u64", [4, ranks], table)
        everyone = range(ranks)
        c.output("gathered", kind, [ranks, count], [v for _ in everyone for r in everyone for v in of(r, 0, count)])
        c.output("reduced", kind, [ranks, count], [sum(of(r, i, 1)[0] for r in everyone) for _ in everyone for i in range(ranks * count)])
        c.output("scattered", kind, [count], [max(of(r, t * count + i, 1)[0] for r in everyone) for t in everyone for i in range(count)])
        exchanged = [v for t in everyone for r in everyone for v in of(r, t * count, count)]
        c.output("exchanged", kind, [ranks, count], exchanged)
        c.output("dealt", kind, [ranks, count], [v for t in everyone for r in everyone for v in of(r, t * count, send(r, t)) + [0] * (count - send(r, t))])
        c.buffer("seen", kind, [2, 32 // {"f32": 4, "f16": 2, "i32": 4, "i8": 1}[kind]])
        c.arguments.append('"seen"')
        ends = [exchanged[(t + 1) * ranks * count - 32 // {"f32": 4, "f16": 2, "i32": 4, "i8": 1}[kind] : (t + 1) * ranks * count] for t in everyone]
        c.check("seen", kind, [2, len(ends[0])], [v for t in everyone for _ in range(2) for v in ends[t]])
        c.workspace()
        c.tiling(("bytes", 64 + 280), ("u32", count), ("u32", repeat))
        yield c
