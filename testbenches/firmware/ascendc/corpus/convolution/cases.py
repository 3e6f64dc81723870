from harness import Case, f16, silu


def conv(label, c1, height, width, cout, kernel, stride, pad, dilation):
    """NC1HWC0, two pictures."""
    reach = dilation * (kernel - 1) + 1
    out_h, out_w = (height + 2 * pad - reach) // stride + 1, (width + 2 * pad - reach) // stride + 1
    c = Case("conv2d.cpp", label, blocks=2)
    channels = c1 * 16
    x = c.input("x", "f16", [2, c1, height, width, 16], [float(v) for v in c.whole(2 * channels * height * width, -3, 3)])
    w = {(o, i, a, b): float(c.draw.randint(-3, 3)) for o in range(cout) for i in range(channels) for a in range(kernel) for b in range(kernel)}
    order = [(part, a, b) for part in range(c1) for a in range(kernel) for b in range(kernel)]
    # Fractals: 16 of k, then columns in blocks, 16 columns with 16 of k each.
    c.input("w", "f16", [len(order), cout // 16, 16, 16],
            [w[n1 * 16 + n0, part * 16 + k0, a, b] for part, a, b in order for n1 in range(cout // 16) for n0 in range(16) for k0 in range(16)])
    y = []
    for picture in range(2):
        at = lambda i, h, v, p=picture: x[(((p * c1 + i // 16) * height + h) * width + v) * 16 + i % 16]
        for oh in range(out_h):
            for ow in range(out_w):
                for o in range(cout):
                    total = 0.0
                    for a in range(kernel):
                        for b in range(kernel):
                            h, v = oh * stride - pad + a * dilation, ow * stride - pad + b * dilation
                            if 0 <= h < height and 0 <= v < width:
                                total += sum(w[o, i, a, b] * at(i, h, v) for i in range(channels))
                    y.append(total)
    c.output("y", "f32", [2, out_h, out_w, cout], y)
    c.workspace()
    c.tiling(*(("u32", v) for v in (c1, height, width, out_h, out_w, cout, kernel, stride, pad, dilation)))
    return c


def cases():
    yield conv("1x1", 1, 4, 4, 16, 1, 1, 0, 1)
    yield conv("3x3", 1, 5, 6, 16, 3, 1, 1, 1)
    yield conv("stride", 2, 7, 6, 16, 2, 2, 0, 1)
    yield conv("dilation", 1, 7, 7, 32, 3, 2, 2, 2)

    tokens, channels = 6, 128
    c = Case("causal_conv1d.cpp", blocks=2)
    x = c.input("x", "f16", [tokens, channels], c.normal("f16", tokens * channels))
    w = c.input("w", "f32", [4, channels], c.normal("f32", 4 * channels))
    bias = c.input("bias", "f32", [channels], c.normal("f32", channels))
    before = c.normal("f16", 3 * channels)
    all_rows = before + x
    c.output("state", "f16", [3, channels], all_rows[-3 * channels :], before=before)
    y = [silu(bias[i] + sum(w[j * channels + i] * all_rows[(t + j) * channels + i] for j in range(4))) for t in range(tokens) for i in range(channels)]
    c.output("y", "f16", [tokens, channels], y, 2**-10, 1e-6)
    c.workspace()
    c.tiling(("u32", tokens), ("u32", channels), ("u32", 64))
    yield c

    rows, width = 4, 32
    c = Case("max_pool.cpp", blocks=2)
    x = c.input("x", "f16", [rows, width, 16], c.normal("f16", rows * width * 16))
    at = lambda r, v, i: x[(r * width + v) * 16 + i]
    places = [(r, v, i) for r in range(0, rows, 2) for v in range(0, width, 2) for i in range(16)]
    c.output("most", "f16", [rows // 2, width // 2, 16], [max(at(r, v, i), at(r, v + 1, i), at(r + 1, v, i), at(r + 1, v + 1, i)) for r, v, i in places])
    mean = [f16(f16(f16(at(r, v, i) + at(r + 1, v, i)) + f16(at(r, v + 1, i) + at(r + 1, v + 1, i))) * 0.25) for r, v, i in places]
    c.output("mean", "f16", [rows // 2, width // 2, 16], mean)
    c.workspace()
    c.tiling(("u32", rows), ("u32", width))
    yield c
