"""What secrets look like: the patterns that :mod:`slurmtop.parse.mask` goes by, on raw bytes.

Each pattern has limits on what it looks at, so that the work grows with the bytes only.
"""

import re

MARK = "‹masked›".encode()
#: Where several masked names of files must stay different ones, the mark has a number.
MARKED = "‹masked".encode() + rb"(?:-[0-9]{1,6})?" + "›".encode()

#: What colours a terminal, as it is or as it is printed (``\\u001b[36m`` in JSON, ``#033[36m``).
COLOUR = re.compile(
    rb"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|[()][0-9AB])"
    rb"|(?:\\{1,3}(?:x1[bB]|u001[bB]|033|e)|\^\[|#033)\[[0-9;:]{0,40}m"
)
COLOUR_HINTS = (b"\x1b", b"1b[", b"1B[", b"033[", b"\\e[", b"^[[")

# --- tokens that show what they are ---------------------------------------------------------

#: (first letters, alphabet of the rest, its length where fixed, its shortest sure length)
TOKENS: tuple[tuple[bytes, bytes, int | None, int], ...] = (
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
    (rb"xai-", rb"[A-Za-z0-9]", None, 20),
    (rb"dckr_pat_|dop_v1_|gsk_|r8_|tskey-|SG\.", rb"[A-Za-z0-9_.-]", None, 20),
    (rb"gl(?:sa|c)_|shp(?:at|ca|pa|ss)_|whsec_|hv[sbr]\.", rb"[A-Za-z0-9_=-]", None, 20),
    (rb"AGE-SECRET-KEY-1", rb"[A-Z0-9]", 58, 20),
    (rb"eyJ", rb"[A-Za-z0-9_.-]", None, 12),
)
TOKEN = re.compile(
    rb"(?<![A-Za-z0-9])(?:"
    + rb"|".join(
        rb"(?P<p%d>%b)(?P<b%d>%b{%d,4000}|%b{4,%d}(?=\r?\n|\Z))"
        % (number, prefix, number, alphabet, least, alphabet, max(4, least - 1))
        for number, (prefix, alphabet, _, least) in enumerate(TOKENS)
    )
    + rb")"
)
#: An id and its secret in one word, as in a password file of s3fs.
ID_AND_SECRET = re.compile(
    rb"(?P<name>(?<![A-Za-z0-9])A(?:KIA|SIA)[A-Z0-9]{16}:)(?P<value>[A-Za-z0-9/+=]{16,400})"
)
#: What one of them begins with, in small letters.
TOKEN_HINTS = (
    rb"akia asia abia acca agpa aida aroa aipa anpa anva hf_ api_org_ sk- sk_ rk- rk_ pk- pk_"
    rb" ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ gl xox xapp- wandb_v local- aiza ya29. npm_ pypi-"
    rb" nvapi- dapi xai- dckr_pat_ dop_v1_ gsk_ r8_ tskey- sg. shp whsec_ hv age-secret-key eyj"
).split(b" ")
#: Keys of this form begin as many names of hosts do: they are masked only where they look random.
ROOMY = re.compile(rb"[srp]k[_-]")
#: A maker's own words at the start of such a key; behind ``proj-`` there stand capitals too.
MAKERS = re.compile(rb"ant-api\d\d-|(?:proj|svcacct|or-v\d)-(?=[A-Za-z0-9_-]{0,4000}?[A-Z])")
#: Words such as ``sk-learn-contrib-tools`` and ``hf_transfer`` have neither.
KEY_LIKE = re.compile(rb"[A-Z0-9]")
#: On the line after a cut token: one word that looks like nothing a log prints.
REST = re.compile(
    rb"(\r?\n)(?=[A-Za-z0-9.+/_-]{0,80}?[a-z])(?=[A-Za-z0-9.+/_-]{0,80}?[A-Z])"
    rb"(?=[A-Za-z0-9.+/_-]{0,80}?[0-9])[A-Za-z0-9.+/_-]{12,400}={0,2}(?=[\s\"'\\,;)}\]]|\Z)"
)
QUOTED_REST = re.compile(rb"(\r?\n)[^\s\"']{1,400}(?=[\"'])")

# --- values that a name in front of them makes a secret -------------------------------------

