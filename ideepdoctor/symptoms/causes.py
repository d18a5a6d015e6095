"""The causes of failed imports and of endings, as users report them and as they were measured."""

from __future__ import annotations

from ideepdoctor.symptoms.base import Cause

_AGAIN = "make a new environment: ideepdoctor setup"
_ALONE = "start Python without LD_PRELOAD and LD_LIBRARY_PATH"
_FIRST = "import ideep4py before torch, mxnet and other packages with libraries of their own"
_FITS = "install a NumPy that fits: ideepdoctor fix"
_LIBS = "ideepdoctor libs"
_CPU = "ideepdoctor cpu"
_FIX = "ideepdoctor fix"
_STDCXX = "an older libstdc++ is loaded first"

# ------------------------------------------------------------------------------------------------ libraries
NOT_FOUND = Cause(("IDP406", "IDP405", "IDP309", "IDP817"), "a library that it needs is not found", _AGAIN)
RUNPATH = Cause(
    ("IDP405", "IDP406", "IDP817"),
    "a library that stands beside libmkldnn is not found from there, as in builds whose linker writes RUNPATH",
    "install the wheel, or link with -Wl,--disable-new-dtags: ideepdoctor fix",
    _LIBS,
)
NEIGHBOUR = Cause(
    ("IDP404", "IDP405", "IDP401"),
    "a library of another package, or of another version, is loaded",
    _ALONE,
    _LIBS,
)
OTHER_VERSION = Cause(("IDP406", "IDP401", "IDP404"), "a library of another version is loaded", _ALONE, _LIBS)
MISSING_ELSEWHERE = Cause(
    ("IDP406",),
    "a library that some package needs is not found",
    "install that library or its package again; ideep4py itself needs nothing but its own lib folder",
    _LIBS,
)
OLD_STDCXX = Cause(("IDP406",), _STDCXX, "unset LD_LIBRARY_PATH, or update libstdc++ there", _LIBS)
OLD_GLIBC = Cause(("IDP103",), "glibc is too old for this library", "use a newer system or a container")
TRUNCATED = Cause(("IDP309",), "a library was truncated", _AGAIN)
DAMAGED = Cause(("IDP309",), "a library is damaged", _AGAIN)
SHORT_FILE = Cause(("IDP309",), "a library file is shorter than it says (truncated)", _AGAIN)
EXECUTABLE_STACK = Cause(
    ("IDP409", "IDP114"),
    "glibc 2.41 and later refuse this library",
    "patchelf --clear-execstack FILE, with the file that the message names",
)
STATIC_TLS = Cause(("IDP404",), "thread-local memory is used up by libraries loaded before", _FIRST, _LIBS)
NOEXEC = Cause(("IDP116",), "its folder does not allow to run code (noexec)", "move the environment elsewhere")
NO_EXECUTABLE_MEMORY = Cause(
    ("IDP114",),
    "the system refuses memory that a program writes and then runs, and MKL-DNN makes its code so",
    "allow it for this program: SELinux execmem, MemoryDenyWriteExecute=no of systemd, PaX flags",
)
LOADER_CACHE = Cause(
    ("IDP410",),
    "the wheel has copies where ldconfig expects links: harmless, but other programs find these libraries now",
    "take ideep4py's lib folder out of /etc/ld.so.conf.d and run ldconfig",
)
TWO_MKLS = Cause(
    ("IDP411",), "parts of two MKLs are mixed", f"{_ALONE}; do not mix MKL of conda and pip", "ideepdoctor libs --tree"
)
ABI = Cause(
    ("IDP314", "IDP201"),
    "the wheel is for the other width of Unicode",
    "install the wheel with the right ABI tag",
)
OTHER_TAG = Cause(("IDP314", "IDP201"), "the wheel is for another Python than this one", "ideepdoctor setup")
BROKEN_RELEASE = Cause(
    ("IDP302", "IDP406"),
    "this early release lacks a library and does not bring it",
    "take ideep4py 2.0.0.post3 (1.0.4)",
)
LIBPYTHON = Cause(
    ("IDP302", "IDP406"), "the wheel was linked with libpython, which this Python does not ship", "use 2.0.0.post3"
)

