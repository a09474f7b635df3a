"""The Script tab: the batch script as it was submitted."""

from slurmtop.model.script import BatchScript
from slurmtop.ui.present.script import script_lines
from slurmtop.ui.present.spans import Line
from slurmtop.ui.widgets.lines import LinesView


class ScriptView(LinesView, inherit_bindings=False):
    """Shows :attr:`script`; None while it is asked for."""

    def __init__(self, *, id: str) -> None:
        super().__init__(self._script_lines, id=id)
        self.script: BatchScript | None = None

    def show_script(self, script: BatchScript | None) -> None:
        """Show a script, or why there is none, or that it is awaited."""
        self.script = script
        self.rebuild()

    def _script_lines(self, width: int) -> tuple[Line, ...]:
        return script_lines(self.script, width)
