"""Slurm's states of a job in plain words: what each means, is mistaken for, and asks for."""

from typing import NamedTuple


class StateWord(NamedTuple):
    meaning: str
    mistaken_for: str
    first_action: str


STATE_WORDS: dict[str, StateWord] = {
    "PENDING": StateWord(
        "It waits; the reason beside it says for what.",
        "a problem: Priority and Resources are ordinary waiting.",
        "slurmtop why JOB tells the reason and the expected start",
    ),
    "RUNNING": StateWord(
        "Its nodes are allocated and its script runs.",
        "progress: a job that hangs is RUNNING too.",
        "look at the last step in its log",
    ),
    "SUSPENDED": StateWord(
        "Its processes are stopped and keep their nodes.",
        "a hang: Slurm or an administrator stopped it.",
        "wait, or ask who suspended it",
    ),
    "COMPLETED": StateWord(
        "The batch script returned 0.",
        "success of every step: a script that ignores a failed srun completes as well.",
        "compare the exit codes of its steps (sacct -j JOB)",
    ),
    "COMPLETING": StateWord(
        "It is over; processes are being ended and the epilog runs.",
        "still running: after some minutes a process cannot be killed (file system, driver).",
        "after ten minutes tell the administrators which node",
    ),
    "CANCELLED": StateWord(
        "A person or an administrator ended it, or its dependency can never be met.",
        "a crash: what ranks print while they are ended is no cause.",
        "sacct -j JOB -o State%40 tells by whom",
    ),
    "FAILED": StateWord(
        "The batch script returned something other than 0, or died of a signal.",
        "a fault of a node: that would be NODE_FAIL.",
        "read the first error in its log: slurmtop triage JOB",
    ),
    "TIMEOUT": StateWord(
        "Slurm ended it at its time limit.",
        "a crash: SIGTERM, then SIGKILL, were Slurm's.",
        "raise --time, or save a checkpoint on a signal (--signal)",
    ),
    "NODE_FAIL": StateWord(
        "A node of it failed or did not answer any more.",
        "a fault of the program; often another node of the job is well.",
        "see scontrol show node; requeue without that node",
    ),
    "PREEMPTED": StateWord(
        "A job of higher priority took its nodes.",
        "a failure: nothing was wrong with it.",
        "submit with --requeue and save checkpoints often",
    ),
    "BOOT_FAIL": StateWord(
        "A node of it did not boot.", "a fault of the job.", "requeue it; tell the administrators"
    ),
    "DEADLINE": StateWord(
        "It could not end before its --deadline any more.",
        "the time limit.",
        "move the deadline or shorten --time",
    ),
    "OUT_OF_MEMORY": StateWord(
        "The kernel's OOM killer ended a process of it at the memory limit of the job.",
        "memory of a GPU: that ends with an exception and the state FAILED.",
        "ask for more --mem, or find what grew",
    ),
    "CONFIGURING": StateWord(
        "Its nodes are being made ready or booted.",
        "running: its script has not begun.",
        "wait; after some minutes see the state of its nodes",
    ),
    "REQUEUED": StateWord(
        "It was put back into the queue and will start again.",
        "a failure of the new run: the end in the log is of the one before.",
        "check that the script loads the newest checkpoint",
    ),
    "REQUEUE_HOLD": StateWord(
        "It was put back into the queue and is held.",
        "ordinary waiting: it starts only when it is released.",
        "find the failure, then scontrol release JOB",
    ),
    "SPECIAL_EXIT": StateWord(
        "It was requeued and held because of a special exit code.",
        "ordinary waiting: it starts only when it is released.",
        "read its log, then scontrol release JOB",
    ),
    "STOPPED": StateWord(
        "It got SIGSTOP and keeps its nodes.",
        "a hang.",
        "scancel -s CONT JOB lets it go on",
    ),
    "REVOKED": StateWord(
        "Another cluster of the federation runs it.",
        "a failure.",
        "sacct --federation -j JOB tells where",
    ),
    "STAGE_OUT": StateWord(
        "It is over; the burst buffer still copies its data.",
        "still running.",
        "wait",
    ),
    "SIGNALING": StateWord("It is being sent a signal.", "a failure.", "wait"),
    "RESIZING": StateWord("Its size is about to change.", "a failure.", "wait"),
    "REQUEUE_FED": StateWord("The federation puts it back into the queue.", "a failure.", "wait"),
    "RESV_DEL_HOLD": StateWord(
        "Its reservation was deleted, so it is held.",
        "ordinary waiting.",
        "scontrol update JobId=JOB ReservationName= and release it",
    ),
    "EXPEDITING": StateWord("It was requeued and goes first.", "a failure.", "wait"),
}

#: What sinfo and scontrol say of a node, without the marks behind it (``idle*``, ``mix-``).
NODE_WORDS: dict[str, StateWord] = {
    "IDLE": StateWord(
        "Nothing runs on the node.",
        "free: with * it does not answer, with ~ it is switched off, with - it is spoken for.",
        "slurmtop nodes shows which are free",
    ),
    "MIXED": StateWord(
        "Some of the node is in use.", "full.", "slurmtop nodes shows how many GPUs are free"
    ),
    "ALLOCATED": StateWord("All of the node is in use.", "broken.", "wait"),
    "DRAIN": StateWord(
        "The node takes no new jobs; draining while one still runs on it, drained after that.",
        "down: what runs there goes on.",
        "sinfo -R tells why and since when",
    ),
    "DOWN": StateWord(
        "Slurm does not use the node.",
        "a crashed node: with * it does not answer; without, an administrator may have set it.",
        "sinfo -R tells why and since when",
    ),
    "FAIL": StateWord(
        "The node is about to fail and takes no new jobs.", "down.", "save and move your job"
    ),
    "MAINTENANCE": StateWord(
        "A maintenance reservation holds the node.", "broken.", "scontrol show reservation"
    ),
    "RESERVED": StateWord("A reservation holds the node.", "free.", "scontrol show reservation"),
    "NOT_RESPONDING": StateWord(
        "slurmd on the node does not answer the controller.",
        "a crashed node: the network or a load may be why.",
        "look again in a few minutes; tell the administrators",
    ),
    "POWERED_DOWN": StateWord(
        "The node is switched off to save power.", "broken.", "submit: Slurm switches it on"
    ),
    "PLANNED": StateWord(
        "The node is kept free for a job that starts soon.", "free.", "ask for a short time limit"
    ),
    "INVALID_REG": StateWord(
        "The node registered with less than is configured (memory, GPUs).",
        "down.",
        "tell the administrators: scontrol show node has the reason",
    ),
}
