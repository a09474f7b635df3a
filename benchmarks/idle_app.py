"""The reference for memory and key-to-paint: a Textual app with a table of forty rows."""

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.widgets import DataTable


class IdleApp(App[None]):
    """Does nothing but move a cursor."""

    BINDINGS: ClassVar = [("j", "down", "down"), ("k", "up", "up"), ("q", "quit", "quit")]

    def compose(self) -> ComposeResult:
        yield DataTable(cursor_type="row")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("id", "name", "state")
        for number in range(40):
            table.add_row(str(100_000 + number), f"idle-{number}", "PENDING")

    def action_down(self) -> None:
        self.query_one(DataTable).action_cursor_down()

    def action_up(self) -> None:
        self.query_one(DataTable).action_cursor_up()


if __name__ == "__main__":
    IdleApp().run()
