#!/usr/bin/python3
"""slowest.py DIR...: the slowest row of each finished run, from its result.json."""
import json
import pathlib
import sys

for name in sys.argv[1:]:
    result = json.loads((pathlib.Path(name) / "result.json").read_text())
    row = max(result["rows"], key=lambda row: row["latency_us"]["mean"])
    print(f"{name}: {row['ranks']} ranks, mean {row['latency_us']['mean']:.1f} us, p99 {row['latency_us']['p99']:.1f} us")
