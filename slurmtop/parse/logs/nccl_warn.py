"""One WARN line of NCCL, or the text of one that PyTorch quotes after ``Last error:``.

Source: the ``WARN`` macros of NCCL 2.2 to 2.32 and of its plugins; RCCL writes the same::

    misc/socket.cc:484 NCCL WARN socketFinalizeAccept: wrong magic 74656d2f20544547 != 7970663b90
    include/socket.h:360 WARN Call to connect failed : Connection timed out          (2.2)
    os/linux.cc:310 (ncclOsSocketProgressOpt) NCCL WARN Call to recv from …          (2.30)

What a healthy cluster prints as WARN too is told as ``BENIGN``, what no pattern knows as
``OTHER``. Nothing here says who is to blame.
"""

import re

from slurmtop.model.events.nccl import NcclWarn, Warn
from slurmtop.model.trace import Where
from slurmtop.parse.logs.nccl_ib import read_ib, read_ofi
from slurmtop.parse.logs.nccl_peer import Told, number
from slurmtop.parse.logs.nccl_socket import read_bootstrap, read_socket

#: Characters kept of a message.
TEXT_LIMIT = 400

_SOURCE = r"(?P<file>[\w./+-]{1,200}\.(?:cc|cpp|cu|c|hpp|h))\W{1,40}\d{1,6}"
_HEAD = re.compile(_SOURCE + r"\b")
#: Before 2.3 the word NCCL was missing; then only the file beside it tells the speaker.
_OLD = re.compile(_SOURCE + r"\)?\s(?:\(\w{0,80}\) )?WARN ")
#: A web page turned ``net_ib.cc:101`` and ``10.1.3.201`` into links.
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(https?://[^()\s]{1,300}\)")

#: NCCL goes on without what is missing.
_GOES_ON = re.compile(
    r"(?i)Failed to open lib(?:ibverbs|mlx5|gdrapi|nvidia-ml)|missing symbol|Failed to load symbol"
    r"|Failed to find CUDA library|PFN functions not found|\bdl\w{0,2}sym(?:\([^)]{0,80}\))? failed"
    r"|no plugin found|Plugin load|Failed to find nccl\w{2,40} ?(?:symbol|_v\d|\(|\.|$)"
    r"|(?:TUNER|PROFILER|ENV|GIN|RMA|NET)/Plugin ?:|Could not find: ?lib|MSCCL"
    r"|numa.?balancing|iommu=pt|HSA_FORCE_FINE_GRAIN|kernel\.numa"
    r"|proceeding without|falling back|\bign?oring\b|\bignored\b|instead\.?$|will be retried"
    r"|using default|using the default|not using it|deprecated|leaving it set"
    r"|greater than the maximum allowed, setting|can repress this message|to disable this warning"
    r"|Trying a different method|mismatched physical devices|is enabled on a \w{1,10} communicator"
    r"|decide the default value|Defaulting to|Could not enable P2P between|skipping\b"
    r"|disabling (?:cuda context|NVLS|\.|$)|Unable to create thread context"
)
_CUDA = re.compile(
    r"\b(?:Cuda|CUDA|HIP|Hip) (?:failure|error):? ?(?P<status>\d{1,5})?(?: ?\w{0,20})?:? ?"
    r"'(?P<error>[^'\n]{1,200})"
)
_NO_GPU_MEMORY = re.compile(r"out of memory|MemoryAllocation|OutOfMemory")
_AT_EXIT = re.compile(r"driver shutting down|context is destroyed")
_CUDA_ALLOC = re.compile(r"Failed to CUDA (?!host)\w{0,10}(?: async)? ?\w{0,10} ?-?\d{0,20} bytes")
_HOST_ALLOC = re.compile(
    r"Failed to (?:CUDA host alloc|malloc|mmap|calloc)|\bmalloc\b.{0,60}(?:failed|returned null)"
    r"|Call to (?:posix_mem\w{1,10}|malloc|mmap|realloc|mlock) failed|Unable to allocate"
    r"|unable to allocate"
)
_NVLS = re.compile(r"NVLS|NVLink SHARP|[Mm]ulticast")
_NVLS_FILE = re.compile(r"(?:^|/)nvls\.c")
_FABRIC = re.compile(r"MNNVL .{0,40}is available but not working")
_MANY_FILES = re.compile(r"Too many open files|\bEMFILE\b|\bENFILE\b")
_SHM_CALL = re.compile(
    r"Call to (?P<call>posix_fallocate|fallocate|ftruncate|shm_\w{2,20}|mkstemp) "
    r"(?:failed|returned) ?:? ?(?P<error>[^\n]{1,100})"
)
_SHM = re.compile(
    r"failed to extend (?P<path>\S{1,200}) to|Error while .{1,40} shared memory segment"
    r"|failed to create shared memory file|Could not map \S{1,200} size|/dev/shm\b"
)
_SHM_END = re.compile(r"munmap of shared|unlink shared|shm (?:unlink|close) failed")
_ERROR_WORD = re.compile(r"\berror:? (?P<error>[A-Z][^\n(,]{2,80})")
_DUPLICATE_GPU = re.compile(
    r"Duplicate GPU detected ?: ?rank (\d{1,9}) and rank (\d{1,9}) both on (?:CUDA|HIP|GPU) device "
    r"(?P<device>[0-9a-fA-FxX:.]{1,20})"
)
_SAME_GPU = re.compile(
    r"Duplicate GPU detected|Multiple ranks (?:detected |are )using the same GPU", re.I
)
_P2P = re.compile(r"P2P is disabled between NVLINK connected GPUs")
_TOPOLOGY = re.compile(
    r"Could not find real path of|\bXML\b|NVLink error : could"
    r"|could not find CPU close to GPU|No path computed|Could not find (?:any local path|N(?:ET|IC)"
    r"|net id|rev link|local GPU|gpu rank|intermediate GPU|node of type)|No NVML device handle"
    r"|No rails found|No supported topology"
)
_TOPOLOGY_FILE = re.compile(r"(?:^|/)graph/\w{1,20}\.c")
_CALLS_DIFFER = re.compile(r"Mismatched collective detected(?:.{0,80}?\brank (\d{1,9}))?")
_USAGE = re.compile(
    r"invalid (?:root|type|datatype|reduction|peer|device pointer|usage)|is not a valid pointer"
    r"|mismatchs? with NCCL device|not in a group call|send to self without|self without a matching"
    r"|has already been destroyed|improper usage"
    r"|[Ii]nvalid (?:rank|number of ranks|device count|config)|corrupted comm|cannot be NULL"
    r"|argument not initialized via|no algorithm/protocol|racing to launch|symmetric registration"
    r"|Fatal: host threads|\bcomm\w{0,12} argument is NULL|[Aa]rgument .{1,40} is (?:NULL|null)"
)
_PROXY = re.compile(
    r"Proxy (?:[Ss]ervice|Progress|[Tt]hread)|\[Service thread\]|Proxy Call to rank|[Pp]roxy append"
    r"|while polling for opId|nonexistent async opId|proxy op chain"
    r"|proxy connection (?:address|peer)|proxy response|Mismatched response size"
    r"|encountered a fatal error \(detected|earlier asynchronous|asynchronous bootstrap send"
    r"|socket progress error|commDestroySync|commReclaim|commDestroy|intranode barrier error"
    r"|proxy stop error|socket state \(|wrong socket state|unexpected socket state"
    r"|previous operation returned|communicator was revoked"
)
_PROXY_FIELDS = re.compile(r"operation[ =](?P<call>\w{2,20})|(?:res=|retcode )(?P<status>\d{1,3})")
_OWN_CALL = re.compile(
    r"\bCall to (?P<call>\w{2,40}(?: [A-Z]\w{1,20})?) (?:failed|returned)\s?:? ?(?:with )?"
    r"(?:error )?(?P<error>[^\n(,]{0,100})"
)


def read_warn(text: str, at: Where, quoted: bool = False) -> NcclWarn | None:
    """The warning in ``text``, which may still have NCCL's prefix or any other before it.

    ``quoted``: ``text`` is the message alone, as PyTorch hands it on. None where it is no warning
    of NCCL's (or blank).
    """
    if "](http" in text:
        text = _LINK.sub(r"\1", text)
    parted = (_quoted_parts if quoted else _parts)(text)
    if parted is None or not parted[1]:
        return None
    file, message = parted
    told = _told(message, file)
    return NcclWarn(at=at, text=message[:TEXT_LIMIT], quoted=quoted, **told._asdict())


def _parts(text: str) -> tuple[str, str] | None:
    """The source file (maybe empty) and the message."""
    head, mark, rest = text.partition("NCCL WARN")
    if not mark:
        old = _OLD.search(text)
        return None if old is None else (old["file"], _trimmed(text[old.end() :]))
    found = _HEAD.findall(head[-300:])
    return found[-1] if found else "", _trimmed(rest)


def _quoted_parts(text: str) -> tuple[str, str] | None:
    return _parts(text) or ("", _trimmed(text))


def _trimmed(message: str) -> str:
    return message.strip().strip("*").strip()


def _told(text: str, file: str) -> Told:
    if "NET/OFI" in text:
        return read_ofi(text)
    # What names its own subject comes before what only quotes an error of the system.
    return (
        _system(text)
        or _gpu(text, file)
        or read_ib(text)
        or (Told(Warn.BENIGN) if _GOES_ON.search(text) else None)
        or read_bootstrap(text)
        or _between_ranks(text)
        or _effect(text)
        or read_socket(text)
        or _host(text, file)
        or _rest(text)
    )


def _system(text: str) -> Told | None:
    if _MANY_FILES.search(text) is not None:
        found = _OWN_CALL.search(text)
        return Told(Warn.FILES, call=found["call"] if found else None, error="Too many open files")
    if _SHM_END.search(text) is not None:
        return Told(Warn.OTHER)
    if (found := _SHM_CALL.search(text)) is not None:
        return Told(Warn.SHM, call=found["call"], error=found["error"].strip(" ."))
    if "alling back" not in text and (found := _SHM.search(text)) is not None:
        error = _ERROR_WORD.search(text)
        return Told(
            Warn.SHM, device=found["path"], error=error["error"].strip(" .") if error else None
        )
    return None


def _gpu(text: str, file: str) -> Told | None:
    if _FABRIC.search(text) is not None:
        return Told(Warn.NVLS, error="MNNVL is available but not working")
    found = _CUDA.search(text)
    error = found["error"] if found else None
    status = number(found["status"]) if found else None
    if _NVLS.search(text) is not None or (found and _NVLS_FILE.search(file)):
        return _nvls(text, error, status)
    if error is not None:
        if _NO_GPU_MEMORY.search(error) is not None:
            kind = Warn.OUT_OF_MEMORY
        else:
            # A process that ends takes CUDA down under NCCL's threads.
            kind = Warn.BENIGN if _AT_EXIT.search(error) else Warn.CUDA
        return Told(kind, error=error, status=status)
    if _CUDA_ALLOC.search(text) is not None:
        return Told(Warn.OUT_OF_MEMORY)
    return None


def _nvls(text: str, error: str | None, status: int | None) -> Told | None:
    if error is None:
        return None
    if _GOES_ON.search(text.partition("\n")[0]) is not None:
        return Told(Warn.BENIGN, error=error, status=status)
    # Plain memory of the GPU in nvls.cc is no matter of the fabric.
    plain = _NVLS.search(text) is None and _NO_GPU_MEMORY.search(error) is not None
    return Told(Warn.OUT_OF_MEMORY if plain else Warn.NVLS, error=error, status=status)


def _between_ranks(text: str) -> Told | None:
    if (found := _DUPLICATE_GPU.search(text)) is not None:
        ranks = (int(found[1]), int(found[2]))
        return Told(Warn.DUPLICATE_GPU, ranks=ranks, device=found["device"])
    if _SAME_GPU.search(text) is not None:
        return Told(Warn.DUPLICATE_GPU)
    if (found := _CALLS_DIFFER.search(text)) is not None:
        return Told(Warn.CALLS_DIFFER, ranks=(int(found[1]),) if found[1] else ())
    return Told(Warn.USAGE) if _USAGE.search(text) is not None else None


def _effect(text: str) -> Told | None:
    if _PROXY.search(text) is None:
        return None
    call = status = None
    for found in _PROXY_FIELDS.finditer(text):
        call = call or found["call"]
        status = status if found["status"] is None else int(found["status"])
    return Told(Warn.PROXY, call=call, status=status)


def _host(text: str, file: str) -> Told | None:
    if _HOST_ALLOC.search(text) is not None:
        return Told(Warn.HOST_MEMORY)
    if _P2P.search(text) is not None:
        return Told(Warn.P2P)
    if _TOPOLOGY.search(text) is not None or _TOPOLOGY_FILE.search(file) is not None:
        return Told(Warn.TOPOLOGY)
    return None


def _rest(text: str) -> Told:
    found = _OWN_CALL.search(text)
    if found is None:
        return Told(Warn.OTHER)
    return Told(Warn.OTHER, call=found["call"], error=found["error"].strip(" .:") or None)
