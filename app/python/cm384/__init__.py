"""The command `cm384` from Python: runs and sweeps whose rows come back as pandas frames.

    import cm384
    rows = cm384.run("dispatch", ranks=[8, 64], set={"ub.link.bandwidth": "14GB/s"})
    rows.plot(x="ranks", y="latency_us.mean")

Every simulation is a process of the command; there is no model code here. Options are those of the command,
with underscores for hyphens. Columns are named as `cm384 ... --format csv` names them, units included.
"""

from ._api import compare, machine, report, run, sweep
from ._errors import Error, Interrupted
from ._files import read, store
from ._frames import unit
from ._kernel import Kernel, kernel
from ._program import program

__all__ = ["Error", "Interrupted", "Kernel", "compare", "kernel", "machine", "program", "read", "report", "run", "store", "sweep", "unit"]
