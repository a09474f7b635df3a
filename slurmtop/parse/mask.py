"""Secrets out of anything that is written to a file: bundles, recordings, reports.

Works on raw bytes of any source (logs, environments, JSON, YAML, command lines)::

    export WANDB_API_KEY=3f2a...      ->  export WANDB_API_KEY=‹masked›
    {"hf_token": "hf_Abc...", "n": 3} ->  {"hf_token": "‹masked›", "n": 3}

The mark says nothing about what stood there. Lines stay where they were and everything a
parser reads (ids, hosts, states, exit codes, GPU uuids, hashes) stays as it was, so the same
verdict comes out of the masked bytes. Masking twice gives the same bytes as masking once. A
secret cut by the end of a line is masked too, and so is its rest on the next line where that
can be told.
"""

import re
from collections.abc import Callable
from typing import Any

MARK = "‹masked›".encode()

_Match = re.Match[bytes]
#: What stands in place of a match, and where the search goes on (it may take in a next line).
_Handler = Callable[[_Match], tuple[bytes, int]]

#: Lines after one that may hold a secret which are looked at together with it.
_REACH = 12

# --- tokens that show what they are ---------------------------------------------------------

#: (first letters, alphabet of the rest, its length where fixed, its shortest sure length)
_TOKENS: tuple[tuple[bytes, bytes, int | None, int], ...] = (
    (rb"A(?:KIA|SIA|BIA|CCA|GPA|IDA|ROA|IPA|NPA|NVA)", rb"[A-Z0-9]", 16, 16),
    (rb"hf_", rb"[A-Za-z0-9]", 34, 20),
    (rb"api_org_", rb"[A-Za-z0-9]", 34, 20),
    (rb"[srp]k[_-](?:live_|test_)?", rb"[A-Za-z0-9_-]", None, 16),
    (rb"gh[pousr]_", rb"[A-Za-z0-9]", 36, 20),
    (rb"github_pat_", rb"[A-Za-z0-9_]", 82, 20),
    (rb"gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt)-", rb"[A-Za-z0-9_-]", None, 16),
    (rb"x(?:ox[abeoprs]|app)-", rb"[A-Za-z0-9-]", None, 10),
    (rb"wandb_v\d_", rb"[A-Za-z0-9_]", None, 20),
    (rb"local-", rb"[0-9a-f]", 40, 40),
    (rb"AIza", rb"[A-Za-z0-9_-]", 35, 30),
    (rb"ya29\.", rb"[A-Za-z0-9_-]", None, 20),
    (rb"npm_", rb"[A-Za-z0-9]", 36, 30),
    (rb"pypi-", rb"[A-Za-z0-9_-]", None, 40),
    (rb"nvapi-", rb"[A-Za-z0-9_-]", None, 20),
    (rb"dapi", rb"[0-9a-f]", 32, 32),
    (rb"dckr_pat_|dop_v1_|gsk_|xai-|r8_|tskey-|SG\.", rb"[A-Za-z0-9_.-]", None, 20),
    (rb"eyJ", rb"[A-Za-z0-9_.-]", None, 12),
)
_TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:"
    + rb"|".join(
        rb"(?P<p%d>%b)(?P<b%d>%b{%d,4000}|%b{4,%d}(?=\r?\n|\Z))"
        % (number, prefix, number, alphabet, least, alphabet, max(4, least - 1))
        for number, (prefix, alphabet, _, least) in enumerate(_TOKENS)
    )
    + rb")"
)
#: Words such as ``sk-learn-contrib-tools`` and ``hf_transfer`` have neither.
_KEY_LIKE = re.compile(rb"[A-Z0-9]")
#: On the line after a cut token: one word that looks like nothing a log prints.
_REST = re.compile(
    rb"(\r?\n)(?=[A-Za-z0-9.+/_-]{0,80}?[a-z])(?=[A-Za-z0-9.+/_-]{0,80}?[A-Z])"
    rb"(?=[A-Za-z0-9.+/_-]{0,80}?[0-9])[A-Za-z0-9.+/_-]{12,400}={0,2}(?=[\s\"'\\,;)}\]]|\Z)"
)
_QUOTED_REST = re.compile(rb"(\r?\n)[^\s\"']{1,400}(?=[\"'])")

