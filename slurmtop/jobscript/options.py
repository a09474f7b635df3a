"""The options of sbatch and srun: which of them take a value, so that words can be told apart.

Source: sbatch(1) and srun(1) of Slurm 22.05 to 26.05. A long option may be shortened to any
prefix that names only one (getopt_long does that).
"""


def words_of(text: str) -> frozenset[str]:
    """The words of a table that is written as text."""
    return frozenset(text.split())


#: Long options that take a value, as ``--name=value`` or ``--name value``.
WITH_VALUE = words_of(
    """
    account acctg-freq accel-bind array batch bb bbf bcast-exclude begin chdir cluster-constraint
    clusters comment constraint container container-id core-spec cores-per-socket cpu-bind cpu-freq
    cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution epilog error exclude
    export export-file extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node
    gpus-per-socket gpus-per-task gres gres-flags het-group hint input job-name jobid
    kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu
    mincpus mpi msg-timeout network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket oom-kill-step open-mode output partition power prefer priority
    profile prolog qos relative reservation signal slurmd-debug sockets-per-node
    stepmgr switches task-epilog task-prolog thread-spec threads threads-per-core time time-min tmp
    tres-bind tres-per-task uid wait-all-nodes wckey wrap container-image container-mounts
    container-workdir container-name container-env container-save
    """
)

#: Long options without a value, or with one that must follow ``=``.
WITHOUT_VALUE = words_of(
    """
    bcast compress contiguous disable-status exact exclusive external get-user-env help hold
    ignore-pbs immediate interactive kill-on-bad-exit label multi-prog nice no-allocate no-kill
    no-requeue overcommit overlap oversubscribe parsable preserve-env propagate pty quiet
    quit-on-interrupt reboot requeue resv-ports segment send-libs share spread-job stdin test-only
    unbuffered usage use-min-nodes verbose version whole x11 container-mount-home
    no-container-mount-home container-writable container-remap-root no-container-entrypoint
    """
)

#: Short options that take a value: ``-n4`` or ``-n 4``. ``W`` takes one for srun alone.
SHORT_WITH_VALUE = frozenset("AabBCcDdeFGiJLMmNnopqrSTtwx")
SHORT_LONG = {
    "A": "account",
    "J": "job-name",
    "N": "nodes",
    "n": "ntasks",
    "o": "output",
    "e": "error",
    "p": "partition",
    "q": "qos",
    "t": "time",
    "a": "array",
    "d": "dependency",
}


def long_name(written: str) -> str:
    """The whole name behind what may be a shortened one; ``written`` itself where none fits."""
    if written in WITH_VALUE or written in WITHOUT_VALUE:
        return written
    fits = [name for name in (*WITH_VALUE, *WITHOUT_VALUE) if name.startswith(written)]
    return fits[0] if len(fits) == 1 else written


def takes_value(written: str, *, srun: bool = False) -> bool:
    """Does the long option ``written`` (without ``--`` and ``=``) take the next word?

    ``--wait`` does for srun and not for sbatch.
    """
    if written == "wait":
        return srun
    return long_name(written) in WITH_VALUE


def short_takes_next(word: str, *, srun: bool = False) -> bool:
    """Does ``word``, a bundle such as ``-n`` or ``-vn``, take the next word as its value?"""
    valued = SHORT_WITH_VALUE | {"W"} if srun else SHORT_WITH_VALUE
    for place, letter in enumerate(word[1:], start=1):
        if letter in valued:
            return place == len(word) - 1
        if letter in "kKI":
            return False
    return False
