"""What is true of this interpreter and its machine, told in raw texts: nothing is judged or interpreted here.

Runs inside the target (Python 2.7, 3.5 and later), started as ``python -B -E -s - COOKIE REQUEST`` with this file on
standard input. REQUEST is URL-safe base64 of a JSON object:
    phase            "static" or "full" (imports too)
    quick            compare the files of ideep4py by size alone
    emulator         words to put before the interpreter for children
    timeout_seconds  for each child
    cwd              folder in which the user would start Python (optional)
    loader_variables those of the user's variables that this process was started without (optional)
Answers with COOKIE json COOKIE. Whatever can die (CPUID, imports, the first operation) runs in children.

As a file in its folder and without arguments (``python probe.py > facts.json``) it prints the document of ``bare``.
"""

# ruff: noqa: E402, I001
import sys

sys.path[:] = [entry for entry in sys.path if entry != ""]  # a json.py in the current folder must not be taken
if __name__ == "__main__" and len(sys.argv) == 1:
    sys.dont_write_bytecode = True
    try:
        print_document = __import__("bare").main  # no part of this payload: only a file beside it can have it
    except ImportError:
        sys.exit("error  this probe.py needs the files beside it; one that is whole: ideepdoctor probe > probe.py")
    sys.exit(print_document())

import base64
import csv
import hashlib
import os
import re
import struct
import sysconfig
import threading
import time
from functools import partial

from common import (
    CHILD,
    FOLLOWING,
    DUMPING,
    Child,
    after_death,
    answer_with,
    begin,
    python_child,
    text,
)
from distributions import conda_packages, distributions, read
from host_limits import EXECUTABLE, executable_memory, host_limits
from pip_settings import pip_settings
from surroundings import inherited_environment

ALLOWED_PREFIXES = ("CHAINER_", "DNNL_", "GOMP_", "KMP_", "MALLOC_", "MKL_", "MKLDNN_", "OMP_", "ONEDNN_", "OPENBLAS_")
ALLOWED_NAMES = frozenset(
    (
        "CONDA_PREFIX",
        "GLIBC_TUNABLES",
        "IDEEPDOCTOR_GUARD",
        "IDEEPDOCTOR_SET",
        "LD_AUDIT",
        "LD_BIND_NOW",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "NUMEXPR_NUM_THREADS",
        "PYTHONHOME",
        "PYTHONNOUSERSITE",
        "PYTHONPATH",
        "PYTHONSAFEPATH",
        "PYTHONWARNINGS",
        "SLURM_CPUS_PER_TASK",
        "SLURM_CPUS_ON_NODE",
        "VIRTUAL_ENV",
    )
)
NEEDED = ("numpy", "chainer", "ideep4py", "six", "filelock", "google.protobuf", "typing_extensions")
TEXT_LIMIT = 4000

