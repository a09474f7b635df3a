"""What this person may do to other people's jobs: asked once, and only when it matters."""

import re

from slurmtop.collect.asking import check, run_slurm
from slurmtop.collect.cluster_info import read_cluster_info
from slurmtop.collect.poller import SourceFailed
from slurmtop.collect.who import Who
from slurmtop.model.ports import Runner
from slurmtop.model.rights import UNKNOWN_RIGHTS, AccountUser, Rights
from slurmtop.parse.slurm.users import parse_users

#: slurmdbd may hang for long; whoever waits for a dialog does not.
TIMEOUT_S = 10.0
#: sacctmgr reads a comma as a list and ``=`` as another condition.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@$-]{0,63}", re.ASCII)
_EVERYTHING = Rights(operator=True, coordinates=frozenset())


async def read_rights(runner: Runner, who: Who, cluster: str) -> Rights:
    """Root, the controller's own user, an operator, a coordinator, or none of them.

    Never raises: where accounting does not answer, only Slurm can tell, and it does so when it
    is asked to act. One ``sacctmgr``, and one ``scontrol show config`` for a user who is no
    operator there.
    """
    if who.uid == 0:
        return _EVERYTHING
    user = await _ask_accounting(runner, who)
    if user is not None and user.operator:
        return Rights(operator=True, coordinates=user.coordinates)
    controller_user = await _controller_user(runner, cluster)
    if controller_user is not None and controller_user == who.name:
        return _EVERYTHING
    if user is None:
        return UNKNOWN_RIGHTS
    # Without the name of the controller's user nobody can be told that they are not it.
    operator = False if controller_user is not None else None
    return Rights(operator=operator, coordinates=user.coordinates)


async def _ask_accounting(runner: Runner, who: Who) -> AccountUser | None:
    if not _NAME.fullmatch(who.name):
        return None
    argv = ("sacctmgr", "-n", "-P", "show", "user", "where", f"name={who.name}", "withcoord")
    try:
        answer = check(argv, await run_slurm(runner, argv, timeout_s=TIMEOUT_S))
    except SourceFailed:
        return None
    if not answer.strip():
        # Accounting has no such user: then nobody made it an operator or a coordinator.
        return AccountUser(name=who.name, operator=False)
    parsed = parse_users(answer)
    return next((user for user in parsed.rows if user.name.lower() == who.name.lower()), None)


async def _controller_user(runner: Runner, cluster: str) -> str | None:
    try:
        return (await read_cluster_info(runner, cluster=cluster)).slurm_user
    except SourceFailed:
        return None
