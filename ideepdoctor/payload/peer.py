"""What the workers of bench share that compare something else with Chainer: a part of payloads."""

import os
import re

from nets import NETS, parameters_of, work_of
from talk import CannotDo

SEED = 20180  # of weights and data: the same in every engine and run
EPSILON, DECAY = 2e-5, 0.9  # of Chainer's batch normalization


def threads_allowed():
    """Threads that this process may use: OMP_NUM_THREADS, else as many as CPUs are open to it."""
    asked = re.match(r"\s*(\d+)", os.environ.get("OMP_NUM_THREADS", ""))
    if asked and int(asked.group(1)) > 0:
        return int(asked.group(1))
    affinity = getattr(os, "sched_getaffinity", None)
    if affinity is not None:
        return len(affinity(0))
    import multiprocessing

    return multiprocessing.cpu_count()


def asked_net(request, who):
    """The network that a request to load names, the number of images, and what a worker tells of it in any case."""
    if request.get("model"):
        raise CannotDo("%s cannot run a model of Chainer" % who)
    if request["net"] not in NETS:
        raise CannotDo("there is no network %s; there are %s" % (request["net"], ", ".join(sorted(NETS))))
    net, batch = NETS[request["net"]](), int(request["batch"])
    work = work_of(net)
    flops = [float(batch * sum(pair[place] for pair in work.values())) for place in (0, 1)]
    told = {"parameters": sum(parameters_of(net).values()), "flops": flops, "batch": batch}
    return net, batch, dict(told, used=None, guard=False, loss=None)
