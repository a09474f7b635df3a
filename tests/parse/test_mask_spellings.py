"""Secrets in less common spellings, behind what launchers put in front, and in colours."""

import pytest

from tests.parse.test_mask import MIXED, TOKENS, masked


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("API_KEY=hun(cd)ter2 x", "API_KEY=‹masked› x"),
        ("f(token=hunter2(3), n=3)", "f(token=‹masked›(3), n=3)"),
        ("export PASSWORD=hun\\'ter2 x", "export PASSWORD=‹masked› x"),
        ("curl --user 'bob:hun ter2' -o x", "curl --user 'bob:‹masked›' -o x"),
        ("mysql -u bob -p'hun ter2' jobs", "mysql -u bob -p'‹masked›' jobs"),
        ('login(password=f"hunter2")', 'login(password=f"‹masked›")'),
        ("X(password=SecretStr('hunter2'))", "X(password=SecretStr('‹masked›'))"),
        (
            '{"value": "hunter2", "name": "DB_PASSWORD"}, {"value": 1, "name": "n"}',
            '{"value": "‹masked›", "name": "DB_PASSWORD"}, {"value": 1, "name": "n"}',
        ),
        (
            f"https://api.telegram.org/bot123456789:AA{MIXED}/sendMessage",
            "https://api.telegram.org/bot123456789:‹masked›/sendMessage",
        ),
        ("x --pw hunter2 --n 3", "x --pw ‹masked› --n 3"),
        ("x --db-auth=hunter2 --n 3", "x --db-auth=‹masked› --n 3"),
        ("['--pw', 'hunter2']", "['--pw', '‹masked›']"),
        ("openssl enc -passin pass:hunter2 -in x", "openssl enc -passin pass:‹masked› -in x"),
        (f"{TOKENS['aws']}:{MIXED}", "‹masked›:‹masked›"),
        ("password\u00a0=\u00a0hunter2 x", "password\u00a0=\u00a0‹masked› x"),
        ("api_key＝hunter2 x", "api_key＝‹masked› x"),
        ("api_key&#61;hunter2&amp;n", "api_key&#61;‹masked›&amp;n"),
        (
            "{&quot;password&quot;: &quot;hunter2&quot;, &quot;n&quot;: 3}",
            "{&quot;password&quot;: &quot;‹masked›&quot;, &quot;n&quot;: 3}",
        ),
    ],
)
def test_less_common_spellings(before: str, after: str) -> None:
    assert masked(before) == after


@pytest.mark.parametrize("front", ["", "0:   ", "[rank3]: ", "  - ", "12: RuntimeError: "])
def test_passwords_at_the_start_of_what_a_line_says(front: str) -> None:
    assert masked(f"{front}pass: hunter2") == f"{front}pass: ‹masked›"
    assert masked(f"{front}password: hun ter two") == f"{front}password: ‹masked›"


@pytest.mark.parametrize("escape", ["\x1b", "\\u001b", "\\x1b", "\\033", "#033", "^["])
def test_a_line_with_a_secret_loses_its_colours_and_no_other(escape: str) -> None:
    on, off = f"{escape}[36m", f"{escape}[0m"
    green = f"{on}green{off} line\n"
    for text, said in (
        (f"{on}password{off}={on}hunter2{off} n={on}3{off}", "password=‹masked› n=3"),
        (f"pass{on}word{off}=hun{on}ter{off}2", "password=‹masked›"),
        (f"use {on}{TOKENS['hugging face']}{off}", "use ‹masked›"),
        (f"{on}pass{off}: hunter2", "pass: ‹masked›"),
    ):
        assert masked(f"{green}{text}\n{green}") == f"{green}{said}\n{green}"
