"""The entries of the fault catalogue: slug, meaning and first action, section by section."""

PROGRAM = "Who called what (the program)"
TIMEOUTS = "Timeouts that the log alone does not explain"
HOSTS = "GPUs and hosts"
NETWORK = "Network"
SETTINGS = "Start-up and settings"
SLURM = "Slurm"
NO_FAULT = "Not a fault, or not this job's fault"

#: The sections in the order in which they are shown.
FAMILIES = (PROGRAM, TIMEOUTS, HOSTS, NETWORK, SETTINGS, SLURM, NO_FAULT)

#: (section, (slug, meaning, first action)).
ENTRIES: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        PROGRAM,
        (
            (
                "collective-op-mismatch",
                "At one position of one group the ranks called different operations.",
                "Compare the call sites of the two sides; a restart runs into it again.",
            ),
            (
                "collective-shape-mismatch",
                "The ranks agree on the operation but not on the number of elements.",
                "Compare the shapes and the data of the ranks that differ.",
            ),
            (
                "collective-order-skew",
                "A rank skipped a call or made one too many, so it is some operations off.",
                "Find the branch in the code that only this rank takes.",
            ),
            (
                "missing-rank",
                "Some ranks never came to the operation, and the log does not say why.",
                "Look at the stack of a missing rank before anything is stopped.",
            ),
            (
                "data-exhausted",
                "One rank ran out of batches before the others and left the loop.",
                "Make the number of batches equal on every rank, or drop the last ones.",
            ),
            (
                "unmatched-p2p",
                "A send waits for a receive that nobody posts, or the reverse.",
                "Check the order of sends and receives of the two pipeline stages.",
            ),
            (
                "concurrent-use",
                "Two threads or streams used one communicator at once without an order.",
                "Give each its own communicator, or put the calls in order.",
            ),
            (
                "ddp-unused-parameters",
                "On some rank parameters took no part in the step, so their gradients never came.",
                "Set find_unused_parameters, or let every rank take the same path.",
            ),
            (
                "host-work-exceeds-timeout",
                "One rank worked on the host for longer than the others wait for it.",
                "Move that work out of the step, or raise the timeout of the group.",
            ),
            (
                "startup-skew",
                "The ranks reached the first collective too far apart.",
                "Find what is slow to import, load or compile on the late ranks.",
            ),
            (
                "rank-elsewhere",
                "A rank is busy or blocked in its own code while the others wait for it.",
                "Read its stack; save all stacks before anything is stopped.",
            ),
            (
                "data-loader-stuck",
                "A rank waits for its data loader while the others wait for the rank.",
                "Look at its loader's workers and at the storage that they read.",
            ),
            (
                "checkpoint-stuck",
                "A rank does not come back from writing or reading a checkpoint.",
                "Look at the file system that it writes to; do not trust the newest checkpoint.",
            ),
            (
                "gil-held",
                "A thread of a rank never gives the interpreter back, so all of it stands still.",
                "Take a native stack of that rank once, then end the job.",
            ),
            (
                "python-exception",
                "The program ended with an ordinary Python exception.",
                "Read the traceback above the exception and fix the code or its input.",
            ),
            (
                "cuda-assert",
                "A GPU kernel of the program failed: a check in it, or a wild memory access.",
                "Run again with CUDA_LAUNCH_BLOCKING=1 to see the line that starts the kernel.",
            ),
            (
                "task-exit",
                "One task ended with an exit code and the launcher stopped the others.",
                "Read the log of the task that ended first.",
            ),
            (
                "user-interrupt",
                "A person ended it: Ctrl-C, a closed terminal, or scancel by its owner.",
                "Nothing to repair; start it again if that was not meant.",
            ),
        ),
    ),
    (
        TIMEOUTS,
        (
            (
                "watchdog-timeout-unattributed",
                "A collective timed out, and what could be read names neither rank nor cause.",
                "Collect the flight recorder files or stacks of all ranks.",
            ),
            (
                "heartbeat-unattributed",
                "Only the message that the watchdog itself was stuck; its cause stays open.",
                "Take a native stack of the rank that printed it.",
            ),
            (
                "first-collective-stuck",
                "All ranks entered the first collective of a group and it never ended.",
                "Check transport and host set-up; run an nccl-tests all_reduce on the same nodes.",
            ),
            (
                "device-stall",
                "All ranks wait for their GPUs: nothing on the hosts can tell who is to blame.",
                "Compare flight recorder sequence numbers and look for the odd GPU.",
            ),
            (
                "ras-count-skew",
                "RAS reports different operation counts; the smaller group may be the one ahead.",
                "Ask once more some seconds later and see which group moves.",
            ),
            (
                "opcount-not-usable",
                "The operation counter does not advance in this version or set-up.",
                "Use sequence numbers of the flight recorder instead.",
            ),
            (
                "teardown-hang",
                "The work was done; the hang is in closing down.",
                "Check that the last checkpoint is complete, then cancel the job.",
            ),
        ),
    ),
    (
        HOSTS,
        (
            (
                "gpu-oom",
                "A GPU ran out of memory.",
                "Lower the batch or shard more; see whether another process held the GPU.",
            ),
            (
                "host-oom",
                "The host's memory or the job's limit was used up and a process was killed.",
                "Ask for more --mem, or find the rank or loader that grew.",
            ),
            (
                "process-stopped",
                "A process is stopped: by a signal, a debugger or a frozen cgroup.",
                "Let it go on (kill -CONT) or detach what traces it.",
            ),
            (
                "io-stuck",
                "A process waits in the kernel and cannot be interrupted (state D).",
                "Record mount and wait channel, and ask the administrators to look at that node.",
            ),
            (
                "node-frozen",
                "A whole node stands still: all its ranks at once, and its Slurm daemon.",
                "Exclude the node and ask the administrators to look at it.",
            ),
            (
                "gpu-hw-fault",
                "A GPU failed in hardware: memory errors, off the bus, or another hardware Xid.",
                "Exclude the node and tell the administrators the Xid and the GPU.",
            ),
            (
                "nvlink-fault",
                "An NVLink or NVSwitch link reported errors.",
                "Exclude the node and tell the administrators the Xid and the link.",
            ),
            (
                "fabric-manager",
                "NVLink multicast could not be set up: fabric manager or switch is not well.",
                "Ask the administrators to look at fabric manager on that node.",
            ),
            (
                "cuda-driver-error",
                "A CUDA call inside NCCL failed for reasons of driver or platform.",
                "Compare driver and CUDA versions of the nodes.",
            ),
            (
                "topology-detection",
                "NCCL could not read the PCI topology of the host.",
                "Check what the container shows under /sys; give a topology file if need be.",
            ),
            (
                "p2p-hang",
                "GPUs of this host cannot reach each other directly, though set-up looked fine.",
                "Try once with NCCL_P2P_DISABLE=1 to confirm it.",
            ),
            (
                "shm-exhausted",
                "The shared memory of the container or host is too small or full.",
                "Give the container a larger /dev/shm, or clean it up.",
            ),
            (
                "fd-limit",
                "The process ran out of file descriptors.",
                "Raise ulimit -n, or open fewer files per loader worker.",
            ),
            (
                "duplicate-gpu",
                "Two ranks were given the same GPU.",
                "Check how the local rank becomes a device, and CUDA_VISIBLE_DEVICES.",
            ),
            (
                "data-corruption",
                "Nothing hung, but results were wrong.",
                "Run again on other nodes and compare.",
            ),
        ),
    ),
    (
        NETWORK,
        (
            (
                "net-link-fault",
                "A network port or link went down.",
                "Exclude the node of that port and tell the administrators port and time.",
            ),
            (
                "net-hca-fault",
                "A network adapter itself failed.",
                "Exclude the node and tell the administrators which adapter.",
            ),
            (
                "net-gid-change",
                "The address table of a RoCE adapter changed while the job ran.",
                "Tell the administrators when and on which adapter it changed.",
            ),
            (
                "net-timeout",
                "The transport gave up retrying; where the packets were lost is not known.",
                "Compare the port counters of both ends before and after.",
            ),
            (
                "net-path-unreachable",
                "There is no route between the two adapters that were chosen.",
                "Check subnet, GID index and rail of both ends.",
            ),
            (
                "net-gdr-config",
                "GPU Direct RDMA does not work here because of host settings.",
                "Try once with NCCL_NET_GDR_LEVEL=LOC; ask about ACS and virtualisation.",
            ),
            (
                "net-local-qp-error",
                "An adapter refused access to its own memory on a connection.",
                "Look for memory that was freed or re-registered while in use.",
            ),
            (
                "net-nic-ordering",
                "Messages arrived torn or out of order: adapter or PCI ordering settings.",
                "Check relaxed ordering and adaptive routing against the vendor's advice.",
            ),
            (
                "net-memory-registration",
                "The adapter was refused the memory it wanted to pin.",
                "Check ulimit -l inside the job.",
            ),
            (
                "net-interface-config",
                "The chosen network interface is wrong, missing or out of reach.",
                "Set NCCL_SOCKET_IFNAME to the interface that all nodes share.",
            ),
            (
                "bootstrap-unreachable",
                "The ranks could not connect to the address that gathers them.",
                "Try to reach that address and port from the node that failed.",
            ),
            (
                "socket-reset",
                "An open connection was reset, for a reason outside the log.",
                "Look for a rank or node that ended at that moment.",
            ),
            (
                "foreign-connection",
                "Something that is not part of the job connected to its port.",
                "Find the scanner; use another port or interface.",
            ),
            (
                "peer-died",
                "What is seen is only that another process had gone.",
                "Find the process that went first, and its log.",
            ),
        ),
    ),
    (
        SETTINGS,
        (
            (
                "env-mismatch",
                "Library settings differ between the hosts of one job.",
                "Compare the NCCL variables of all ranks and export the same ones.",
            ),
            (
                "version-mismatch",
                "Hosts of one job run different versions of NCCL, PyTorch or CUDA.",
                "Use one image or environment on all nodes.",
            ),
            (
                "duplicate-rank",
                "One rank number registered twice.",
                "Check how RANK is computed, and for processes of an earlier attempt.",
            ),
            (
                "rank-count-mismatch",
                "The processes disagree about how many ranks there are.",
                "Compare WORLD_SIZE with tasks times processes per node.",
            ),
            (
                "rendezvous-timeout",
                "Not everybody came to the meeting point in time.",
                "Find the node without a trainer process.",
            ),
            (
                "stale-rendezvous",
                "An address or file of an earlier attempt was used.",
                "Make the rendezvous id new for every attempt.",
            ),
            (
                "port-in-use",
                "The rendezvous port was taken.",
                "Derive the port from the job id, or let the launcher choose one.",
            ),
            (
                "slow-init",
                "Setting up communicators is slow, not stuck.",
                "Wait, and measure it once with NCCL_DEBUG=INFO.",
            ),
        ),
    ),
    (
        SLURM,
        (
            (
                "slurm-time-limit",
                "Slurm ended it because its time limit was reached.",
                "Raise --time, or save a checkpoint on a signal before the end.",
            ),
            (
                "slurm-preempted",
                "Slurm took its nodes for a job that goes first.",
                "Submit with --requeue and save checkpoints often.",
            ),
            (
                "slurm-requeue",
                "It was put back into the queue and runs again from its last checkpoint.",
                "Check that the script loads the newest checkpoint.",
            ),
            (
                "slurm-node-fail",
                "A node of the job failed or was taken out.",
                "Start again without that node and tell the administrators.",
            ),
            (
                "slurm-launch-failure",
                "Slurm could not start the program at all.",
                "Check output path, work directory and interpreter; then ask for the slurmd log.",
            ),
        ),
    ),
    (
        NO_FAULT,
        (
            (
                "healthy",
                "Nothing is wrong: normal output, harmless warnings or a normal end.",
                "Nothing to do.",
            ),
            (
                "slow-run",
                "It makes progress, but slower than it should.",
                "Find the slowest rank, and whether it is always the same one.",
            ),
            (
                "nccl-bug",
                "A known fault of NCCL makes it report or behave wrongly.",
                "Check the version against the release notes and upgrade.",
            ),
            (
                "debug-tool-artifact",
                "The failure comes from a debugging layer and not from the job.",
                "Run without that debug setting.",
            ),
        ),
    ),
)
