"""What holds on every screen: help, palette, themes, modals, read-only, the person's own keys."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.color import Color
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.theme import BUILTIN_THEMES

from slurmtop.config import Config, ConfigError
from slurmtop.ui import themes as themes_module
from slurmtop.ui.app import SlurmtopApp
from slurmtop.ui.bindings import keymap_of
from slurmtop.ui.keys import KEYS, Level
from slurmtop.ui.screens.confirm import ConfirmScreen
from slurmtop.ui.screens.help import HelpScreen
from slurmtop.ui.screens.job import JobScreen
from slurmtop.ui.screens.jobs import JobsScreen
from slurmtop.ui.themes import VARIABLES, load_themes, read_theme
from tests.build import make_job
from tests.ui.golden import Golden, screen_text
from tests.ui.harness import Bench


async def test_help_lists_every_key(golden: Golden) -> None:
    app = Bench().app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("question_mark")
        golden("help", app)
        assert isinstance(app.screen, HelpScreen)
        for entry in KEYS:
            if entry.level is not Level.SAFE:
                assert f"  {entry.keys[0]}  " in screen_text(app), "on the first page"
        text = "\n".join("".join(part for part, _ in line) for line in app.screen._view.lines)
        for entry in KEYS:
            assert entry.help.split(" ")[0] in text, entry.id
        await pilot.press("G")
        assert "accounting has not said" in screen_text(app)
        await pilot.press("question_mark")
        assert len(app.screen_stack) == 1


async def test_every_modal_closes_with_escape_and_has_the_focus_inside() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job()])
        for key in ("question_mark", "colon", "ctrl+p", "K"):
            await pilot.press(key)
            await pilot.pause()
            screen = app.screen
            assert isinstance(screen, ModalScreen), key
            assert screen.focused is not None, key
            await pilot.press("escape")
            await pilot.pause()
            assert len(app.screen_stack) == 1, key


async def until(pilot: Pilot[None], holds: Callable[[], bool], deadline_s: float = 20.0) -> None:
    """Wait for a condition; the palette searches in a worker of its own."""
    loop = asyncio.get_running_loop()
    end = loop.time() + deadline_s
    while not holds():
        assert loop.time() < end, "waited in vain"
        await pilot.pause()


async def test_the_palette_offers_what_is_possible_and_does_it() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 40)) as pilot:
        await bench.answer(pilot, [make_job()])
        await pilot.press("colon")
        await pilot.pause()
        text = screen_text(app)
        assert "jobs: filter" in text
        assert "jobs: fold" not in text, "no group under the cursor"
        assert "up" not in text.split()
        await pilot.press(*"jobs: sort")
        await until(pilot, lambda: "jobs: filter" not in screen_text(app))
        await pilot.press("enter")
        await pilot.pause()
        screen = app.screen_stack[0]
        assert isinstance(screen, JobsScreen)
        await until(pilot, lambda: screen.view.sort == "id")


async def test_the_palette_puts_what_is_called_so_first() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(100, 40)) as pilot:
        await bench.answer(pilot, [make_job()])
        await pilot.press("colon", *"cancel")
        await until(pilot, lambda: "jobs: filter" not in screen_text(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))


async def test_the_footer_is_empty_below_a_dialog() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job()])
        assert "K cancel" in screen_text(app)
        for key in ("question_mark", "K", "colon"):
            await pilot.press(key)
            await until(pilot, lambda: "K cancel" not in screen_text(app))
            await pilot.press("escape")
            await until(pilot, lambda: "K cancel" in screen_text(app))


async def test_job_screen_opens_and_escape_comes_back() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2")])
        await pilot.press("j", "enter")
        await pilot.pause()
        assert isinstance(app.screen, JobScreen)
        assert app.screen.key.id == "2"
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        await pilot.press("k", "2")
        opened = app.screen_stack[-1]
        assert isinstance(opened, JobScreen)
        assert opened.key.id == "1"
        await pilot.press("1")
        assert len(app.screen_stack) == 1


async def test_two_without_a_job_says_so() -> None:
    app = Bench().app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await pilot.pause()
        assert any("no job to open" in note.message for note in app._notifications)


async def test_cancel_asks_first_and_marks_go_with_the_jobs() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2")])
        await pilot.press("K")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen)
        assert [target.ids for target in app.screen.action.targets] == [("1",)]
        await pilot.press("escape", "space", "space", "K")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen)
        assert [target.ids for target in app.screen.action.targets] == [("1",), ("2",)]


async def test_a_job_that_left_is_not_cancelled() -> None:
    bench = Bench()
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        await bench.answer(pilot, [])
        await pilot.press("K")
        await pilot.pause()
        assert not isinstance(app.screen, ConfirmScreen)


async def test_read_only_takes_the_acting_keys_away() -> None:
    where = "/etc/slurmtop/config.toml"
    bench = Bench(read_only=True, config=Config(read_only=True, read_only_from=where))
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        assert "read-only" in screen_text(app)
        assert "K cancel" not in screen_text(app)
        await pilot.press("K")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert [note.message for note in app._notifications] == [
            f"cancel does nothing here: slurmtop runs read-only, as {where} says: set"
            " read_only: false in your own settings to change jobs"
        ]
        await pilot.press("question_mark")
        assert "Read-only" in screen_text(app)


async def test_the_demo_is_always_named() -> None:
    bench = Bench(demo="hang")
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        assert "DEMO hang, simulated" in screen_text(app)


async def test_own_keys_replace_and_show_everywhere() -> None:
    config = Config(keymap=(("jobs.sort", ("f5",)),))
    bench = Bench(config=config)
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        screen = app.screen
        assert isinstance(screen, JobsScreen)
        await pilot.press("s")
        assert screen.view.sort == "natural"
        await pilot.press("f5")
        assert screen.view.sort == "id"
        assert "f5 sort" in screen_text(app)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
        text = "\n".join("".join(part for part, _ in line) for line in app.screen._view.lines)
        assert "  f5 " in text


async def test_clashing_own_keys_are_reported() -> None:
    bench = Bench(config=Config(keymap=(("jobs.sort", ("a",)),)))
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [make_job("1")])
        said = " ".join(note.message for note in app._notifications)
        assert "a stays jobs.all_users; jobs.sort does not get it and keeps s" in said
        await pilot.press("s", "a")
        assert isinstance(app.screen, JobsScreen)
        assert app.screen.view.sort == "id"
        assert app.feed.all_users


async def test_an_acting_key_never_takes_the_key_of_a_safe_one() -> None:
    bench = Bench(config=Config(keymap=(("job.cancel", ("k",)),)))
    app = bench.app()
    async with app.run_test(size=(100, 24)) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2")])
        said = " ".join(note.message for note in app._notifications)
        assert "k stays jobs.up; job.cancel does not get it and keeps K" in said
        await pilot.press("j", "k")
        assert isinstance(app.screen, JobsScreen)
        assert app.screen.view.cursor_index == 0
        await pilot.press("K")
        assert isinstance(app.screen, ConfirmScreen)


@pytest.mark.parametrize(
    ("keymap", "own", "words"),
    [
        ({"jobs.sort": ("q",)}, {}, ["q stays app.quit", "jobs.sort", "keeps s"]),
        ({"app.quit": ("j",)}, {}, ["j stays jobs.down", "app.quit", "keeps q"]),
        ({"logs.stream": ("j",)}, {}, ["j stays job.down", "keeps l"]),
        ({"jobs.sort": ("x",), "logs.stream": ("x",)}, {"jobs.sort": "x", "logs.stream": "x"}, []),
        ({"jobs.sort": ("a",), "jobs.all_users": ("s",)}, None, []),
        ({"job.cancel": ("x",), "jobs.sort": ("x",)}, {"jobs.sort": "x"}, ["x stays jobs.sort"]),
        ({"jobs.sort": ("x",), "app.quit": ("x",)}, {"app.quit": "x"}, ["x stays app.quit"]),
        ({"app.quit": ("nosuchkey",)}, {}, ["no key 'nosuchkey'", "app.quit keeps q"]),
        ({"app.quit": ("f5", "pgup")}, {}, ["no key 'pgup'; did you mean 'pageup'?"]),
        ({"jobs.sort": ("ctrl+x", "F", "%")}, {"jobs.sort": "ctrl+x,F,percent_sign"}, []),
    ],
)
def test_what_is_left_of_a_keymap(
    keymap: dict[str, tuple[str, ...]], own: dict[str, str] | None, words: list[str]
) -> None:
    found, said = keymap_of(Config(keymap=tuple(keymap.items())))
    if own is not None:
        assert found == own
    assert len(said) == bool(words)
    for word in words:
        assert word in said[0], said


async def test_q_quits() -> None:
    app = Bench().app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("q")
    assert app.return_code == 0


# Themes


async def test_t_goes_through_our_themes() -> None:
    app = Bench().app()
    async with app.run_test(size=(80, 24)) as pilot:
        seen = [app.theme]
        for _ in range(3):
            await pilot.press("t")
            seen.append(app.theme)
        assert seen == ["slurmtop-dark", "slurmtop-light", "slurmtop-contrast", "slurmtop-dark"]


@pytest.mark.parametrize("name", sorted(BUILTIN_THEMES))
async def test_any_theme_of_textual_works(name: str) -> None:
    bench = Bench(config=Config(theme=name))
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2", "FAILED")])
        assert app.theme == name
        assert "FAILED" in screen_text(app)


async def test_an_unknown_theme_is_said_and_the_screen_lives() -> None:
    app = Bench(config=Config(theme="nosuch")).app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        said = " ".join(note.message for note in app._notifications)
        assert "there is no theme 'nosuch' (type : and theme" in said


async def test_the_nearest_theme_is_named() -> None:
    app = Bench(config=Config(theme="slurmtop-lite")).app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        said = " ".join(note.message for note in app._notifications)
        assert "did you mean 'slurmtop-light'?" in said


def test_our_themes_define_every_variable() -> None:
    loaded = load_themes()
    assert loaded.failures == ()
    assert {theme.name for theme in loaded.themes} == {
        "slurmtop-dark",
        "slurmtop-light",
        "slurmtop-contrast",
    }
    for theme in loaded.themes:
        assert set(VARIABLES) <= set(theme.variables), theme.name


def contrast(one: Color, other: Color) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""

    def luminance(color: Color) -> float:
        parts = [value / 255 for value in color.rgb]
        linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_yardstick_of_contrast() -> None:
    assert contrast(Color.parse("#000000"), Color.parse("#ffffff")) == pytest.approx(21)


def test_our_themes_are_readable() -> None:
    for theme in load_themes().themes:
        if theme.ansi:
            continue
        for ground in (theme.background, theme.surface):
            assert ground is not None
            for name in ("foreground", *VARIABLES):
                text = theme.foreground if name == "foreground" else theme.variables[name]
                assert text is not None
                ratio = contrast(Color.parse(text), Color.parse(ground))
                assert ratio >= 4.5, f"{theme.name}: {name} on {ground}: {ratio:.1f}"
        cursor = theme.variables
        assert (
            contrast(
                Color.parse(cursor["block-cursor-foreground"]),
                Color.parse(cursor["block-cursor-background"]),
            )
            >= 4.5
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "name: x\ncolors:\n  primary: '#123456'\ncolor: red\n",
            ["line 4", "did you mean 'colors'"],
        ),
        ("name: x\ncolors:\n  primary: '#12'\n", ["line 3", "is no colour"]),
        ("name: x\ncolors:\n  primry: '#123456'\n", ["line 3", "did you mean 'primary'"]),
        ("colors:\n  primary: '#123456'\n", ["needs a name"]),
        ("name: x\n", ["colors need primary"]),
        ("name: x\ncolors: [1]\n", ["line 2", "colors"]),
        ("name: x\ndark: perhaps\ncolors: {primary: red}\n", ["line 2", "true or false"]),
        ("- a\n", ["line 1"]),
        ("name: [\n", ["not YAML"]),
    ],
)
def test_a_broken_theme_is_one_sentence(tmp_path: Path, text: str, words: list[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_theme(path)
    for word in ("mine.yaml", *words):
        assert word in str(caught.value)


async def test_a_broken_theme_is_reported_and_not_fatal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bad.yaml").write_text("name: [\n", encoding="utf-8")
    good = themes_module.themes_folder() / "slurmtop-dark.yaml"
    (tmp_path / "good.yaml").write_text(good.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(themes_module, "themes_folder", lambda: tmp_path)
    app = Bench().app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.theme == "slurmtop-dark"
        assert any("bad.yaml" in note.message for note in app._notifications)


# Without colour


def colours_of(app: SlurmtopApp, word: str = "") -> set[str]:
    """The text colours with which ``word`` is painted; without a word all of the screen."""
    return {
        segment.style.color.name
        for strip in app.screen._compositor.render_strips()
        for segment in strip
        if word in segment.text and segment.style is not None and segment.style.color is not None
    }


async def test_no_color_leaves_words_and_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "NO_COLOR", "1")
    bench = Bench()
    app = bench.app()
    assert app.no_color
    async with app.run_test(size=(80, 24)) as pilot:
        jobs = [make_job("1"), make_job("2", "PENDING"), make_job("3", "FAILED")]
        await bench.answer(pilot, jobs)
        await pilot.press("space")
        text = screen_text(app)
        for word in ("running", "pending", "FAILED", "\n>", "\n *"):
            assert word in text
        for key in ("K", "question_mark"):
            await pilot.press(key)
            await pilot.pause()
            assert colours_of(app) == set()


SIXTEEN = {"default", *(f"color({number})" for number in range(16))}


async def test_sixteen_colours_use_the_terminals_own() -> None:
    bench = Bench(config=Config(theme="slurmtop-contrast"))
    app = bench.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await bench.answer(pilot, [make_job("1"), make_job("2", "FAILED")])
        assert colours_of(app, "FAILED") == {"color(9)"}
        assert colours_of(app) <= SIXTEEN
        await pilot.press("question_mark")
        assert colours_of(app) <= SIXTEEN


@pytest.mark.parametrize("term", ["linux", "screen", "xterm"])
async def test_a_terminal_of_sixteen_colours_gets_that_theme(
    term: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "TERM", term)
    app = Bench().app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert app.theme == "slurmtop-contrast"


# A wide net


async def test_a_broken_background_task_is_said() -> None:
    class Broken:
        async def run(self) -> None:
            raise RuntimeError("a fault of ours")

        def poke(self) -> None: ...

        def slow_down(self, factor: float) -> None: ...

    def broken(**_how: Any) -> Any:
        return Broken()

    app = Bench(open_queue=broken).app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert any("a fault of ours" in note.message for note in app._notifications)
        assert app.is_running