# Which modules come from the current folder, PYTHONPATH or the user site although the environment or the standard
# library has them: a set of (module, path, source).
SHADOWS = r"""
names = arguments[0].split(",")
try:
    folder = os.getcwd()
except OSError:
    folder = None
def real(path):
    return os.path.realpath(path)
def listing(folder, known={}):
    if folder not in known:
        try:
            known[folder] = frozenset(os.listdir(folder))
        except OSError:
            known[folder] = frozenset()
    return known[folder]
def packaged(entry):
    return os.path.basename(entry) in ("site-packages", "dist-packages")
def installed():
    version = "python%d.%d" % sys.version_info[:2]
    prefixes = [sys.prefix, sys.exec_prefix, getattr(sys, "base_prefix", None), getattr(sys, "real_prefix", None)]
    found = [os.path.dirname(os.__file__)]
    found += [os.path.join(prefix, lib, version) for prefix in prefixes if prefix for lib in ("lib", "lib64")]
    return set(real(os.path.join(one, inner)) for one in found
               for inner in ("", "lib-dynload", "site-packages", "dist-packages"))
site = sys.modules.get("site")
suspects = [(folder, "current folder")] if first and folder else []
suspects += [(os.path.abspath(entry), "PYTHONPATH")
             for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and folder]
if getattr(site, "ENABLE_USER_SITE", None):
    suspects.append((site.USER_SITE, "user site"))
# A current folder or PYTHONPATH entry that is the installation's own hides nothing.
always = installed()
suspects = [(entry, source) for entry, source in suspects if real(entry) not in always]
doubtful = set(real(entry) for entry, source in suspects)
own = [entry for entry in (real(one) for one in sys.path if one) if entry not in doubtful]
stdlib = set(one.split(".")[0] for entry in own if not packaged(entry) for one in listing(entry))
def twin(entry, name):
    parent = os.path.join(entry, *name.split(".")[:-1])
    last = name.split(".")[-1]
    found = listing(parent)
    if last in found and os.path.exists(os.path.join(parent, last, "__init__.py")):
        return os.path.join(parent, last, "__init__.py")
    if last + ".py" in found:
        return os.path.join(parent, last + ".py")
    for one in found:
        if one.startswith(last + ".") and one.endswith(".so"):
            return os.path.join(parent, one)
def counts(name, source):
    if name in names:
        return source == "current folder" or any(twin(entry, name) for entry in own if packaged(entry))
    if name not in stdlib or name in sys.builtin_module_names:
        return False
    return any(twin(entry, name) for entry in own if not packaged(entry))
def taken(name, path):
    if not path or name == "__main__" or not ("." not in name or name in names):
        return None
    path = os.path.abspath(path)
    place = os.path.splitext(path)[0]
    if os.path.basename(place) == "__init__":
        place = os.path.dirname(place)
    for _ in name.split("."):
        place = os.path.dirname(place)
    for entry, source in suspects:
        if place == entry and counts(name, source):
            return (name, path, source)
def hidden():
    seen = set(taken(name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    # What failed to import is not in sys.modules; the traceback has been through it.
    for path in trail:
        for entry, source in suspects:
            if path.startswith(entry + os.sep):
                name = path[len(entry) + 1:].split(os.sep)[0].split(".")[0]
                if counts(name, source):
                    seen.add((name, path, source))
    return sorted(one for one in seen if one)
def possible():
    seen = set()
    for entry, source in suspects:
        for name in set(one.split(".")[0] for one in listing(entry)):
            path = twin(entry, name) if name in names or name in stdlib else None
            if path and counts(name, source):
                seen.add((name, path, source))
    return sorted(seen)
"""

LOOK = (
    CHILD
    + SHADOWS
    + r"""
guard = [os.path.join(one, "_ideepdoctor_guard.py") for one in sys.path]
profile = [os.path.join(one, "_ideepdoctor_profile.json") for one in sys.path]
tell("look", {"path": ([""] if first else []) + sys.path, "environment": dict(os.environ),
              "guard": ([one for one in guard if os.path.isfile(one)] or [None])[0],
              "guard_choice": getattr(sys.modules.get("_ideepdoctor_startup"), "GUARD", None),
              "profile": ([one for one in profile if os.path.isfile(one)] or [None])[0],
              "user_site": getattr(site, "USER_SITE", None),
              "possible": [one for one in possible() if one[0] in names]})
"""
)