_PASS_OF = (
    rb"(?:db|smtp|imap|mail|s?ftp|ssh|http|webdav|user|proxy|root|admin|git|redis|mysql|pg)"
    rb"[_-]?pass"
)
_PASSWORD = rb"pass(?:words?|wd|phrase|code)|secrets?|(?<=[A-Za-z0-9][_-])pwd"
_SURE = (
    rb"secret[_-]?(?:access[_-]?)?key|secret[_-]?(?:value|id)|api[ _-]?key|access[_-]?key"
    rb"(?:[_-]?id)?|(?:private|auth|account|shared|encryption|signing|master|service|deploy|admin|license|storage)"
    rb"[_-]?key|(?-i:(?<=[a-z])Pass)|connection[_-]?string|x-amz-(?:signature|credential)"
    rb"|" + _PASS_OF
)
#: ``PWD=/home/alice`` is no password.
_MAYBE = (
    rb"token|(?<![A-Za-z0-9_.-])pass(?==)|(?-i:(?<=[A-Z0-9]_)(?:KEY|PASS|PAT|AUTH|PW))"
    rb"|(?<![A-Za-z0-9.-])(?:[a-z0-9]{1,20}_)?pw(?=[ \t]{0,4}=)|session[_-]?(?:id|key)"
    rb"|(?<![A-Za-z0-9_.-])pwd(?==[\"']?(?![/~.$\"'\s]))"
)
_IF_RANDOM = rb"(?<=[A-Za-z0-9][_-])(?:key|pass|pat|auth)|credentials?|(?<![A-Za-z0-9_.-])key(?==)"
#: ``pad_token`` and its like are words of a vocabulary, and counts: what stands before ``token``.
_WORDS = (
    rb"(?<![A-Za-z0-9])(?:(?:pad|eos|bos|unk|sep|cls|mask)[_. -]|(?:sos|eot|bot|fim|special"
    rb"|image|audio|video|begin|end|start|stop|max|min|num|per|each|word|added|extra)[_-])"
)
_VOCABULARY_TOKEN = _WORDS + rb"token(?![A-Za-z0-9])"
VOCABULARY = re.compile(rb"(?i)" + _WORDS + rb"\Z")
VOCABULARY_TOKEN = re.compile(rb"(?i)" + _VOCABULARY_TOKEN)

#: Blanks are also those that do not break (U+00A0); signs also as HTML and wide fonts have them.
_BLANKS = rb"(?:[ \t]|\xc2\xa0)*"
_HTML_QUOTE = rb"&(?:quot|apos|#34|#39);"
_SIGN = rb"=>|={1,2}|\xef\xbc\x9d|\xef\xbc\x9a|&#61;|&#58;|%3[aAdD](?:%20)?"
#: A value may be made into something: ``password=SecretStr('...')``.
_CALL = rb"(?:[A-Za-z_][\w.]{0,60}\([ \t]{0,4}(?=[bruf]{0,2}[\"']))?"
_SEPARATOR = (
    rb"(?P<sep>(?:\\{0,3}[\"']|%b)?\]?%b(?:%b|:(?!//|:)(?:[ \t]*%b[ \t]*=)?)"
    rb"%b(?:\\\r?\n[ \t]{0,40})?%b)" % (_HTML_QUOTE, _BLANKS, _SIGN, MARKED, _BLANKS, _CALL)
)
_QUOTED = (
    rb"(?P<deep>\\{1,3}[\"'])(?P<inner>(?:(?!\\{1,3}[\"'])[^\r\n]){1,4000})"
    rb"|(?P<double>[bruf]{0,2}\"|&(?:quot|\#34);)(?P<in2>(?:[^\"\\\r\n&]|&(?!quot;|\#34;)|\\[^\r\n]){1,4000})"
    rb"|(?P<single>[bruf]{0,2}')(?P<in1>(?:[^'\\\r\n]|\\[^\r\n]){1,4000})"
)
#: Without quotes a password may hold commas and the like; keys and tokens do not.
_BARE_PASSWORD = (
    rb"(?P<bare>(?:[^\s\"'\\]|\\(?![nrt\"'\\])|(?<=[^\s\"'\\=])\\'(?=[A-Za-z0-9])){1,4000})"
)
_KEY_BYTES = rb"[^\s,;&\"'<>(){}\[\]|\\]"
#: What stands in brackets in the middle of one belongs to it.
_BARE = (
    rb"(?P<bare>%b{1,4000}(?:(?:\(%b{0,200}\)|\[%b{0,200}\]|\{%b{0,200}\}|<%b{0,200}>)%b{1,400}){0,4})"
    % ((_KEY_BYTES,) * 6)
)
#: Behind a closing quote: what a shell takes for the same word.
GLUED = re.compile(rb"(?P<quotes>'\"|\"'|''|\"\")(?P<value>[^\"'\s,:;]{1,400})(?=[\"'])")


