"""The Xid codes: (codes, class, meaning, what to do), after NVIDIA's catalogue of 2025."""

_APP = "application"
_HW = "hardware"
_DRV = "driver"
_LINK = "link"
_INFO = "info"
_RESTART = "restart the job; the same GPU again: report it"
_RESET = "drain, reset the GPU"

ROWS: tuple[tuple[tuple[int, ...], str, str, str], ...] = (
    ((8,), _APP, "GPU stopped processing (idle timeout)", _RESTART),
    ((11, 25, 32, 80), _APP, "corrupt command buffer", "check that CUDA and driver fit together"),
    (
        (13,),
        _APP,
        "graphics engine exception (bad index or instruction)",
        "tell the user (compute-sanitizer); same GPU under other users: hardware",
    ),
    (
        (31,),
        _APP,
        "GPU memory page fault",
        "tell the user; many GPUs of one job at once: the program",
    ),
    ((37, 38, 66, 67), _DRV, "driver firmware note", "note"),
    (
        (*range(39, 42), *range(70, 73), *range(75, 78), 85, *range(126, 136)),
        _APP,
        "copy engine error",
        "restart the job; often follows NVLink or PCIe trouble",
    ),
    ((43,), _APP, "GPU stopped processing, channel reset", "none for the node: program crashed"),
    ((44,), _DRV, "fault during context switch", "repeated: report"),
    ((45,), _INFO, "cleanup after a killed or crashed process", "look at what came before it"),
    ((46,), _HW, "GPU timeout", _RESET),
    ((48,), _HW, "double-bit ECC error", "drain, reset; repeated: replace the GPU"),
    ((54,), _HW, "auxiliary power not connected", "check the cables"),
    ((61,), _HW, "micro-controller breakpoint", "drain, reset the GPU, report"),
    ((62,), _HW, "micro-controller halt", "drain, reset the GPU, report"),
    ((63,), _HW, "memory row remapped", "reset the GPU when the job is over"),
    ((64,), _HW, "row remapping failed", "drain; the GPU likely needs replacing"),
    (
        (68, *range(82, 85), 86, 88, 89, *range(96, 106), 139),
        _APP,
        "video or JPEG engine error",
        _RESTART,
    ),
    ((69,), _APP, "engine class error", "tell the user"),
    ((74,), _LINK, "NVLink error", "drain; look at the peer (nvlink -e) and fabric manager"),
    ((78,), _DRV, "vGPU start failed", "update driver and firmware"),
    (
        (79,),
        _HW,
        "GPU has fallen off the bus; the job is lost",
        "reboot node",
    ),
    ((92,), _HW, "high rate of corrected ECC errors", "watch"),
    ((93,), _HW, "InfoROM wear", "report"),
    ((94,), _HW, "contained: only this process dies", "restart the job; reset the GPU when free"),
    (
        (95,),
        _HW,
        "uncontained memory error: results of all users of this GPU are suspect",
        "drain now, reset the GPU",
    ),
    ((109,), _DRV, "context switch timeout", _RESET),
    ((110,), _DRV, "security fault", _RESET),
    (
        (119, 120),
        _DRV,
        "GSP firmware does not answer; nvidia-smi may hang with it",
        "drain, reset the GPU; often only a reboot helps",
    ),
    ((121,), _LINK, "corrected C2C link error", "watch"),
    (tuple(range(122, 126)), _HW, "InfoROM or flash error", "report"),
    ((136,), _LINK, "link training failed", _RESET),
    ((137,), _LINK, "NVLink privilege fault", "look for the peer's own error first"),
    ((140,), _HW, "unrecovered ECC error", "drain, reset the GPU"),
    ((141,), _DRV, "fast path error", "note"),
    ((143,), _HW, "GPU initialisation failed", _RESET),
    (tuple(range(144, 151)), _LINK, "NVLink 5 unit error", "the text says if it is fatal"),
    ((151,), _DRV, "key rotation failed", "restart the virtual machine"),
    ((154,), _INFO, "recovery action changed", "do what the text says; cause: the Xid before"),
    ((155,), _LINK, "NVLink down", _RESET),
    ((156,), _HW, "resource retired", _RESET),
    ((157,), _HW, "resource retirement failed", "report"),
    ((158,), _HW, "fatal timeout", _RESET),
    ((159,), _HW, "CHI non-data error", "report"),
    ((160, 161), _HW, "channel retirement", "note"),
    (tuple(range(162, 166)), _INFO, "power smoothing note", "note"),
    ((166, 170), _LINK, "secure NVLink error", "report"),
    ((167,), _HW, "PCIe fatal timeout", "drain, reboot node, report"),
    ((168,), _HW, "reduced memory capacity", "report"),
    ((169,), _DRV, "SEC2 halt", _RESET),
    ((171, 172), _HW, "detail of a double-bit ECC error (48)", "as Xid 48"),
)
