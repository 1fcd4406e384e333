"""Whether a model server computes: by its own word where it has one, else by the time that its processes took."""
import json
import os
import time
import urllib.request

# An idle server takes less than this part of a core.
IDLE_SHARE = 0.3
GLANCE_S = 0.1


class Occupied:
    def __init__(self, server, how, pid):
        """`how` is `slots` (llama.cpp), the name of a gauge in `/metrics`, or `processor`."""
        self.server, self.how, self.pid = server, how, pid

    def read(self, path):
        with urllib.request.urlopen(self.server + path, timeout=10) as answer:
            return answer.read().decode()

    def __call__(self):
        if self.how == "slots":
            return any(slot["is_processing"] for slot in json.loads(self.read("/slots")))
        if self.how == "processor":
            before = self.seconds()
            time.sleep(GLANCE_S)
            return self.seconds() - before > GLANCE_S * IDLE_SHARE
        gauges = [line for line in self.read("/metrics").splitlines() if line.startswith(self.how)]
        assert gauges, f"no gauge {self.how}"
        return any(float(line.rsplit(" ", 1)[1]) > 0 for line in gauges)

    def seconds(self):
        """What the process and its descendants took of the processor."""
        parents, taken = {}, {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(name)], taken[int(name)] = int(fields[1]), int(fields[11]) + int(fields[12])
        def belongs(pid):
            while pid and pid != self.pid:
                pid = parents.get(pid, 0)
            return bool(pid)
        return sum(taken[pid] for pid in taken if belongs(pid)) / os.sysconf("SC_CLK_TCK")

    def until(self, wanted, seconds):
        """Waits until the server computes, or until it does not."""
        end = time.monotonic() + seconds
        while self() != wanted:
            assert time.monotonic() < end, f"not {'occupied' if wanted else 'idle'} within {seconds} s"
            time.sleep(0.02)
