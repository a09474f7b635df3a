"""Secrets go, everything else stays, twice is once, and lines stay where they were."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmtop.parse.mask import MARK, mask

ROOT = Path(__file__).parents[2]
HEX = "0123456789abcdef0123456789abcdef01234567"
MIXED = "aB3dE5fG7hJ9kL2mN4pQ6rS8tU1vW3xY5z"

#: Put together here, so that no scanner takes this file for a leak.
TOKENS = {
    "aws": "AK" + "IAQ7EXAMPLE7EXAMPLE"[:18],
    "hugging face": "hf" + "_" + MIXED,
    "openai": "sk" + "-" + MIXED,
    "openai project": "sk" + "-proj-" + MIXED + "-" + MIXED,
    "anthropic": "sk" + "-ant-api03-" + MIXED + "_" + MIXED,
    "github": "gh" + "p_" + MIXED + "ab",
    "github fine": "github" + "_pat_" + MIXED + "_" + MIXED,
    "gitlab": "gl" + "pat-" + MIXED[:20],
    "slack": "xo" + "xb-1234567890-" + MIXED,
    "wandb": "wandb" + "_v1_" + MIXED,
    "google": "AI" + "za" + MIXED + "A",
    "npm": "npm" + "_" + MIXED + "ab",
    "nvidia": "nv" + "api-" + MIXED,
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0In0." + MIXED,
}


def masked(text: str) -> str:
    return mask(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS.keys())
@pytest.mark.parametrize(
    "line",
    ["{}", "login with {} now", "x='{}',", "[rank0]: {}\n", '"{}"', "https://h/{}/x", "a={}"],
)
def test_tokens_that_show_what_they_are(token: str, line: str) -> None:
    assert masked(line.format(token)) == line.format("‹masked›")


@pytest.mark.parametrize("token", [value for name, value in TOKENS.items() if name != "wandb"])
@pytest.mark.parametrize("keep", [16, 20])
def test_tokens_cut_by_the_end_of_the_line_or_file(token: str, keep: int) -> None:
    for end in ("", "\n", "\r\nnext line\n"):
        text = masked(f"using {token[:keep]}{end}")
        assert token[6:keep] not in text
        assert text.endswith("next line\n") or not end.strip()


@pytest.mark.parametrize("name", ["aws", "hugging face", "github", "google", "npm"])
@pytest.mark.parametrize("keep", [14, 18])
def test_the_rest_on_the_next_line_of_a_token_of_known_length(name: str, keep: int) -> None:
    token = TOKENS[name]
    text = masked(f"using {token[:keep]}\n{token[keep:]} and on\nrank 3\n")
    assert text == "using ‹masked›\n‹masked› and on\nrank 3\n"
    # A whole token leaves the next line alone.
    assert masked(f"{token}\nAbcDef123456789 x\n") == "‹masked›\nAbcDef123456789 x\n"


def test_the_rest_of_a_token_of_any_length() -> None:
    token = TOKENS["jwt"]
    assert masked(f"t={token[:30]}\n{token[30:]}\nrank 3\n") == "t=‹masked›\n‹masked›\nrank 3\n"
    host = f"t={token[:30]}\ngpu01-rack7-enclosure12: ready\n"
    assert masked(host) == "t=‹masked›\ngpu01-rack7-enclosure12: ready\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("export WANDB_API_KEY=hunter2", "export WANDB_API_KEY=‹masked›"),
        ("HF_TOKEN=hunter2 python train.py", "HF_TOKEN=‹masked› python train.py"),
        ("AWS_SECRET_ACCESS_KEY = hun/ter+2==", "AWS_SECRET_ACCESS_KEY = ‹masked›"),
        ("COMET_API_KEY: hunter2", "COMET_API_KEY: ‹masked›"),
        ("MY_SIGNING_KEY=hunter2;x", "MY_SIGNING_KEY=‹masked›;x"),
        ("db_secret=hunter2", "db_secret=‹masked›"),
        ("PASSWORD=hun,ter;2&x more", "PASSWORD=‹masked› more"),
        ("PGPASSWORD='hun ter'\"2\" psql", "PGPASSWORD='‹masked›'\"‹masked›\" psql"),
        ('password: "hun \\" ter" # why', 'password: "‹masked›" # why'),
        ('{"api_key": "hunter2", "step": 12}', '{"api_key": "‹masked›", "step": 12}'),
        ("{'api-key': 'hunter2', 'n': 3}", "{'api-key': '‹masked›', 'n': 3}"),
        (
            '"{\\"token\\": \\"hunter2\\", \\"n\\": 3}"',
            '"{\\"token\\": \\"‹masked›\\", \\"n\\": 3}"',
        ),
        ("os.environ['HF_TOKEN'] = 'hunter2'", "os.environ['HF_TOKEN'] = '‹masked›'"),
        ("login(token=hunter2, n=3)", "login(token=‹masked›, n=3)"),
        ("python x.py --token hunter2 --steps 5", "python x.py --token ‹masked› --steps 5"),
        ("python x.py --hf-token=hunter2 --steps 5", "python x.py --hf-token=‹masked› --steps 5"),
        ("x --password 'hun ter' --n 5", "x --password '‹masked›' --n 5"),
        ("x --api-key \\\n    hunter2 \\\n    --n 5", "x --api-key \\\n    ‹masked› \\\n    --n 5"),
        ("srun --export=ALL,X_TOKEN=hunter2,N=3 a", "srun --export=ALL,X_TOKEN=‹masked›,N=3 a"),
        (
            "git clone https://me:hunter2@git.example.org/r",
            "git clone https://‹masked›@git.example.org/r",
        ),
        ("redis://:hunter2@h:6379/0", "redis://‹masked›@h:6379/0"),
        ("GET /x?api_key=hunter2&step=5", "GET /x?api_key=‹masked›&step=5"),
        ("Authorization: Bearer hunter2", "Authorization: ‹masked›"),
        ("-H 'Authorization: Basic aHVudGVyMg=='", "-H 'Authorization: ‹masked›'"),
        ('{"Authorization": "Bearer hunter2"}', '{"Authorization": "‹masked›"}'),
        ("sent Bearer hunter2hunter2 to it", "sent Bearer ‹masked› to it"),
        ("Set-Cookie: sid=hunter2; Path=/", "Set-Cookie: ‹masked›"),
        ("X-Auth-Token: hunter2", "X-Auth-Token: ‹masked›"),
        (f"wandb login {HEX}", "wandb login ‹masked›"),
        (f"wandb login --relogin {HEX[:20]}", "wandb login --relogin ‹masked›"),
        (
            "machine api.wandb.ai login user password hunter2",
            "machine api.wandb.ai login user password ‹masked›",
        ),
        ("<adminPassword>hunter2</adminPassword>", "<adminPassword>‹masked›</adminPassword>"),
        ("StoragePass=hunter2", "StoragePass=‹masked›"),
        ("secret: |\n  hunter2\nnext: 1", "secret: |\n  ‹masked›\nnext: 1"),
        ('"token":\n   "hunter2",\n"n": 1', '"token":\n   "‹masked›",\n"n": 1'),
        ('password: str = "hunter2"', 'password: ‹masked› = "‹masked›"'),
        ('"token": "hun\nter2", "n": 1', '"token": "‹masked›\n‹masked›", "n": 1'),
        ('{"secret": "hun', '{"secret": "‹masked›'),
        (f"sort_key = '{MIXED}'", "sort_key = '‹masked›'"),
        ("+ curl -s -u bob:hunter2 http://h/x", "+ curl -s -u bob:‹masked› http://h/x"),
        ("curl --user 'bob:hun2 ' -o x", "curl --user 'bob:‹masked› ' -o x"),
        ("mysql -u bob -phunter2 jobs", "mysql -u bob -p‹masked› jobs"),
        ("sshpass -p hunter2 ssh h", "sshpass -p ‹masked› ssh h"),
        ("docker login -u bob -p hunter2 r.io", "docker login -u bob -p ‹masked› r.io"),
        ("redis-cli -h h -a hunter2 ping", "redis-cli -h h -a ‹masked› ping"),
        ("ldapsearch -D cn=x -w hunter2", "ldapsearch -D cn=x -w ‹masked›"),
        ("unzip -P hunter2 data.zip", "unzip -P ‹masked› data.zip"),
        ("PASS=hunter2 ./x", "PASS=‹masked› ./x"),
        ("user=bob pass=hunter2 host=h", "user=bob pass=‹masked› host=h"),
        ("the passphrase hunter2x it was", "the passphrase ‹masked› it was"),
        ("using password hunter2Sb", "using password ‹masked›"),
        ("APIKEY hunter2Sb", "APIKEY ‹masked›"),
        (
            "aws configure set aws_secret_access_key wJalr/hunter2S8",
            "aws configure set aws_secret_access_key ‹masked›",
        ),
        ("wandb login --relogin hunter2Sa", "wandb login --relogin ‹masked›"),
        ("key=aB3dE5fG7h rank 3", "key=‹masked› rank 3"),
        ("GET /b?X-Goog-Signature=6d0f&x=1", "GET /b?X-Goog-Signature=‹masked›&x=1"),
        ("GET /b?se=2026&sig=aB3%3D&x=1", "GET /b?se=2026&sig=‹masked›&x=1"),
        (
            "['python3', 'train.py', '--db_password', 'hunter2', '--lr', '0.1']",
            "['python3', 'train.py', '--db_password', '‹masked›', '--lr', '0.1']",
        ),
        ('["--api-key","hunter2"]', '["--api-key","‹masked›"]'),
        ('[\n  "--password",\n  "hun ter2"\n]', '[\n  "--password",\n  "‹masked›"\n]'),
        ("- '--token'\n- 'hunter2'", "- '--token'\n- '‹masked›'"),
        ("login('password', 'hunter2')", "login('password', '‹masked›')"),
        (f"train.py --wandb_key {HEX} --n 5", "train.py --wandb_key ‹masked› --n 5"),
        (f"['--wandb_key', '{HEX}']", "['--wandb_key', '‹masked›']"),
        ("rclone --sftp-pass hunter2", "rclone --sftp-pass ‹masked›"),
        (f"git clone https://{HEX}@h/r.git", "git clone https://‹masked›@h/r.git"),
        (
            '{"name": "DB_PASSWORD", "value": "hunter2"}',
            '{"name": "DB_PASSWORD", "value": "‹masked›"}',
        ),
        ("- name: API_KEY\n  value: hunter2", "- name: API_KEY\n  value: ‹masked›"),
        ('{"username":"a","key":"' + HEX[:32] + '"}', '{"username":"a","key":"‹masked›"}'),
        ("DB_PW=hunter2 x", "DB_PW=‹masked› x"),
        ("pw = 'hunter2'", "pw = '‹masked›'"),
        ("Uid=sa;Pwd=hunter2;", "Uid=sa;Pwd=‹masked›;"),
        ("pass: hunter2", "pass: ‹masked›"),
        ("sessionid=hunter2hunter2", "sessionid=‹masked›"),
        ("password=$hunter2 x", "password=‹masked› x"),
        ("token=(hunter2)", "token=(‹masked›)"),
        ("api_key=<hunter2>", "api_key=<‹masked›>"),
        ("password=<hunter2>", "password=‹masked›"),
        ("password%3Dhunter2", "password%3D‹masked›"),
        ("passphrase: correct horse battery staple", "passphrase: ‹masked›"),
        ("db_password: correct horse battery\nn: 1", "db_password: ‹masked›\nn: 1"),
        ("password is hunter2", "password is ‹masked›"),
        ("password -> hunter2", "password -> ‹masked›"),
        ("PASSWORD=\\\nhunter2\nrank 3", "PASSWORD=\\\n‹masked›\nrank 3"),
        ("auth=('bob', 'hunter2')", "auth=('bob', '‹masked›')"),
        ("smbclient -U bob%hunter2 //h/x", "smbclient -U bob%‹masked› //h/x"),
        ("from https://bob:hunter2hun", "from https://‹masked›"),
        ("open /w/api_key=hunter2/4711.out", "open /w/api_key=‹masked›/4711.out"),
    ],
)
def test_names_make_values_secret(before: str, after: str) -> None:
    assert masked(before) == after


def test_private_keys_keep_their_lines() -> None:
    body = "\n".join([MIXED * 2] * 3)
    block = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\nrank 3\n"
    assert masked(block) == (
        "-----BEGIN RSA PRIVATE KEY-----\n‹masked›\n‹masked›\n‹masked›\n"
        "-----END RSA PRIVATE KEY-----\nrank 3\n"
    )
    cut = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{MIXED * 2}\n{MIXED}"
    assert masked(cut) == "-----BEGIN OPENSSH PRIVATE KEY-----\n‹masked›\n‹masked›"
    escaped = f'{{"k": "-----BEGIN PRIVATE KEY-----\\n{MIXED}\\n-----END PRIVATE KEY-----\\n"}}'
    assert MIXED not in masked(escaped)
    public = f"-----BEGIN PUBLIC KEY-----\n{MIXED}\n-----END PUBLIC KEY-----\n"
    assert masked(public) == public


def test_of_a_private_key_that_has_no_start_the_lines_before_its_end_go() -> None:
    body = f"{MIXED * 2}\n{MIXED}==\n"
    end = "-----END RSA PRIVATE KEY-----\n"
    assert masked(f"rank 3\n{body}{end}") == f"rank 3\n‹masked›\n‹masked›\n{end}"
    assert masked(f"{body}rank 3\n{end}") == f"{body}rank 3\n{end}"


@pytest.mark.parametrize(
    "key",
    ["sk-" + HEX[:32], "sk-or-v1-" + HEX + HEX[:24], "pk_live_" + MIXED[:24], "sk-" + MIXED[:12]],
)
def test_keys_that_begin_as_names_of_hosts_do_are_known_by_how_random_they_are(key: str) -> None:
    assert masked(f"using {key}\n").startswith("using ‹masked›")


@pytest.mark.parametrize(
    "line",
    [
        "[rank0]: step 123/1000 tokens: 12345 tokens/s=812.5 time_per_token: 0.123 per_token=12ms",
        "n1:7:9 [0] NCCL INFO comm 0x7f2a rank 0 nranks 2 color 0 key 1 commId 0x2b1c3d4e5f6a",
        "GPU-5d2c1f3e-aaaa-bbbb-cccc-0123456789ab, MIG-5d2c1f3e-aaaa-bbbb-cccc-0123456789ab",
        f"HEAD is now at {HEX}",
        f"commit {HEX} by alice",
        "ExitCode=0:53 DerivedExitCode=0:0 JobState=FAILED Reason=RaisedSignal:53",
        "PWD=/home/alice OLDPWD=/home/alice/x SLURM_JOB_ID=4711 SLURM_STEP_TASKS=2",
        "TOKENIZERS_PARALLELISM=false NCCL_IB_PKEY=0x7fff max_tokens=2048 pad_token='<pad>'",
        "tcp://10.0.0.1:29500 ssh://git@host/x https://host.example.org:8443/a/b@c user@host:/path",
        "wait timeout after 300000ms, keys: /default_pg/0//cuda//timeout_dump",
        "KeyError: 'token'",
        "per-token loss 2.31, next-token accuracy 0.4, the pass was ok",
        "key: 0//worker/attempt_0/rank_3",
        "jwt_key=/etc/slurm/jwt_hs256.key",
        "AccountingStoragePass   = (null)",
        "HF_TOKEN=$HF_TOKEN API_KEY=${KEY}",
        "sk-learn-contrib-and-other-tools hf_transfer_is_on disk-usage-of-task-3",
        "Basic authentication is not configured, bearer authentication neither",
        "a disk-1234567890123456789012345 task_abcdefghijklmnop",
        "bypass=1 compass: north first_pass: 0.5",
        "sbatch --export=ALL --gres=gpu:8 train.sh",
        "[rank0] password authentication failed for user7, no passphrase given, password: none",
        "PASS=12 FAIL=0, pass=1, PASS: test_x1, multi-pass=2",
        "mysql is down; mongod -port 27017; docker run -p 8080:80 -u 1000:1000 image",
        "curl -s https://h:8443/a -o x --retry 3; git push -u origin main",
        "wandb login to see it; wandb: Run data is saved locally in run-20261201_9x",
        "passwd file /etc/passwd2, api key is missing, key=rank_3_step_40",
        "srun -u python -u train.py -p gpu --key=val",
        "pk-h100-compute-gpu04: sk-a100-pool-gpu-017, rk-gpu-cluster-node01.example.org",
        "sk-cluster1-pool-gpu07,xai-h100-compute-gpu-node-0412 sk-proj-gpu01-rack7-enclosure12",
        "sweep/pad_token=eos/train.log pad_token=eos --pad_token eos {'eos_token': '</s>'}",
        "tokenizer=llama2-7b --max_tokens 512 --sort_key step4 --first_pass 3 num_keys=12",
        '{"name": "loss_per_token", "value": 2.31} {"key": "rank_3", "n": 1}',
        '{"name": "pad_token", "value": "x1"} mask_token=x1 {"value": "x1", "name": "pad_token"}',
        "[rank0]: pass: 1 of 3, 0: pass: done, train.py --pw 400W --auth basic, n\u00a0= 3",
        "\x1b[32mstep\x1b[0m \x1b[1m12\x1b[0m/100 tokens\x1b[0m: 512 \x1b[36mloss\x1b[0m=2.1",
        "n1:7 [0] NCCL INFO comm 0x55d0 busId 1a000 commId 0xf3a9c0d1e4b5a697 - Init START",
        "pid 4711 on gpu-a100-017 step=1/3 lr=0.0001 loss: 2.31 grad_norm=1.2e-3 tokens=512",
        "tcp://10.0.0.1:29500",
        "init_method=tcp://[fe80::1]:29500",
        "https://h.example.org:8443",
        "docker://ubuntu:jammy",
        "ssh://git@host https://$U:$PW",
        "the password is wrong; password is wrong; the pass: 1 of 3; pw=400W pw=0.5",
        "iVBORw0KGgoAAAANSUhEUgAAAAUA\n-----END CERTIFICATE-----",
    ],
)
def test_what_a_parser_needs_stays(line: str) -> None:
    assert masked(line) == line


def test_captures_of_slurm_come_out_unchanged() -> None:
    captures = sorted((ROOT / "fixtures/slurm").glob("*/*.out"))
    assert len(captures) > 100
    for path in captures:
        data = path.read_bytes()
        assert mask(data) == data, path


def test_bytes_that_are_no_text_stay() -> None:
    assert (
        mask(b"\xff\xfe\x00 password=\xff\xfehun rest\xff")
        == b"\xff\xfe\x00 password=%b rest\xff" % MARK
    )


# fmt: off
PIECES = st.sampled_from([
    "password", "token", "secret", "_KEY", "api_key", "=", ":", " ", "\n", "\r\n", '"', "'", "\\",
    "--", "Bearer ", "https://", "@", "a1B", "hunter2", "‹masked›", "Authorization", "[", "]", "{",
    "}", ",", "hf_", "sk-", "eyJ", MIXED, HEX, "|", ">", "<", "?", "&", "sig=", "wandb login ", "0",
    "str", ".", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "login x", "\t", "$X",
    "none", "cookie", "curl -u a:", "mysql ", " -p", "passphrase ", "APIKEY ", "key=", "pass=",
    "&x-goog-signature=", "redis-cli ", " -a ", "hunter2Sb",
    "'--password', '", "--wandb_key ", "name: X_KEY\n  value: ", "passphrase: a b ", "(", ")", "/",
    "password -> ", "%3D", "pw=", "‹masked-2›", "***@", '"key": "', "-----END RSA PRIVATE KEY-----",
    "sk-a1", "pad_", "\x1b[36m", "\x1b[0m", "\\u001b[1m", "\x1b", "[0m", "&quot;", "\u00a0", "(a)b",
    '"value": "', '", "name": "', "--pw ", "SecretStr('", "''", "0: pass: ",
])
# fmt: on
SOUP = (st.lists(PIECES | st.text(max_size=3), max_size=24)).map("".join)


@given(SOUP)
def test_twice_is_once_and_lines_stay(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    once = mask(data)
    assert mask(once) == once
    assert once.count(b"\n") == data.count(b"\n")


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    once = mask(data)
    assert mask(once) == once


@given(
    name=st.sampled_from(
        ["password", "X_TOKEN", "api_key", "MY_SECRET", "WANDB_API_KEY", "client-secret"]
    ),
    separator=st.sampled_from(["=", ": ", " = ", '": "', "': '", '\\": \\"', "=>"]),
    secret=st.from_regex(r"[A-Za-z][A-Za-z0-9+/_-]{11,40}", fullmatch=True),
    before=st.sampled_from(["", "x ", "{'", '{"', "[rank3]: export ", "\n\n", '{\\"']),
    after=st.sampled_from(["", "\n", " rank=3", "\r\nnext", "', ", '", ', '\\"}']),
)
def test_no_secret_behind_its_name_survives(
    name: str, separator: str, secret: str, before: str, after: str
) -> None:
    assert secret not in masked(f"{before}{name}{separator}{secret}{after}")


def test_work_grows_with_the_bytes_only() -> None:
    # Each of these would take minutes in a pattern that looks back or ahead without a limit.
    for piece in (
        *(
            "a",
            "=",
            '"',
            "password=",
            "password:\n",
            "--token ",
            "x://a:",
            "eyJ",
            "hf_a",
            "[?&]sig=",
        ),
        *(
            "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----",
            f"{MIXED}\n",
            "Bearer ",
            "token",
            "api_key",
            " login x",
            "<",
            "\\",
            "sk-a-",
        ),
        *("password=\\", "cookie: ", MIXED, "A_", "_key", 'token="\\'),
        *(
            "curl ",
            "curl -u",
            "mysql -u ",
            " -p",
            "passphrase ",
            "wandb login --",
            "key=",
            "signature=",
            "passphrase: a ",
            "'--password', ",
            '"--token",\n',
            "--a_key ",
            "name: x_key ",
            "https://a:b ",
            "password: a\n",
            "/token=a",
            "auth=('a', ",
            "sk-aB3",
            "token=(a1",
            "pass%3D",
            "\x1b[36m",
            "token\x1b[0m=",
            "api_key=a(b)c",
            '"value": "a", ',
            '"value": "a", "name": ',
            "token=''",
            "password=a\\'a",
            "curl -u a:b c ",
            "[a]: 0: ",
            "token=a(",
            "1234567890:AA",
        ),
    ):
        text = piece.encode() * (60_000 // len(piece))
        once = mask(text)
        assert mask(once) == once
        assert once.count(b"\n") == text.count(b"\n")