# ------------------------------------------------------------------------------------------------ two in one process
STRANGER = Cause(
    ("IDP402", "IDP401", "IDP403", "IDP404"),
    "a MKL-DNN that is not ideep4py's own computes, or one that another package loaded first",
    f"start Python without LD_PRELOAD, and {_FIRST}",
    _LIBS,
)
PRELOADED = Cause(
    ("IDP401", "IDP405"),
    "LD_PRELOAD, or the search path, brings a library that does not fit the others",
    "unset LD_PRELOAD",
    _LIBS,
)
SYMBOLS = Cause(("IDP403", "IDP404", "IDP401"), "two libraries clash in one process", _ALONE, _LIBS)
OTHER_PACKAGE = Cause(
    ("IDP404",),
    "another package got ideep4py's MKL-DNN, which is older than its own",
    "use them in two processes, or take mxnet-mkl 1.6.0",
    _LIBS,
)
SECOND_OPENMP = Cause(
    ("IDP408",), "a second Intel OpenMP runtime was loaded", f"{_ALONE}, and remove the other libiomp5", _LIBS
)
TWO_OPENMPS = Cause(("IDP408",), "the OpenMP runtimes of Intel and LLVM clash in one process", _FIRST, _LIBS)
THREADING_LAYER = Cause(("IDP506",), "MKL of another package refuses libgomp", "export MKL_THREADING_LAYER=GNU")
DUPLICATE_ALLOWED = Cause(
    ("IDP508", "IDP408"), "two OpenMP runtimes run on beside each other", "unset KMP_DUPLICATE_LIB_OK", _LIBS
)

# ------------------------------------------------------------------------------------------------ packages
NUMPY_ABI = Cause(("IDP305",), "NumPy does not fit the wheel", _FITS)
CHAINER_IMPORT = Cause(
    ("IDP306",),
    "Chainer imports what this NumPy, setuptools or Python has no longer",
    f"install packages that fit: {_FIX}",
)
NUMPY_2 = Cause(("IDP306", "IDP305"), "NumPy 2 has lost what Chainer asks for at import", "pip install 'numpy<2'")
ALIASES = Cause(
    ("IDP918", "IDP306"),
    "NumPy 1.24 has lost the names np.float, np.int, np.bool and np.object",
    "write float, int, bool, object; in Chainer's own F.resize_images: pip install 'numpy<1.24'",
    "ideepdoctor lint .",
)
PROTOBUF = Cause(
    ("IDP307",), "protobuf 4 is too new for the files of chainer.links.caffe", "pip install 'protobuf<3.21'"
)
NEW_CUPY = Cause(
    ("IDP317",), "CuPy 10 and later break Chainer before 7.8.1", "install Chainer 7.8.1, or uninstall CuPy"
)
TWO_CUPYS = Cause(("IDP318",), "two distributions of CuPy overwrite each other", "uninstall all of them, install one")
TWO_NUMPYS = Cause(("IDP315", "IDP411"), "the NumPys of conda and pip are mixed", _AGAIN)
UNMET = Cause(("IDP316", "IDP305"), "a package asks for another version than the one that is there", _FIX)
NO_IDEEP4PY = Cause(("IDP301",), "ideep4py is not in the environment that runs", "ideepdoctor setup")
NO_CHAINER = Cause(("IDP308",), "Chainer is not in the environment that runs", "ideepdoctor setup")
REFUSED = Cause(
    ("IDP303", "IDP819"),
    "Chainer does not take this ideep4py and silently computes with NumPy",
    f"install the ideep4py that fits this Chainer: {_FIX}",
)
UNAVAILABLE = Cause(("IDP312", "IDP310"), "Chainer finds no iDeep that can be used", f"look why: {_FIX} --dry-run")
OLD_CHAINER = Cause(
    ("IDP319",), "Chainer before 4.1 hands iDeep what it cannot take", "install Chainer 7.8.1: ideepdoctor upgrade"
)

# ------------------------------------------------------------------------------------------------ variables
USE_IDEEP = Cause(
    ("IDP502", "IDP906"), "use_ideep is a word that Chainer does not know", "export CHAINER_USE_IDEEP=auto"
)
CHAINER_DTYPE = Cause(("IDP503", "IDP905"), "CHAINER_DTYPE is none of float16, float32, float64", "unset CHAINER_DTYPE")
CHAINER_NUMBER = Cause(
    ("IDP507", "IDP509"),
    "a variable CHAINER_... is a word where Chainer wants 0 or 1",
    "export it as 0 or 1, or unset it: env | grep CHAINER_",
)
THREAD_VARIABLES = Cause(
    ("IDP509", "IDP504"),
    "a variable of OpenMP leaves fewer threads than MKL-DNN waits for, or names what is not there",
    "unset OMP_DYNAMIC, OMP_THREAD_LIMIT, KMP_LIBRARY and the like: env | grep -E 'OMP_|KMP_'",
)
SMALL_STACK = Cause(
    ("IDP509", "IDP707"),
    "the stack of a thread is too small",
    "unset OMP_STACKSIZE and KMP_STACKSIZE; ulimit -s 8192",
)

