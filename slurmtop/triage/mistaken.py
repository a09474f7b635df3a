"""What each class of fault is easily taken for, and what tells the two apart.

One sentence a class, for ``slurmtop explain``: most hours are lost on the wrong suspect.
"""

MISTAKEN_FOR: dict[str, str] = {
    # Who called what
    "collective-op-mismatch": "a network that hangs: both sides wait in an operation, not in the "
    "same one at that sequence number.",
    "collective-shape-mismatch": "a slow link: the sizes differ at one sequence number, "
    "whatever the network.",
    "collective-order-skew": "a dead rank: everybody waits, one of them at another "
    "sequence number; the one ahead may be the one that made a call too many.",
    "missing-rank": "the ranks that report the timeout: they are the ones that came. The one to "
    "look at is the one that did not.",
    "data-exhausted": "a hang at the end of an epoch: one rank has left the loop.",
    "unmatched-p2p": "a network fault between two pipeline stages: sends and receives "
    "do not match in number.",
    "concurrent-use": "a hang that comes and goes with the hardware: it follows the program to any "
    "node.",
    "ddp-unused-parameters": "a mismatch of collectives: the reducer of one rank still waits for "
    "gradients that never come.",
    "host-work-exceeds-timeout": "a hang: the late rank works (evaluates, saves, tokenises) and "
    "would have come.",
    "startup-skew": "a broken rendezvous: all ranks come, some of them minutes late.",
    "rank-elsewhere": "a network fault: the others wait for a rank that never came, and their "
    "links are fine.",
    "data-loader-stuck": "slow computing: the GPU of that rank idles while the others spin.",
    "checkpoint-stuck": "a slow checkpoint: a slow one still writes bytes between two looks.",
    "gil-held": "a deadlock between Python threads: one of them holds the lock in C code.",
    "python-exception": "the NCCL errors of the other ranks, which only lost their peer: the "
    "earliest exception that is not about NCCL counts.",
    "cuda-assert": "a hardware fault: an index out of range is the usual reason; CUDA reports it "
    "at a later line.",
    "task-exit": "the task that srun names last: the first one to end made the others end.",
    "user-interrupt": "a crash: Python prints a traceback for ctrl-c as well.",
    # Timeouts
    "watchdog-timeout-unattributed": "the fault of the rank that prints it: it only waited the "
    "longest.",
    "heartbeat-unattributed": "a GPU fault: the watchdog thread could not run, often because "
    "something held Python's lock or a CUDA call did not return.",
    "first-collective-stuck": "a mismatch of the program: nothing was exchanged in this "
    "group yet, so transport and set-up come first.",
    "device-stall": "the fault of whoever is found first: every stack looks alike, and a rank that "
    "waits for its device shows nothing of its peers.",
    "ras-count-skew": "proof against the smaller group: counts are read while the job runs, and a "
    "minority may be ahead.",
    "opcount-not-usable": "a rank that is behind: the counter shows the same number whatever "
    "was called.",
    "teardown-hang": "a failed run: the work and the last checkpoint are usually complete.",
    # GPUs and hosts
    "gpu-oom": "host memory (host-oom): the process lives on and prints it itself; another process "
    "on the same GPU may hold what is missing.",
    "host-oom": "a crash without a reason: SIGKILL leaves no message; look for oom_kill of "
    "Slurm or the kernel.",
    "process-stopped": "a dead process: it still holds its GPU and its connections.",
    "io-stuck": "a fault of the rank's program: a verdict names the rank that waits, to tell "
    "where; the mount or the driver of its node is to blame.",
    "node-frozen": "a network fault: the node may still answer to a ping.",
    "gpu-hw-fault": "a fault of the program: Xid 13, 31, 43 and 45 usually are the program's; 48, "
    "63, 64, 79, 94 and 95 are not.",
    "nvlink-fault": "a GPU that failed: the peer at the other end of the link reports it too.",
    "fabric-manager": "a fault of NCCL: multicast needs a fabric manager that runs and a switch "
    "that answers.",
    "cuda-driver-error": "a broken GPU: driver, container and CUDA versions come first.",
    "topology-detection": "a missing GPU: the container hides parts of /sys.",
    "p2p-hang": "a network fault: it happens on one host alone; ACS or IOMMU lets writes vanish.",
    "shm-exhausted": "a crash of the program (SIGBUS): /dev/shm is too small, often 64 MB in a "
    "container.",
    "fd-limit": "a network fault: sockets cannot be opened because nothing can.",
    "duplicate-gpu": "a GPU that is lost: two ranks chose the same one, another is idle.",
    "data-corruption": "a bad learning rate: the same step on other nodes gives other numbers.",
    # Network
    "net-link-fault": "the fault of the peers that print status=12: they only lost the node whose "
    "port went down.",
    "net-hca-fault": "a link fault: the adapter reports a fatal error of its own.",
    "net-gid-change": "a link fault: the port stays up, but its address is another one.",
    "net-timeout": "proof against the peer that is named: packets may be lost anywhere between.",
    "net-path-unreachable": "a link that is down: both ports are up and there is no route between.",
    "net-gdr-config": "a broken adapter: without GPU Direct the same adapter works.",
    "net-local-qp-error": "the other end's fault: the adapter refused its own host's memory.",
    "net-nic-ordering": "a size mismatch of the program: it comes and goes, with sizes that nobody "
    "sent.",
    "net-memory-registration": "out of memory: there is enough, but the limit of pinned memory "
    "(ulimit -l) is too low.",
    "net-interface-config": "a firewall: NCCL chose an interface (docker0, a private net) that the "
    "others cannot reach.",
    "bootstrap-unreachable": "a dead node: the address is wrong, or a firewall drops the port.",
    "socket-reset": "the culprit itself: whoever prints a reset lost a peer; find who went first.",
    "foreign-connection": "a version mismatch: a scanner or health check spoke to NCCL's port.",
    "peer-died": "the culprit: whoever reports it is alive; the peer's own log has the reason.",
    # Start-up and settings
    "env-mismatch": "a network fault: one side uses another protocol, algorithm or buffer size.",
    "version-mismatch": "a torn message: the two ends speak different versions.",
    "duplicate-rank": "a rank that is missing: another one has its number.",
    "rank-count-mismatch": "a rank that is late: it counts on another world size.",
    "rendezvous-timeout": "a network fault: count the tasks that came; the one that did not start "
    "has another log.",
    "stale-rendezvous": "a hang at start-up: everybody waits at the address of a run that is over.",
    "port-in-use": "a network fault: another process on the same host has the port.",
    "slow-init": "a hang: it goes on, only slowly; thousands of ranks take minutes.",
    # Slurm
    "slurm-time-limit": "a crash: ranks print what they like when SIGTERM comes at the limit.",
    "slurm-preempted": "a failure: nothing was wrong with it; it made room.",
    "slurm-requeue": "a failure: the same job id runs again, its log goes on.",
    "slurm-node-fail": "a fault of the program: errors of the ranks follow from the lost node.",
    "slurm-launch-failure": "a crash of the program: it never ran.",
    # Not a fault
    "healthy": "nothing: warnings about InfiniBand, plugins and optional libraries are harmless.",
    "slow-run": "a hang: look twice, a minute apart; a step counter that moves is no hang.",
    "nccl-bug": "a fault of the hardware: the release notes of a newer NCCL name it.",
    "debug-tool-artifact": "a mismatch of the program: without the debug setting it is gone.",
}
