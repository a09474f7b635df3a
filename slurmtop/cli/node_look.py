"""The looks at nodes that the screen begins: what the settings allow, over the wiring's ways."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from slurmtop.cli.wiring import Wiring
from slurmtop.collect.live import LookSettings, look_live
from slurmtop.collect.nodes.stack_tools import tool_words
from slurmtop.config import Config, NodeAccess
from slurmtop.model.facts import JobFacts
from slurmtop.model.live import LiveFacts
from slurmtop.ui.services import LookAtNodes


def make_look_at_nodes(wiring: Wiring, config: Config) -> LookAtNodes | None:
    """What the Job page looks at nodes with; None where the settings close them."""
    if config.node_access is NodeAccess.OFF:
        return None
    plain = LookSettings(once=True, sudo=config.node_sudo, tools=tool_words(config.stacks))

    async def look(facts: JobFacts, *, asked: bool) -> AsyncGenerator[LiveFacts, None]:
        stream = look_live(
            wiring.runner,
            wiring.clock,
            facts,
            settings=replace(plain, always=asked),
            expect=wiring.expect,
            reached=wiring.reach,
            mark=wiring.mark,
        )
        async with aclosing(stream) as news:
            async for live in news:
                yield live

    return look