# Machine code for x86-64, System V calling convention.
# cpuid(leaf, subleaf, out): push rbx; mov eax, edi; mov ecx, esi; mov r8, rdx; cpuid; four stores to r8; pop rbx; ret
# xgetbv(index, out): mov ecx, edi; mov r8, rsi; xgetbv; two stores to r8; ret
CPUID = (
    CHILD
    + EXECUTABLE
    + r"""
import ctypes
import mmap
code = (b"\x53\x89\xf8\x89\xf1\x49\x89\xd0\x0f\xa2\x41\x89\x00\x41\x89\x58\x04\x41\x89\x48\x08\x41\x89\x50\x0c\x5b\xc3",
        b"\x89\xf9\x49\x89\xf0\x0f\x01\xd0\x41\x89\x00\x41\x89\x50\x04\xc3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code[0])
page.seek(64)
page.write(code[1])
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
number = ctypes.c_uint32
registers = (number * 4)()
run = ctypes.CFUNCTYPE(None, number, number, ctypes.c_void_p)(start)
lines = []
def leaf(index, sub=0):
    run(index, sub, ctypes.addressof(registers))
    lines.append("%08x %x %08x %08x %08x %08x" % ((index, sub) + tuple(registers)))
    return tuple(registers)
highest = leaf(0)[0]
features = leaf(1)[2]
if highest >= 7 and leaf(7)[0] >= 1:
    leaf(7, 1)
if highest >= 0xd:
    leaf(0xd)
if features >> 27 & 1:
    ctypes.CFUNCTYPE(None, number, ctypes.c_void_p)(start + 64)(0, ctypes.addressof(registers))
    lines.append("xcr0 %08x%08x" % (registers[1], registers[0]))
if features >> 31 & 1:
    leaf(0x40000000)
extended = leaf(0x80000000)[0]
for index in range(0x80000001, 0x80000005):
    if index <= extended:
        leaf(index)
tell("cpuid", "\n".join(lines))
"""
)

# Imports one module as the user's Python would, then what can only be asked of a process that has imported it.
IMPORT = (
    CHILD
    + DUMPING
    + SHADOWS
    + r"""
import warnings
limit = 4000
shown = []
def show(message, category, *rest, **others):
    if len(shown) < 20:
        shown.append("%s: %s" % (category.__name__, text(message)))
warnings.showwarning = show
def text(value):
    try:
        value = str(value)
    except Exception:
        value = repr(value)
    return value[:limit]
trail = []
def stage(name, action):
    started = time.time()
    del shown[:]
    answer = {"ok": False}
    try:
        answer.update(action() or {})
        answer["ok"] = not answer.get("error_type")
    except BaseException as error:
        kind, value, place = sys.exc_info()
        answer.update(error_type=kind.__name__, error_text=text(error))
        while place is not None and place.tb_frame.f_code.co_filename == "<string>":
            place = place.tb_next
        try:
            value.__traceback__ = place
        except (AttributeError, TypeError):
            pass
        sys.__excepthook__(kind, value, place)
        answer["stack"] = []
        while place is not None:
            code = place.tb_frame.f_code
            answer["stack"] = ["%s:%d in %s" % (code.co_filename, place.tb_lineno, code.co_name)] + answer["stack"][:15]
            trail.append(os.path.abspath(code.co_filename))
            place = place.tb_next
        if kind is SyntaxError and value.filename:
            trail.append(os.path.abspath(value.filename))
        place = None
    answer["seconds"] = time.time() - started
    answer["warnings"] = list(shown)
    try:
        sys.stderr.flush()
    except Exception:
        pass
    os.write(err, cookie.encode("ascii"))
    tell(name, answer)
    return answer["ok"]
def load(name):
    def action():
        __import__(name)
        module = sys.modules[name]
        version = getattr(module, "__version__", None)
        return {"version": None if version is None else text(version), "path": getattr(module, "__file__", None)}
    return action
def first_op():
    import numpy
    import ideep4py
    given = numpy.linspace(-1, 1, 64).astype("float32").reshape(8, 8)
    made = numpy.array(ideep4py.relu.Forward(ideep4py.array(given)))
    if not (made == numpy.maximum(given, 0)).all():
        return {"error_type": "WrongNumbers", "error_text": "relu differs from NumPy's"}
def ask(part, action):
    try:
        return action(), None
    except BaseException as error:
        return None, "%s: %s" % (part, text(error))
def chainer_state():
    import chainer
    from chainer.backends import intel64
    use, problem = ask("use_ideep", lambda: text(chainer.config.use_ideep))
    dtype = getattr(chainer.config, "dtype", None)
    if dtype is not None:
        import numpy
        try:
            dtype = "mixed16" if dtype is getattr(chainer, "mixed16", chainer) else numpy.dtype(dtype).name
        except TypeError:
            dtype = text(dtype)
    available, problem = ask("is_ideep_available", lambda: bool(intel64.is_ideep_available()))
    if not available:
        check = getattr(intel64, "check_ideep_available", None)
        if check is not None:
            problem = ask("", check)[1] or problem
    guard = sys.modules.get("_ideepdoctor_guard")
    return {"use_ideep": use, "dtype": dtype, "ideep_available": available,
            "ideep_reason": (problem or "").lstrip(": ") or None, "guard": guard and ask("guard", guard.status)[0]}
def maps():
    try:
        with open("/proc/self/maps") as stream:
            return sorted(set(line.split(None, 5)[5].strip() for line in stream if ".so" in line and "/" in line))
    except (IOError, OSError, IndexError):
        return []
tell("possible", possible())
if first:
    sys.path.insert(0, "")
module = arguments[1]
# FOLLOWING
fine = stage("import", load(module))
tell("after", {"maps": maps(), "shadows": hidden()})
if fine and module == "ideep4py":
    stage("first_op", first_op)
if fine and module == "chainer":
    tell("chainer", ask("intel64", chainer_state))
    if "caffe" in arguments[2:]:
        stage("caffe", load("chainer.links.caffe"))
"""
)


