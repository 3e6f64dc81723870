#!/usr/bin/python3
"""which_model.py [--npus N] [--tpot MS] [--models NAME,..] [--batches N,..]: which model decodes most tokens within a time per token.

Each model is decoded on two dies per NPU: one with experts over all of them (`--ranks`), a dense one in groups of --dense-dies
that share its heads and its network, as many groups as there are. The row of a model is its largest batch that the dies have
memory for and that keeps --tpot, at --context tokens of a request in the cache; weights are INT8 but for the head. Every batch is
a run on all the dies, which takes minutes on 128 of them: --measured FILE keeps the times of parts for the next call.
"""
import argparse
import json
import subprocess

MODELS = "deepseek-r1,kimi-k2,qwen3-235b-a22b,glm-4.5,gpt-oss-120b,qwen3-32b,llama-3.3-70b"


def is_dense(model):
    facts = json.loads(subprocess.run(["cm384", "model", "show", model, "--format", "json"], check=True, capture_output=True, text=True).stdout)
    return not any(fact["key"] == "experts.routed" and fact["value"] > 0 for fact in facts["facts"])


def decode(model, dies, batch, arguments):
    """The row, or the line that refuses it."""
    command = ["cm384", "run", "decode", "--model", model, "--ranks", str(dies), "--batch", str(batch), "--kv", str(arguments.context),
               "--detail-dies", "1", "--layers", "2", "--format", "json"]
    done = subprocess.run(command + (["--measured", arguments.measured] if arguments.measured else []), check=False, capture_output=True, text=True)
    if done.returncode == 2:
        return None, done.stderr.strip().splitlines()[-1].removeprefix("cm384: ")
    done.check_returncode()
    return json.loads(done.stdout)["rows"][0], ""


def best_of(model, arguments):
    """The last batch that fits and is fast enough, and why the next one is not."""
    dies, best, why = 2 * arguments.npus, None, ""
    if is_dense(model):
        dies = min(dies, arguments.dense_dies)
    for batch in sorted(int(n) for n in arguments.batches.split(",")):
        row, why = decode(model, dies, batch, arguments)
        if row is None:
            if best:
                break
            continue  # a die may have too few requests for its microbatches
        if row["tpot_ms"] > arguments.tpot:
            why = f"batch {batch} takes {row['tpot_ms']:.1f} ms"
            break
        best = row
    return dies, best, why


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--npus", type=int, default=64)
    parser.add_argument("--tpot", type=float, default=50, help="ms per output token, at most")
    parser.add_argument("--models", default=MODELS, help="of `cm384 model list`, a config.json or a TOML")
    parser.add_argument("--batches", default="8,16,32,64,96,128", help="requests per NPU")
    parser.add_argument("--context", type=int, default=4096, help="tokens of a request in the cache")
    parser.add_argument("--dense-dies", type=int, default=8, help="that share a dense model")
    parser.add_argument("--measured", help="a file that keeps times of parts")
    arguments = parser.parse_args()
    print("model             dies  batch  tpot_ms  tokens_s  tokens_s_tflops  die_GB  limit")
    for model in arguments.models.split(","):
        dies, row, why = best_of(model, arguments)
        if row is None:
            print(f"{model:16} {dies:5}      -        -         -                -       -  {why}")
            continue
        print(f"{model:16} {dies:5} {row['batch']:6} {row['tpot_ms']:8.1f} {row['tokens_s_npu'] * arguments.npus:9.0f}"
              f" {row['tokens_s_tflops']:16.3f} {row['weights_GB'] + row['cache_GB']:7.1f}  {why}")


main()