# --- values that a name in front of them makes a secret -------------------------------------

_PASSWORD = rb"pass(?:words?|wd|phrase)|secrets?|(?<=[A-Za-z0-9][_-])pwd"
_SURE = (
    rb"secret[_-]?(?:access[_-]?)?key|secret[_-]?(?:value|id)|api[ _-]?key|access[_-]?key"
    rb"(?:[_-]?id)?|(?:private|auth|account|shared|encryption|signing|master|service|deploy|admin|license|storage)"
    rb"[_-]?key|(?-i:(?<=[a-z])Pass)|connection[_-]?string|x-amz-(?:signature|credential)"
    rb"|(?:db|smtp|mail|ftp|user|proxy|root|admin|git|redis|mysql|pg)[_-]?pass"
)
_MAYBE = rb"token|(?<![A-Za-z0-9_.-])pass(?==)|(?-i:(?<=[A-Z0-9]_)(?:KEY|PASS|PAT|AUTH))"
_IF_RANDOM = rb"(?<=[A-Za-z0-9][_-])(?:key|pass|pat|auth)|credentials?|(?<![A-Za-z0-9_.-])key(?==)"

_MARKED = re.escape(MARK)
_SEPARATOR = (
    rb"(?P<sep>\\{0,3}[\"']?\]?[ \t]*(?:=>|={1,2}|:(?!//|:)(?:[ \t]*"
    + _MARKED
    + rb"[ \t]*=)?)[ \t]*)"
)
_QUOTED = (
    rb"(?P<deep>\\{1,3}[\"'])(?P<inner>(?:(?!\\{1,3}[\"'])[^\r\n]){1,4000})"
    rb"|(?P<double>[bru]{0,2}\")(?P<in2>(?:[^\"\\\r\n]|\\[^\r\n]){1,4000})"
    rb"|(?P<single>[bru]{0,2}')(?P<in1>(?:[^'\\\r\n]|\\[^\r\n]){1,4000})"
)
#: Without quotes a password may hold commas and the like; keys and tokens do not.
_BARE_PASSWORD = rb"(?P<bare>(?:[^\s\"'\\]|\\(?![nrt\"'\\])){1,4000})"
_BARE = rb"(?P<bare>[^\s,;&\"'<>(){}\[\]|\\]{1,4000})"


def _named(names: bytes, bare: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?i)(?P<name>%b)%b(?:%b|%b)" % (names, _SEPARATOR, _QUOTED, bare))


_NOTHING = re.compile(
    rb"(?i)(?:none|null|nil|n/a|\(null\)|\$\{?\w*\}?|\$\(.*|[|>][-+0-9]{0,2}|<[\w/ |-]{0,40}>)$"
)
_PLAIN_VALUE = re.compile(
    rb"(?i)(?:[+-]?[\d.,]{1,12}(?:e[+-]?\d{1,3})?[a-z%/]{0,6}|true|false|yes|no|on|off|unset)$"
)

# --- other shapes: (name, value) ------------------------------------------------------------

#: A value that English words and numbers do not look like: a letter and a digit in it.
_ODD = (
    rb"(?=[^\s\"']{0,200}?[0-9])(?=[^\s\"']{0,200}?[A-Za-z])(?![/~.])[^\s\"':=,;][^\s\"',;]{5,400}"
)
#: A program, and the option behind it that takes a password (as ``mysql -u bob -pPW``).
_PROGRAMS = (
    rb"\b(?:%b)\b(?:[^\r\n;|&]|&(?!&)){0,200}?[ \t]%b[\"']?)(?P<value>(?![-=])[^\s\"']{1,400})"
)
_WITH_PASSWORD = (
    (
        rb"curl|wget|https?|lftp|svn|git",
        rb"(?:-u|--(?:proxy-)?user)[ \t=]{0,20}[\"']?[^\s:\"']{1,100}:",
    ),
    (rb"(?:mysql|mariadb)[a-z-]{0,12}|sshpass|7za?", rb"-p[ \t]{0,4}"),
    (rb"mongo[a-z-]{0,12}", rb"-p[ \t]{1,4}"),
    (
        rb"(?:docker|podman|helm|az|oc|apptainer|singularity)[ \t][a-z \t]{0,40}login",
        rb"-p[ \t]{0,4}",
    ),
    (rb"redis-cli", rb"-a[ \t]{1,4}"),
    (rb"ldap[a-z]{1,12}", rb"-w[ \t]{0,4}"),
    (rb"(?:un)?zip", rb"-P[ \t]{0,4}"),
)