def wait_all(jobs, at_once, timeout):
    """Start the jobs (pairs of a name and a callable that returns a Child), at most ``at_once`` together; return the
    children by name.
    """
    waiting, running, done = list(jobs), [], {}
    while waiting or running:
        while waiting and len(running) < at_once:
            name, start = waiting.pop(0)
            done[name] = start()
            running.append(done[name])
        running = [child for child in running if not child.over(timeout)]
        time.sleep(0.002 if running else 0)
    return done


def allowed(environment):
    """Return the variables of the allow-list."""
    return dict(
        (name, value)
        for name, value in environment.items()
        if name in ALLOWED_NAMES or name.startswith(ALLOWED_PREFIXES)
    )


def abi_tag():
    """Return the ABI tag that a wheel for this interpreter carries (PEP 425), by the same rules as packaging.tags."""
    version = "%d%d" % sys.version_info[:2]
    if implementation() != "CPython":
        soabi = sysconfig.get_config_var("SOABI") or ""
        return "_".join(soabi.split("-")[:2]) or "none"
    debug = "d" if hasattr(sys, "gettotalrefcount") else ""
    malloc = wide = free = ""
    if sys.version_info < (3, 8):
        malloc = "" if sysconfig.get_config_var("WITH_PYMALLOC") == 0 else "m"
    if sys.version_info < (3, 3):
        wide = "u" if sys.maxunicode == 0x10FFFF else ""
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        free = "t"
    return "cp" + version + free + debug + malloc + wide


def implementation():
    """Return CPython, PyPy..."""
    if "PyPy" in sys.version:
        return "PyPy"
    if "GraalVM" in sys.version:
        return "GraalVM"
    return "CPython"


def base_prefix():
    """Return the prefix of the installation that a virtual environment stands on (old virtualenv: real_prefix)."""
    return getattr(sys, "real_prefix", None) or getattr(sys, "base_prefix", sys.prefix)


