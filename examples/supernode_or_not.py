#!/usr/bin/python3
"""supernode_or_not.py [--ranks N,N] [--batches N,..]: tokens/s of a card in decode, on servers joined by RoCE and on a supernode.

The press has 600 tokens/s a card without a supernode (a token in 100 ms) and 2,300 with one (in less than 50 ms), of
DeepSeek-R1; model, lengths and deployment are not stated. Here dispatch and combine are simulated on both machines. The rest of
a layer is what its bytes take at 0.84 of a die's memory bandwidth, the same formula on both: experts of a rank (44.04 MB each),
attention's weights (187 MB) and the cache (1,152 B a token). One token a step is predicted ahead and is right in 70 %.
"""
import argparse
import json
import subprocess

LAYERS, EXPERTS, EXPERT_MB, ATTENTION_MB, CACHE_B, MEMORY_GB_S = 61, 256, 44.04, 187, 1152, 0.84 * 1600
TOKENS_A_STEP = 1.7
MACHINES = {  # name: options, dies of a card, the press's figure and its time per token in ms
    "servers": (["--machine", "atlas-800i-a2"], 1, 600, 100),
    "supernode": (["--machine", "cloudmatrix384"], 2, 2300, 50),
}


def simulate(study, options, ranks, batch):
    options = options + (["--supernodes", str(ranks // 8)] if "atlas-800i-a2" in options else [])
    command = ["cm384", "run", study, *options, "--ranks", str(ranks), "--batch", str(batch), "--format", "json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["rows"]
    return rows[0]["latency_us"]["mean"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="16,16", help="without and with a supernode; servers have 8")
    parser.add_argument("--batches", default="8,16", help="tokens of a die in a step, two for a request")
    parser.add_argument("--context", type=int, default=4096, help="tokens of a request in the cache")
    arguments = parser.parse_args()
    ranks = [int(n) for n in arguments.ranks.split(",")]
    print("machine    ranks  batch  dispatch_us  combine_us  memory_us  tpot_ms  tokens_s_card  press")
    for (name, (options, dies, press, most)), count in zip(MACHINES.items(), ranks):
        for batch in (int(n) for n in arguments.batches.split(",")):
            dispatch, combine = (simulate(study, options, count, batch) for study in ("dispatch", "combine"))
            cache = batch / 2 * arguments.context * CACHE_B * 1e-6
            memory = (EXPERTS / count * EXPERT_MB + ATTENTION_MB + cache) / MEMORY_GB_S * 1e3
            step_ms = LAYERS * (dispatch + combine + memory) * 1e-3
            rate = dies * batch / 2 * TOKENS_A_STEP / step_ms * 1e3
            token_ms = step_ms / TOKENS_A_STEP
            within = f"{press}" if token_ms <= most else f"{press} (slower than its {most} ms)"
            print(f"{name:9} {count:6} {batch:6} {dispatch:12.1f} {combine:11.1f} {memory:10.1f} {token_ms:8.1f} {rate:14.0f}  {within}")


main()