# ------------------------------------------------------------------------------------------------ CPU
ILLEGAL = Cause(
    ("IDP110", "IDP820", "IDP812"),
    "an instruction that this CPU does not have",
    "see what it has: ideepdoctor cpu",
    _CPU,
)
BUILT_ELSEWHERE = Cause(
    ("IDP820", "IDP812"),
    "ideep4py was built on another machine, for its processor",
    "build it for this one: ideepdoctor build --march x86-64-v3",
)
REGISTERS = Cause(
    ("IDP115", "IDP113"),
    "the kernel or the hypervisor does not keep the registers of AVX that the CPU shows",
    "change the settings of the virtual machine, or keep Chainer on NumPy: export CHAINER_USE_IDEEP=never",
    _CPU,
)
XBYAK = Cause(
    ("IDP111", "IDP819"), "MKL-DNN's code generator refuses this CPU", "use ideep4py 1.0.4 or 2.0.0.post3", _CPU
)
NOT_HERE = Cause(
    ("IDP101",),
    "this system or processor is none that ideep4py exists for: it is for Linux on x86-64",
    "use WSL 2, a container or another machine, or Chainer with NumPy alone",
)

# ------------------------------------------------------------------------------------------------ operations
CONCAT = Cause(
    ("IDP605", "IDP911", "IDP912"),
    "concat or split_axis got arrays in blocks of unequal size",
    "run under the guard: ideepdoctor run -- python PROGRAM",
)
TOO_BIG = Cause(
    ("IDP607",),
    "MKL-DNN generates no code for a convolution of this size",
    "keep that layer on NumPy",
    "ideepdoctor certify",
)
FIXED_NORM = Cause(
    ("IDP614", "IDP913"),
    "the backward pass of fixed_batch_normalization cannot add iDeep's arrays",
    "run under the guard: ideepdoctor run -- python PROGRAM",
)
PICKLED = Cause(("IDP615", "IDP914"), "arrays of iDeep cannot be pickled", "call model.to_cpu() before, or save_npz")
PICKLED_2 = Cause(
    ("IDP615", "IDP914"),
    "on Python 2 a model that was pickled after to_intel64() cannot be read again",
    "write it again after model.to_cpu(), or with save_npz",
)
POWERS = Cause(("IDP616",), "arrays of iDeep have no power", "write numpy.array(h.array) ** n, or F.square")
DIED = Cause(("IDP607", "IDP313"), "a library gave up", _ALONE, "ideepdoctor smoke")
DIVIDED = Cause(
    ("IDP607", "IDP320"),
    "a library divided by zero",
    "report it with: ideepdoctor diagnose --save-facts FILE",
    "ideepdoctor smoke",
)
UNALIGNED = Cause(
    ("IDP818",), "ideep4py 1.0.3 built with AVX wants memory that its compiler does not align", "build 1.0.4 or later"
)

# ------------------------------------------------------------------------------------------------ limits, and for ever
THREADS_REFUSED = Cause(
    ("IDP707", "IDP504"),
    "the system gave no more threads or memory for them",
    "export OMP_NUM_THREADS=1, or raise the limit (ulimit -u, ulimit -v, pids of the container)",
)
NO_MEMORY = Cause(
    ("IDP707", "IDP621", "IDP811"),
    "memory was refused: by a limit (ulimit -v, the container) or because there is no more",
    "raise the limit, or make the batch smaller",
)
KILLED = Cause(
    ("IDP621", "IDP620", "IDP707", "IDP811"),
    "the kernel ended it for want of memory; with iDeep memory grows with each new shape of the input",
    "make batches smaller and shapes few (pad to buckets), or give it more memory",
)
SHARED_MEMORY = Cause(
    ("IDP117",),
    "there is no room in /dev/shm, where multiprocessing keeps its locks, or on the disk",
    "look at both: df -h /dev/shm . (a container: --shm-size=64m, without --ipc=none)",
)
FORKED = Cause(
    ("IDP622",),
    "a process was forked while OpenMP's threads worked, and waits for threads that it does not have",
    "multiprocessing.set_start_method('forkserver') before the first operation, or OMP_NUM_THREADS=1 in workers",
)
STOPPED = Cause(
    ("IDP622", "IDP509"),
    "somebody ended it from outside: a time limit, a scheduler, a person",
    "see whether it hung: ideepdoctor trace -- python PROGRAM",
    "ideepdoctor trace -- python PROGRAM",
)
NOT_STARTED = Cause(
    ("IDP401", "IDP311"),
    "the program was not found, or the loader could not start it",
    "unset LD_PRELOAD, and look at the line above it",
)