def kind():
    """Return what sort of installation this is."""
    prefix = os.path.realpath(sys.prefix)
    if base_prefix() != sys.prefix or os.path.exists(os.path.join(sys.prefix, "pyvenv.cfg")):
        return "venv"
    if os.path.isdir(os.path.join(sys.prefix, "conda-meta")):
        return "conda"
    parts = prefix.split(os.sep)
    if os.path.isdir(os.path.join(os.path.dirname(os.path.dirname(prefix)), "shims")) and parts[-2:-1] == ["versions"]:
        return "pyenv"
    if "/uv/python/" in prefix:
        return "uv"
    return "system" if prefix == "/usr" else "other"


def externally_managed():
    """Return the path of the marker that forbids pip to change this installation; virtual environments are exempt."""
    if kind() == "venv":
        return None
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    return marker if os.path.exists(marker) else None


def first_line_interpreter(path):
    """Return the interpreter that a script's first line starts, also by the sh detour for long paths; or None."""
    lines = (read(path, 4096) or "").splitlines()
    if not lines or not lines[0].startswith("#!"):
        return None
    words = lines[0][2:].split()
    if not words or os.path.basename(words[0]) == "env":
        return None
    if words == ["/bin/sh"] and len(lines) > 1:
        match = re.match(r"""'''exec'\s+(?:"([^"$]+)"|([^\s"$]+))\s""", lines[1])
        return match and (match.group(1) or match.group(2))
    return lines[0][2:].strip() if os.path.exists(lines[0][2:].strip()) else words[0] if words else None


def same_environment(interpreter, scripts):
    """Return whether an interpreter belongs to the environment that this process runs in; None: cannot be told."""
    if interpreter is None or os.path.basename(interpreter) in ("env", "sh", "bash"):
        return None
    if not os.path.exists(interpreter):
        return False
    here = [os.path.dirname(sys.executable), scripts]
    if kind() != "venv":
        here.append(os.path.dirname(os.path.realpath(sys.executable)))
    if os.path.realpath(os.path.dirname(interpreter)) not in [os.path.realpath(folder) for folder in here]:
        return False
    # A folder may hold several Pythons; in an environment made of copies the files differ but are equally long.
    return os.path.realpath(interpreter) == os.path.realpath(sys.executable) or os.path.getsize(
        interpreter
    ) == os.path.getsize(sys.executable)


def pip_scripts(scripts):
    """Return the pip commands of the scripts folder: (path, interpreter, same environment)."""
    found = []
    for name in sorted(os.listdir(scripts)) if os.path.isdir(scripts) else ():
        if re.match(r"pip(\d(\.\d+)?)?$", name):
            path = os.path.join(scripts, name)
            interpreter = first_line_interpreter(path)
            found.append((path, interpreter, same_environment(interpreter, scripts)))
    return found


def python_facts():
    """Return what is known of the interpreter."""
    paths = sysconfig.get_paths()
    return {
        "executable": sys.executable,
        "real_path": os.path.realpath(sys.executable),
        "version": "%d.%d.%d" % sys.version_info[:3],
        "implementation": implementation(),
        "abi": abi_tag(),
        "bits": struct.calcsize("P") * 8,
        "prefix": sys.prefix,
        "base_prefix": base_prefix(),
        "kind": kind(),
        "externally_managed": externally_managed(),
        "purelib": paths.get("purelib"),
        "platlib": paths.get("platlib"),
        "scripts": paths.get("scripts"),
        "pip_scripts": pip_scripts(paths.get("scripts") or ""),
    }