def _named(names: bytes, bare: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"(?i)(?P<name>%b)%b(?:%b|%b)" % (names, _SEPARATOR, _QUOTED, bare))


NAMED_PASSWORD = _named(_PASSWORD, _BARE_PASSWORD)
NAMED_SURE = _named(_SURE, _BARE)
NAMED_MAYBE = _named(_MAYBE, _BARE)
NAMED_IF_RANDOM = _named(_IF_RANDOM, _BARE)


#: No value, or a reference to one: ``$HF_TOKEN`` is one, ``$hunter2`` is not.
NOTHING = re.compile(
    rb"(?i)(?:none|null|nil|n/a|\(null\)|(?-i:\$\{?(?:[A-Z_][A-Z0-9_]*|[a-z_]*|[0-9])\}?)|\$\(.*"
    rb"|[|>][-+0-9]{0,2}|<[a-z_/ |-]{0,40}>)$"
)
PLAIN_VALUE = re.compile(
    rb"(?i)(?:[+-]?[\d.,]{1,12}(?:e[+-]?\d{1,3})?[a-z%/]{0,6}|true|false|yes|no|on|off|unset)$"
)

# --- other shapes: (name, value) ------------------------------------------------------------

#: What launchers put in front of a line, and the name of an error.
_LINE_START = (
    rb"^(?:(?:[0-9]{1,6}:|\[[^\]\r\n]{1,60}\]:?|\([^)\r\n]{1,60}\))[ \t]{0,4}){0,3}"
    rb"(?:[A-Za-z_]{1,60}(?:Error|Exception):)?[ \t-]{0,40}"
)
#: A value that English words and numbers do not look like: a letter and a digit in it.
_ODD = (
    rb"(?=[^\s\"']{0,200}?[0-9])(?=[^\s\"']{0,200}?[A-Za-z])(?![/~.])[^\s\"':=,;][^\s\"',;]{5,400}"
)
#: A program, and the option behind it that takes a password (as ``mysql -u bob -pPW``).
_PROGRAMS = (
    rb"\b(?:%b)\b(?:[^\r\n;|&]|&(?!&)){0,200}?[ \t]%b[\"']?)(?P<value>(?![-=])[^\s\"']{1,400}"
    # Between quotes it may hold blanks.
    rb"(?:(?:[ \t]{1,4}(?!-)[^\s\"']{1,100}){1,6}(?=[\"']))?)"
)
_WITH_PASSWORD = (
    (
        rb"curl wget http lftp svn git",
        rb"curl|wget|https?|lftp|svn|git",
        rb"(?:-u|--(?:proxy-)?user)[ \t=]{0,20}[\"']?[^\s:\"']{1,100}:",
    ),
    (
        rb"mysql mariadb sshpass 7z",
        rb"(?:mysql|mariadb)[a-z-]{0,12}|sshpass|7za?",
        rb"-p[ \t]{0,4}",
    ),
    (rb"mongo", rb"mongo[a-z-]{0,12}", rb"-p[ \t]{1,4}"),
    (rb"client", rb"smbclient|rpcclient", rb"-U[ \t]{0,4}[^\s%\"']{1,100}%"),
    (
        rb"login",
        rb"(?:docker|podman|helm|az|oc|apptainer|singularity)[ \t][a-z \t]{0,40}login",
        rb"-p[ \t]{0,4}",
    ),
    (rb"redis-cli", rb"redis-cli", rb"-a[ \t]{1,4}"),
    (rb"ldap", rb"ldap[a-z]{1,12}", rb"-w[ \t]{0,4}"),
    (rb"zip", rb"(?:un)?zip", rb"-P[ \t]{0,4}"),
)

