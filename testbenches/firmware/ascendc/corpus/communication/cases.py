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