_SHAPES = tuple(
    re.compile(pattern)
    for pattern in (
        rb"(?i)(?P<name>\b(?:proxy-)?authorization\\{0,3}[\"']?[ \t]*[:=][ \t]*\\{0,3}[\"']?"
        rb"|\b(?:set-)?cookie2?\\{0,3}[\"']?[ \t]*:[ \t]*\\{0,3}[\"']?)"
        rb"(?P<value>(?:[^\"'\\\r\n]|\\(?![\"'])){1,8000})",
        rb"(?i)(?P<name>\b(?:bearer|basic)[ \t]+)"
        rb"(?P<value>(?=[\w.~+/=-]{0,400}?(?-i:[0-9=]|[a-z][A-Z]))[\w.~+/=-]{8,8000})",
        rb"(?P<name>[A-Za-z][A-Za-z0-9+.-]{0,30}://)"
        rb"(?P<value>[^\s/:@\"'<>]{0,200}:[^\s/\"'<>]{1,400})(?=@)",
        rb"(?i)(?P<name>[?&](?:key|code|auth)=)(?P<value>[^\s&\"'<>\\]{16,2000})",
        rb"(?i)(?P<name>[?&](?:sig|(?:[a-z0-9]{1,20}-){0,3}signature)=)(?P<value>[^\s&\"'<>\\]{1,2000})",
        *(rb"(?P<name>" + _PROGRAMS % pair for pair in _WITH_PASSWORD),
        rb"(?i)(?P<name>(?<![a-z0-9])(?:passwords?|passwd|passphrase|api[ _-]?key"
        rb"|secret[_-]access[_-]key)[ \t]{1,4}[\"']?)(?P<value>" + _ODD + rb")",
        rb"(?P<name>\bwandb[ \t]{1,4}login(?:[ \t]{1,4}--\S{1,40}){0,4}[ \t]{1,4})(?P<value>(?!-)"
        + _ODD
        + rb")",
        rb"(?P<name>(?<![A-Za-z0-9_.-])key=)(?P<value>(?=[^\s&]{0,40}?[a-z])(?=[^\s&]{0,40}?[A-Z])"
        rb"(?=[^\s&]{0,40}?[0-9])[A-Za-z0-9+/_-]{10,400}={0,2}(?![^\s&,;\"')\]}]))",
        rb"(?P<name>hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)"
        rb"(?P<value>[\w/-]{8,400})",
        rb"(?P<name>\b(?i:wandb[: ]+(?:login|key)|api[ _-]?key|relogin)\b[^\r\n]{0,40}?"
        rb"(?<![0-9a-f]))(?P<value>[0-9a-f]{40}(?![0-9a-f])|[0-9a-f]{8,39}(?=\r?\n|\Z))",
        rb"(?m)(?P<name>(?:\blogin[ \t]{1,20}\S{1,200}[ \t]{1,20}|^[ \t]{0,40})password[ \t]{1,20})"
        rb"(?P<value>(?![=:])\S{1,2000})",
        rb"(?i)(?P<name><[\w.:-]{0,60}(?:password|passwd|secret|token|key)>)"
        rb"(?P<value>[^<\r\n]{1,2000})",
        rb"(?i)(?P<name>(?<![a-z0-9_-])--?(?:[a-z0-9]{1,30}[_-]){0,4}(?:token|password|passwd|secret|api[_-]?key"
        rb"|access[_-]?key|private[_-]?key|passphrase|credentials?|pat)"
        rb"(?:[ \t]{1,20}|[ \t]{0,20}\\\r?\n[ \t]{0,40})(?P<quote>[\"'])?)"
        rb"(?P<value>(?![-=:])[^\s\"'\\](?(quote)[^\"'\r\n]{0,4000}|[^\s\"']{0,4000}))",
        rb"(?i)(?P<name>(?:" + _PASSWORD + rb"|" + _SURE + rb"|token)[\"']?[ \t]{0,20}:[ \t]{0,20}"
        rb"(?:[|>][-+0-9]{0,2}[ \t]{0,20}\r?\n[ \t]{1,40}|\r?\n[ \t]{0,40}[\"']))"
        rb"(?P<value>[^\"'\r\n]{1,4000})",
    )
)
_PEM = re.compile(
    rb"(?P<name>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    rb"(?P<value>(?:(?!-----)[\s\S]){1,20000}?(?=-----END )"
    rb"|(?:(?:\\r)?\\n|\s|[A-Za-z0-9+/=]{16,}(?![^\s\\\"']))+(?:[A-Za-z0-9+/=]{1,80}(?=[\s\\\"']|\Z))?)"
)
_LINE = re.compile(rb"[^\r\n]*[^\s][^\r\n]*")

#: One look over the lower-cased bytes tells which lines the patterns above need to see.
_TRIGGER = re.compile(
    rb"(?:pass(?:words?|wd|phrase)?|pwd|secrets?[a-z_-]{0,12}|token|key(?:[_-]?id)?|pat|auth"
    rb"|credentials?|string|authorization|cookie2?|signature)\\{0,3}[\"']?\]?[ \t]*[=:>]"
    rb"|token[ \t\\]|passw(?:or)?d[ \t\\]|passphrase[ \t\\]|secret[ \t\\]|key[ \t\\]"
    rb"|credentials?[ \t\\]|pat[ \t\\]|bearer[ \t]|basic[ \t]|://[^\s/]{1,601}@|hooks\.slack|api/webhooks"
    rb"|[?&](?:sig|key|code|auth)=|signature=|curl |wget |https? |lftp |svn |git |mysql|mariadb"
    rb"|mongo|sshpass|7za? |login |redis-cli|ldap[a-z]|zip |wandb|relogin|akia|asia|abia|acca|agpa"
    rb"|aida|aroa|aipa|anpa|anva|hf_|api_org_"
    rb"|sk[_-]|rk[_-]|pk[_-]|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[abeoprs]-|xapp-|local-|aiza"
    rb"|ya29\.|npm_|pypi-|nvapi-|dapi|dckr_|dop_v1_|gsk_|xai-|r8_|tskey-|sg\.|eyj"
)


def _rest_of(match: _Match, end: int, missing: bytes | None = None) -> tuple[bytes, int]:
    """What the next lines hold of a secret that ran to the end of its line, masked."""
    out = b""
    pattern = _REST
    if missing is not None:
        pattern = re.compile(rb"(\r?\n)" + missing + rb"(?![A-Za-z0-9_])")
    for _ in range(_REACH - 1):
        rest = pattern.match(match.string, end)
        if rest is None:
            break
        out += rest[1] + MARK
        end = rest.end()
        if missing is not None:
            break
    return out, end


def _mask_token(match: _Match) -> tuple[bytes, int]:
    number = next(index for index in range(len(_TOKENS)) if match[f"b{index}"] is not None)
    _, alphabet, length, _ = _TOKENS[number]
    body: bytes = match[f"b{number}"]
    if not _KEY_LIKE.search(body):
        return match[0], match.end()
    if length is None:
        rest, end = _rest_of(match, match.end())
    elif len(body) < length:
        rest, end = _rest_of(match, match.end(), alphabet + b"{%d}" % (length - len(body)))
    else:
        rest, end = b"", match.end()
    return MARK + rest, end


def _mask_named(spare: Callable[[bytes], bool]) -> _Handler:
    def handle(match: _Match) -> tuple[bytes, int]:
        opening: bytes = match["deep"] or match["double"] or match["single"] or b""
        value: bytes = match["inner"] or match["in2"] or match["in1"] or match["bare"]
        if spare(value):
            return match[0], match.end()
        head: bytes = match["name"] + match["sep"] + opening + MARK
        if value == MARK:
            return head, match.end()
        rest, end = _rest_of(match, match.end())
        if opening and not rest:
            torn = _QUOTED_REST.match(match.string, end)
            if torn is not None:
                rest, end = torn[1] + MARK, torn.end()
        return head + rest, end

    return handle


def _mask_value(match: _Match) -> tuple[bytes, int]:
    head: bytes = match["name"] + MARK
    if match["value"] == MARK:
        return head, match.end()
    rest, end = _rest_of(match, match.end())
    return head + rest, end


def _mask_block(match: _Match) -> tuple[bytes, int]:
    return match["name"] + _LINE.sub(MARK, match["value"]), match.end()


def _is_nothing(value: bytes) -> bool:
    return _NOTHING.match(value) is not None


def _is_plain(value: bytes) -> bool:
    return _is_nothing(value) or _PLAIN_VALUE.match(value) is not None


def _is_not_random(value: bytes) -> bool:
    """A word, a number or a path: no key looks like that."""
    return (
        len(value) < 16
        or value[:1] in b"/.~$"
        or value.startswith(b"0x")
        or not re.search(rb"[0-9]", value)
        or not re.search(rb"[A-Za-z]", value)
    )


_RULES: tuple[tuple[re.Pattern[bytes], _Handler], ...] = (
    (_TOKEN, _mask_token),
    *((shape, _mask_value) for shape in _SHAPES),
    (_named(_PASSWORD, _BARE_PASSWORD), _mask_named(_is_nothing)),
    (_named(_SURE, _BARE), _mask_named(_is_nothing)),
    (_named(_MAYBE, _BARE), _mask_named(_is_plain)),
    (_named(_IF_RANDOM, _BARE), _mask_named(_is_not_random)),
)


def _apply(pattern: re.Pattern[bytes], handle: _Handler, data: bytes) -> bytes:
    out: list[bytes] = []
    at = 0
    while (match := pattern.search(data, at)) is not None:
        new, end = handle(match)
        out += (data[at : match.start()], new)
        at = max(end, match.end(), match.start() + 1)
    out.append(data[at:])
    return b"".join(out)


def _mask_lines(lines: bytes) -> bytes:
    """All rules until nothing changes: what one rule masked may be what another looked for."""
    while True:
        before = lines
        for pattern, handle in _RULES:
            lines = _apply(pattern, handle, lines)
        if lines == before:
            return lines


def _mask_once(data: bytes) -> bytes:
    if b"-----BEGIN " in data:
        data = _apply(_PEM, _mask_block, data)
    lowered = data.lower()
    out: list[bytes] = []
    at = 0
    while (hit := _TRIGGER.search(lowered, at)) is not None:
        start = max(at, data.rfind(b"\n", 0, hit.start()) + 1)
        # Up to _REACH quiet lines belong to the last line with a trigger in it.
        end = _window_end(lowered, hit.end())
        out += (data[at:start], _mask_lines(data[start:end]))
        at = end
    out.append(data[at:])
    return b"".join(out)


def _window_end(lowered: bytes, at: int) -> int:
    while True:
        end = at
        for _ in range(_REACH):
            line_end = lowered.find(b"\n", end)
            if line_end < 0:
                return len(lowered)
            end = line_end + 1
        hit = _TRIGGER.search(lowered, at, end)
        if hit is None:
            return end
        at = hit.end()


def mask(data: bytes) -> bytes:
    """``data`` with every secret replaced by :data:`MARK`; other bytes as they were."""
    while True:
        masked = _mask_once(data)
        if masked == data:
            return masked
        data = masked


def mask_text(text: str) -> str:
    """The same for text; what is no UTF-8 in it (lone surrogates) comes out as ``?``."""
    return mask(text.encode("utf-8", "replace")).decode("utf-8", "replace")


def mask_json(value: Any) -> Any:
    """The same for what is to be written as JSON: every text in it, value by value. Keys stay."""
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        return {key: mask_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [mask_json(one) for one in value]
    return value