#: Each with the words of which one must stand, in small letters, where the pattern is to match.
SHAPES = tuple(
    (hints.split(b" "), re.compile(pattern))
    for hints, pattern in (
        (
            rb"authorization cookie",
            rb"(?i)(?P<name>\b(?:proxy-)?authorization\\{0,3}[\"']?[ \t]*[:=][ \t]*\\{0,3}[\"']?"
            rb"|\b(?:set-)?cookie2?\\{0,3}[\"']?[ \t]*:[ \t]*\\{0,3}[\"']?)"
            rb"(?P<value>(?:[^\"'\\\r\n]|\\(?![\"'])){1,8000})",
        ),
        (
            rb"bearer basic",
            rb"(?i)(?P<name>\b(?:bearer|basic)[ \t]+)"
            rb"(?P<value>(?=[\w.~+/=-]{0,400}?(?-i:[0-9=]|[a-z][A-Z]))[\w.~+/=-]{8,8000})",
        ),
        (
            rb"://",
            rb"(?P<name>[A-Za-z][A-Za-z0-9+.-]{0,30}://)"
            rb"(?P<value>[^\s/:@\"'<>]{0,200}:[^\s/\"'<>]{1,400}|\*{3})(?=@)",
        ),
        (
            rb"://",
            # A token alone in front of the host.
            rb"(?P<name>[A-Za-z][A-Za-z0-9+.-]{0,30}://)(?P<value>(?=[^\s@]{0,200}?[0-9])"
            rb"(?=[^\s@]{0,200}?[A-Za-z])[A-Za-z0-9_.~%+-]{16,400})(?=@)",
        ),
        (
            rb"://",
            # A text that was cut before the host: no port looks like that.
            rb"(?P<name>\b(?:(?:git\+)?https?|git|ssh|s?ftp|rediss?|postgres(?:ql)?|mysql|amqps?|mongodb(?:\+srv)?"
            rb"|wss?|ldaps?|smtps?|s3)://)(?P<value>[^\s/:@\"'<>\[\]]{1,200}:(?![0-9]{1,5}(?![0-9A-Za-z])|[$%{<])"
            rb"[^\s/:@\"'<>,]{6,400})(?=\r?\n|\Z)",
        ),
        (
            rb"auth",
            rb"(?i)(?P<name>(?:\bauth[ \t]?=[ \t]?|basic_?auth)\([ \t]{0,4}[\"']"
            rb"[^\"'\r\n]{0,200}[\"'],[ \t]{0,4}[\"'])(?P<value>[^\"'\r\n]{1,400})",
        ),
        (
            rb"key= code= auth=",
            rb"(?i)(?P<name>[?&](?:key|code|auth)=)(?P<value>[^\s&\"'<>\\]{16,2000})",
        ),
        (
            rb"sig= signature=",
            rb"(?i)(?P<name>[?&](?:sig|(?:[a-z0-9]{1,20}-){0,3}signature)=)(?P<value>[^\s&\"'<>\\]{1,2000})",
        ),
        *((hints, rb"(?P<name>" + _PROGRAMS % tuple(pair)) for hints, *pair in _WITH_PASSWORD),
        (
            rb"passw passphrase key",
            rb"(?i)(?P<name>(?<![a-z0-9])(?:passwords?|passwd|passphrase|api[ _-]?key"
            rb"|secret[_-]access[_-]key)[ \t]{1,4}(?:(?:is|was|[=-]>|\|)[ \t]{1,4})?[\"']?)"
            rb"(?P<value>" + _ODD + rb")",
        ),
        (
            rb"passphrase",
            # A phrase is as long as its words go.
            rb"(?i)(?P<name>\bpassphrase\\{0,3}[\"']?[ \t]*[:=][ \t]*)"
            rb"(?P<value>[^\s\"'\\]{1,400}(?:[ \t]{1,4}[A-Za-z]{1,30}(?=[\s,.;]|\Z)){1,12})",
        ),
        (
            rb"pass",
            rb"(?m)(?P<name>(?:"
            + _LINE_START
            + rb"|[\"'])pass\\{0,3}[\"']?:[ \t]{0,20}\\{0,3}[\"']?)"
            rb"(?P<value>" + _ODD + rb")",
        ),
        (
            rb"key",
            rb"(?P<name>[\"']key\\{0,3}[\"'][ \t]*:[ \t]*\\{0,3}[\"'])(?P<value>[0-9a-f]{32,400}"
            rb"|(?=[^\"']{0,40}?[a-z])(?=[^\"']{0,40}?[A-Z])(?=[^\"']{0,40}?[0-9])[A-Za-z0-9+/_-]{16,400}={0,2})"
            rb"(?=\\{0,3}[\"'])",
        ),
        (
            rb"wandb",
            rb"(?P<name>\bwandb[ \t]{1,4}login(?:[ \t]{1,4}--\S{1,40}){0,4}[ \t]{1,4})"
            rb"(?P<value>(?!-)" + _ODD + rb")",
        ),
        (
            rb"key=",
            rb"(?P<name>(?<![A-Za-z0-9_.-])key=)(?P<value>(?=[^\s&]{0,40}?[a-z])(?=[^\s&]{0,40}?[A-Z])"
            rb"(?=[^\s&]{0,40}?[0-9])[A-Za-z0-9+/_-]{10,400}={0,2}(?![^\s&,;\"')\]}]))",
        ),
        (
            rb"hooks",
            rb"(?P<name>hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)"
            rb"(?P<value>[\w/-]{8,400})",
        ),
        (
            rb":aa",
            rb"(?P<name>(?<![0-9A-Za-z])(?:bot)?[0-9]{8,10}:)(?P<value>AA[A-Za-z0-9_-]{28,80})",
        ),
        (
            rb"pass:",
            rb"(?P<name>[ \t]-pass(?:in|out)?[ \t]{1,4}[\"']?pass:)(?P<value>[^\s\"']{1,400})",
        ),
        (
            rb"pw auth",
            rb"(?i)(?P<name>(?<![a-z0-9_-])--?(?:[a-z0-9]{1,30}[_-]){0,4}(?:pw|auth)"
            rb"(?:[ \t]{1,20}|=|[\"'],[ \t]{0,4}(?=[\"']))[\"']?)(?P<value>" + _ODD + rb")",
        ),
        (
            rb"wandb key relogin",
            rb"(?P<name>\b(?i:wandb[: ]+(?:login|key)|api[ _-]?key|relogin)\b[^\r\n]{0,40}?"
            rb"(?<![0-9a-f]))(?P<value>[0-9a-f]{40}(?![0-9a-f])|[0-9a-f]{8,39}(?=\r?\n|\Z))",
        ),
        (
            rb"password",
            rb"(?m)(?P<name>(?:\blogin[ \t]{1,20}\S{1,200}[ \t]{1,20}|^[ \t]{0,40})"
            rb"password[ \t]{1,20})"
            rb"(?P<value>(?![=:]|(?:is|was|->|\|)[ \t])\S{1,2000})",
        ),
        (
            rb"<",
            rb"(?i)(?P<name><[\w.:-]{0,60}(?:password|passwd|secret|token|key)>)"
            rb"(?P<value>[^<\r\n]{1,2000})",
        ),
        (
            rb"pass secret key token string credential",
            rb"(?i)(?P<name>(?:"
            + _PASSWORD
            + rb"|"
            + _SURE
            + rb"|token)[\"']?[ \t]{0,20}:[ \t]{0,20}"
            rb"(?:[|>][-+0-9]{0,2}[ \t]{0,20}\r?\n[ \t]{1,40}|\r?\n[ \t]{0,40}[\"']))"
            rb"(?P<value>[^\"'\r\n]{1,4000})",
        ),
    )
)
_OPTION = (
    rb"(?<![a-z0-9_-])--?(?:[a-z0-9]{1,30}[_-]){0,4}(?:token|passwords?|passwd|secret|api[_-]?key"
    rb"|access[_-]?key|private[_-]?key|passphrase|passcode|credentials?|pat|%b)" % _PASS_OF
)
_OPTION_IF_RANDOM = rb"(?<![a-z0-9_-])--?(?:[a-z0-9]{1,30}[_-]){1,4}(?:key|pass|auth)"
_NEXT_WORD = (
    rb"(?:[ \t]{1,20}|[ \t]{0,20}\\\r?\n[ \t]{0,40})(?P<quote>[\"'])?)"
    rb"(?P<value>(?![-=:])[^\s\"'\\](?(quote)[^\"'\r\n]{0,4000}|[^\s\"']{0,4000}))"
)
#: As a list of words is printed: ``['--password', 'hunter2']``, in JSON over several lines.
_NEXT_IN_LIST = (
    rb"\\{0,3}[\"'](?:,\s{0,60}|[ \t]{0,20}\r?\n[ \t]{0,60}-[ \t]{1,8})\\{0,3}[\"'])"
    rb"(?P<value>(?!-)(?:(?!\\{0,3}[\"'])[^\r\n]){1,4000})"
)
_SECRET_NAME = (
    rb"[a-z0-9_.-]{0,60}(?:passwords?|passwd|passphrase|secret|token|[_-]key|apikey|[_-]pass"
    rb"|[_-]pw)"
)
#: The other way round, in one line: the value, then the name that makes it a secret.
VALUE_FIRST = re.compile(
    rb"(?i)(?P<name>\bvalue\\{0,3}[\"']?[ \t]{0,20}[:=][ \t]{0,20}(?P<quote>\\{0,3}[\"'])?)"
    rb"(?P<value>(?(quote)(?:(?!\\{0,3}[\"'])[^\r\n]){1,4000}?|[^\s,;\"'{}\[\]]{1,4000}))"
    rb"(?=\\{0,3}[\"']?[ \t]{0,20},?[ \t]{0,80}\\{0,3}[\"']?(?:name|key)\\{0,3}[\"']?[ \t]{0,20}"
    rb"[:=][ \t]{0,20}\\{0,3}[\"']?(?![a-z0-9_.-]{0,60}?%b)%b(?![a-z0-9]))"
    % (_VOCABULARY_TOKEN, _SECRET_NAME)
)
#: A list or the like around a value: a letter and a digit in it.
_IN_BRACKETS = (
    rb"(?=[^\s\"'(){}\[\]<>]{0,200}?[0-9])(?=[^\s\"'(){}\[\]<>]{0,200}?[A-Za-z])"
    rb"[^\s\"'(){}\[\]<>,;:=]{6,400}"
)
#: Shapes that are as good as any, but where their name ends in a word of a vocabulary.
SHAPES_BUT_WORDS = tuple(
    (
        [b"pass", b"token", b"secret", b"key", b"pw", b"pat", b"credential"],
        re.compile(rb"(?i)(?P<name>" + pattern),
    )
    for pattern in (
        _OPTION + _NEXT_WORD,
        _OPTION + _NEXT_IN_LIST,
        rb"\([ \t]?[\"']%b[\"'],[ \t]{0,4}[\"'])(?P<value>[^\"'\r\n]{1,400})(?=[\"']\))"
        % _SECRET_NAME,
        rb"\b(?:name|key)\\{0,3}[\"']?[ \t]{0,20}[:=][ \t]{0,20}\\{0,3}[\"']?"
        + _SECRET_NAME
        + rb"\\{0,3}[\"']?[ \t]{0,20},?\s{0,80}\\{0,3}[\"']?value\\{0,3}[\"']?"
        rb"[ \t]{0,20}[:=][ \t]{0,20}(?P<quote>\\{0,3}[\"'])?)"
        rb"(?P<value>(?(quote)(?:(?!\\{0,3}[\"'])[^\r\n]){1,4000}|[^\s,;\"'{}\[\]]{1,4000}))",
    )
)
SHAPES_IN_BRACKETS = (
    (
        [front + bracket for front in (b"=", b"= ", b":", b": ") for bracket in (b"(", b"[", b"{")],
        re.compile(
            rb"(?i)(?P<name>(?:%b|token) ?[:=] ?[(\[{])(?P<value>%b)(?=[)\]}])"
            % (_SURE, _IN_BRACKETS)
        ),
    ),
    (
        [b"=<", b"= <", b":<", b": <"],
        re.compile(rb"(?i)(?P<name>(?:%b) ?[:=] ?<)(?P<value>%b)(?=>)" % (_SURE, _IN_BRACKETS)),
    ),
)
SHAPES_IF_RANDOM = tuple(
    ([b"key", b"pass", b"auth"], re.compile(rb"(?i)(?P<name>" + _OPTION_IF_RANDOM + behind))
    for behind in (_NEXT_WORD, _NEXT_IN_LIST)
)
#: A line of YAML: the whole of it is the password, blanks and all.
PASSWORD_LINE = re.compile(
    rb"(?im)(?P<name>" + _LINE_START + rb"(?:[\w.]{0,40}[_-])?(?:password|passwd|passphrase)"
    rb"[ \t]{0,20}:[ \t]{1,20})(?P<value>[^\s\"'|>=][^\r\n=\"']{0,400})(?=\r?\n|\Z)"
)
PEM = re.compile(
    rb"(?P<name>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    rb"(?P<value>(?:(?!-----)[\s\S]){1,20000}?(?=-----END )"
    rb"|(?:(?:\\r)?\\n|\s|[A-Za-z0-9+/=]{16,}(?![^\s\\\"']))+(?:[A-Za-z0-9+/=]{1,80}(?=[\s\\\"']|\Z))?)"
)
LINE = re.compile(rb"[^\r\n]*[^\s][^\r\n]*")

#: The last lines of a private key whose first line is not there: before them, line by line.
PEM_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PEM_LINE = re.compile(
    rb"[ \t]{0,40}(?:[A-Za-z0-9+/]{16,80}={0,2}|[A-Za-z0-9+/]{1,80}={1,2})[ \t\r]{0,8}"
)
