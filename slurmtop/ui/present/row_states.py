"""How a row of the Jobs screen calls the state of a job or a group, and in which role."""

from slurmtop.model.job import Phase

STATE_WORDS = {
    "PENDING": "pending",
    "RUNNING": "running",
    "SUSPENDED": "suspended",
    "COMPLETED": "done",
    "CANCELLED": "cancelled",
    "FAILED": "FAILED",
    "TIMEOUT": "TIMEOUT",
    "NODE_FAIL": "NODE FAIL",
    "PREEMPTED": "PREEMPTED",
    "BOOT_FAIL": "BOOT FAIL",
    "DEADLINE": "DEADLINE",
    "OUT_OF_MEMORY": "NO MEMORY",
    "COMPLETING": "ending",
    "STAGE_OUT": "ending",
    "CONFIGURING": "starting",
    "RESIZING": "resizing",
    "REQUEUED": "requeued",
    "REQUEUE_FED": "requeued",
    "REQUEUE_HOLD": "held",
    "SPECIAL_EXIT": "held",
    "RESV_DEL_HOLD": "held",
    "STOPPED": "stopped",
    "REVOKED": "elsewhere",
    "SIGNALING": "running",
}
STATE_ROLES = {
    Phase.PENDING: "wait",
    Phase.RUNNING: "good",
    Phase.SUSPENDED: "warn",
    Phase.ENDING: "busy",
    Phase.COMPLETED: "",
    Phase.FAILED: "bad",
    Phase.CANCELLED: "warn",
    Phase.ELSEWHERE: "dim",
    Phase.UNKNOWN: "warn",
}

GROUP_STATES = {
    "R": ("running", "good"),
    "S": ("suspended", "warn"),
    "CG": ("ending", "busy"),
    "PD": ("pending", "wait"),
    "F": ("FAILED", "bad"),
    "CD": ("done", ""),
    "CA": ("cancelled", "warn"),
    "RV": ("elsewhere", "dim"),
    "?": ("unknown", "warn"),
}
