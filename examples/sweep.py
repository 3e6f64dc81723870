"""sweep.py: dispatch over link rates, as a pandas frame and as a page of pictures."""
import cm384

rows = cm384.sweep("examples/sweeps/rates.toml", out="rates_from_python")
table = rows.pivot(index="ub.link.bandwidth_GBps", columns="ub.link.endpoint_latency_ns", values="latency_us.mean")
print(f"mean latency, {cm384.unit('latency_us')}")
print(table.round(2).to_string())
print(*cm384.report("rates_from_python"))