def elf_loader(path):
    """Return the dynamic loader that an ELF program names (PT_INTERP), None for a static program or no ELF."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(64)
            if head[:4] != b"\x7fELF":
                return None
            wide = head[4:5] == b"\x02"
            order = "<" if head[5:6] == b"\x01" else ">"
            offset = struct.unpack_from(order + ("Q" if wide else "I"), head, 32 if wide else 28)[0]
            size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
            for index in range(count):
                stream.seek(offset + index * size)
                entry = stream.read(size)
                if struct.unpack_from(order + "I", entry)[0] == 3:
                    start = struct.unpack_from(order + ("Q" if wide else "I"), entry, 8 if wide else 4)[0]
                    length = struct.unpack_from(order + ("Q" if wide else "I"), entry, 32 if wide else 16)[0]
                    stream.seek(start)
                    return text(stream.read(min(length, 4096)).rstrip(b"\0"))
    except (IOError, OSError, OverflowError, ValueError, struct.error):
        pass
    return None


def cgroup_folders(groups, mounts):
    """Resolve /proc/self/cgroup against /proc/self/mountinfo.

    Returns a list of (version, controller, folder, mount point): version 1 for cpu, memory and pids, and version 2.
    Where the group lies outside what is mounted (a container that sees the host's path) the mount point itself counts.
    """
    own = {}
    for line in groups.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                own[controller] = parts[2]
    found = []
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kinds = left.split(), right.split()
        if len(fields) < 5 or not kinds or kinds[0] not in ("cgroup", "cgroup2"):
            continue
        root, point = [re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), one) for one in fields[3:5]]
        if kinds[0] == "cgroup2":
            controllers = [""]
        else:
            controllers = [one for one in kinds[-1].split(",") if one in ("cpu", "memory", "pids")]
        for controller in controllers:
            path = own.get(controller, "/")
            inside = path[len(root) :] if root != "/" and (path + "/").startswith(root + "/") else path
            folder = os.path.normpath(point + "/" + inside)
            if ".." in inside.split("/") or not os.path.isdir(folder):
                folder = point
            found.append((2 if kinds[0] == "cgroup2" else 1, controller, folder, point))
    return found


def cgroup_texts():
    """Return the limits of every level of this process's control groups, as texts."""
    names = {
        1: ("cpu.cfs_quota_us", "cpu.cfs_period_us", "memory.limit_in_bytes", "pids.max"),
        2: ("cpu.max", "memory.max", "pids.max"),
    }
    levels = []
    for version, controller, folder, point in cgroup_folders(
        read("/proc/self/cgroup") or "", read("/proc/self/mountinfo") or ""
    ):
        while True:
            texts = dict((name, read(os.path.join(folder, name))) for name in names[version])
            texts = dict((name, value) for name, value in texts.items() if value is not None)
            levels.append({"version": version, "controller": controller, "path": folder, "texts": texts})
            if folder == point or len(folder) <= len(point):
                break
            folder = os.path.dirname(folder)
    return levels


def cpuinfo_texts():
    """Return the first processor's block of /proc/cpuinfo, and "number socket core" of every processor."""
    blocks = [block for block in (read("/proc/cpuinfo", 1 << 24) or "").split("\n\n") if block.strip()]
    rows = []
    for block in blocks:
        fields = dict(
            (key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in block.splitlines())
        )
        number = fields.get("processor")
        if number is not None:
            topology = "/sys/devices/system/cpu/cpu%s/topology/" % number
            socket = fields.get("physical id") or (read(topology + "physical_package_id") or "?").strip()
            core = fields.get("core id") or (read(topology + "core_id") or "?").strip()
            rows.append("%s %s %s" % (number, socket, core))
    return blocks[0] if blocks else None, "\n".join(rows)


def machine_texts():
    """Return what the system says of itself, as raw texts."""
    block, topology = cpuinfo_texts()
    names = os.uname() if hasattr(os, "uname") else None
    libc = None
    for name in ("CS_GNU_LIBC_VERSION", 2):  # some builds of 2.7 know it by number alone
        try:
            libc = libc or os.confstr(name)
        except (AttributeError, ValueError, OSError):
            pass
    free = None
    try:
        disk = os.statvfs(sys.prefix)
        free = disk.f_bavail * disk.f_frsize
    except (AttributeError, OSError):
        pass
    return {
        "system": names[0] if names else {"nt": "Windows"}.get(os.name, sys.platform),
        "machine": names[4] if names else os.environ.get("PROCESSOR_ARCHITECTURE", ""),
        "kernel": names[2] if names else None,
        "libc": libc,
        "loader": elf_loader(os.path.realpath(sys.executable)),
        "os_release": read("/etc/os-release") or read("/usr/lib/os-release"),
        "cpuinfo": block,
        "topology": topology,
        "modalias": (read("/sys/devices/system/cpu/modalias", 80) or "").partition(",")[2].partition(":")[0],
        "meminfo": read("/proc/meminfo"),
        "status": read("/proc/self/status"),
        "cgroups": cgroup_texts(),
        "disk_free_bytes": free,
        "host_limits": host_limits(),
        "container": {
            "files": [
                path for path in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container") if os.path.exists(path)
            ],
            "systemd": read("/run/systemd/container"),
            "init_cgroup": read("/proc/1/cgroup"),
            "init_container": container_of_init(),
            "kubernetes": "KUBERNETES_SERVICE_HOST" in os.environ,
        },
    }


def container_of_init():
    """Return the value of ``container`` in the environment of process 1; None where it has none or is not ours."""
    for item in (read("/proc/1/environ") or "").split("\0"):
        if item.startswith("container="):
            return item[len("container=") :]
    return None


def altered_files(location, info, by_size):
    """Compare the files of a distribution with its RECORD; None where there is no RECORD.

    Returns a list of (path, problem, expected, found).
    """
    record = read(os.path.join(info, "RECORD"))
    if record is None:
        return None
    altered = []
    for row in csv.reader(str(line) for line in record.splitlines() if line):
        if len(row) != 3 or "=" not in row[1]:
            continue
        path = os.path.join(location, row[0])
        try:
            size = os.path.getsize(path)
        except OSError:
            altered.append((path, "missing", row[2] + " bytes", "no such file"))
            continue
        if row[2] and size != int(row[2]):
            altered.append((path, "size", row[2] + " bytes", "%d bytes" % size))
        elif not by_size:
            kind, _, expected = row[1].partition("=")
            digest = hashlib.new(kind)
            with open(path, "rb") as stream:
                for chunk in iter(lambda: stream.read(1 << 20), b""):
                    digest.update(chunk)
            actual = base64.urlsafe_b64encode(digest.digest()).decode("ascii").rstrip("=")
            if actual != expected:
                altered.append((path, kind, expected, actual))
    return altered


def integrity(found, by_size, answer):
    """Put the comparison of ideep4py with its RECORD into the answer."""
    for one in found:
        if re.search(r"(?mi)^Name:\s*ideep4py\s*$", one["metadata"]):
            try:
                altered = altered_files(one["location"], one["info"], by_size)
            except (IOError, OSError, ValueError, csv.Error):
                return  # not compared
            answer["integrity"] = (
                None
                if altered is None
                else {"distribution": "ideep4py", "by": "size" if by_size else "sha256", "altered": altered}
            )


def import_child(request, cookie, environment, arguments, follow=False):
    """Start a child that imports a module; ``follow``: it tells each line of Python."""
    source = IMPORT.replace("# FOLLOWING", FOLLOWING) if follow else IMPORT
    return python_child(source, request, cookie, environment, arguments, watched=True)


def last_seen(name, child, request, cookie, environment, arguments):
    """Return where a child died that imported a module (see ``after_death``)."""
    told = child.told()
    stages = ["import", "after"]
    if told.get("import", {}).get("ok"):
        stages += {"ideep4py": ["first_op"], "chainer": ["chainer"] + arguments[2:]}.get(name, [])
    return after_death(
        child,
        stages,
        lambda variables, follow: import_child(request, cookie, variables, arguments, follow),
        environment,
    )


def import_answer(child, cookie):
    """Return what became of a child that imported a module."""
    told = child.told()
    if "chainer" in told:
        state, problem = told["chainer"]
        told["chainer"] = state or {"ideep_reason": problem}
    errors = [text(part) for part in child.output[2].split(cookie.encode("ascii"))]
    return {"told": told, "stderr": [part[-TEXT_LIMIT:] for part in errors], "ended": child.ended()}


def guard_file(look):
    """Return which guard a program of the target would load, and what its start-up file says about that."""
    path, digest = look.get("guard"), None
    if path:
        try:
            with open(path, "rb") as stream:
                digest = hashlib.sha256(stream.read()).hexdigest()
        except (IOError, OSError):
            pass
    return {"choice": look.get("guard_choice"), "path": path, "sha256": digest}


def has(found, name):
    """Return whether a distribution of this name is among those found."""
    return any(re.search(r"(?mi)^Name:\s*%s\s*$" % name, one["metadata"]) for one in found)


def main():
    """Answer the request."""
    cookie, request = begin()
    timeout = float(request.get("timeout_seconds") or 30)
    answer = {"probe": 1}
    environment = inherited_environment(request.get("loader_variables") or {})
    loader = elf_loader(os.path.realpath(sys.executable))
    needed = ",".join(NEEDED)
    alone = ("-B", "-E", "-s")
    jobs = [("look", partial(python_child, LOOK, request, cookie, environment, [needed]))]
    if struct.calcsize("P") == 8 and hasattr(os, "uname") and os.uname()[4] in ("x86_64", "amd64"):
        jobs.append(("cpuid", partial(python_child, CPUID, request, cookie, environment, options=alone)))
        if request["emulator"]:
            # A program that an emulated one starts is not emulated: this is the processor of the machine itself.
            real = dict(request, emulator=[])
            jobs.append(("host_cpuid", partial(python_child, CPUID, real, cookie, environment, options=alone)))
    if loader:
        jobs.append(("loader", partial(Child, request["emulator"] + [loader, "--help"], cookie, environment)))
    children = wait_all(jobs, 4, timeout)
    answer.update(machine=machine_texts(), python=python_facts())
    look = children["look"].told().get("look") or {}
    answer["loader_help"] = None
    if "loader" in children:
        answer["loader_help"] = text(children["loader"].output[1] + children["loader"].output[2])
    for name in ("cpuid", "host_cpuid"):
        answer[name] = children[name].told().get("cpuid") if name in children else None
    if "cpuid" in children:
        answer["executable_memory"] = executable_memory(children["cpuid"].told(), children["cpuid"].ended())
    answer["python"]["user_site"] = look.get("user_site")
    answer["guard"] = guard_file(look) if look else None
    answer["profile"] = {"path": look["profile"], "text": read(look["profile"])} if look.get("profile") else None
    answer["variables"] = {"inherited": allowed(environment), "effective": None}
    if look:
        answer["variables"]["effective"] = allowed(look["environment"])
    found, again = distributions(look.get("path", sys.path))
    answer.update(distributions=found, further_distributions=again, conda_packages=conda_packages())
    answer["pip_settings"] = pip_settings(environment)
    answer["possible_shadows"] = look.get("possible")
    if request.get("phase") != "full":
        integrity(found, True, answer)
    else:
        hasher = threading.Thread(target=integrity, args=(found, bool(request.get("quick")), answer))
        extras = ["caffe"] if has(found, "chainer") and has(found, "protobuf") else []
        jobs = [
            (name, partial(import_child, request, cookie, environment, [needed, name] + extras))
            for name in ("chainer", "ideep4py", "numpy")
        ]
        hasher.start()
        children = wait_all(jobs, 2, timeout)
        answer["imports"] = dict((name, import_answer(child, cookie)) for name, child in children.items())
        for name, child in children.items():
            died = last_seen(name, child, request, cookie, environment, [needed, name] + extras)
            answer["imports"][name]["died"] = died
        hasher.join()
        answer["imports"]["chainer"]["caffe"] = bool(extras)
    answer_with(cookie, answer)


if __name__ == "__main__":
    main()
