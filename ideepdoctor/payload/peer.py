"""What the workers of bench share: the network of a request, the seed, the number of threads. A part of payloads."""

import os
import re

from nets import NETS, flops_of, parameters_of
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


def net_of(request):
    """The network that a request names."""
    if request["net"] not in NETS:
        raise CannotDo("there is no network %s; there are %s" % (request["net"], ", ".join(sorted(NETS))))
    return NETS[request["net"]]()


def asked_net(request, who):
    """The network that a request to load names, the number of images, and what a worker tells of it in any case."""
    if request.get("model"):
        raise CannotDo("%s cannot run a model of Chainer" % who)
    net, batch = net_of(request), int(request["batch"])
    told = {"parameters": sum(parameters_of(net).values()), "flops": flops_of(net, batch), "batch": batch}
    return net, batch, dict(told, used=None, guard=False, loss=None)
