"""Thirty secrets, each as it stands in a real place, and a runner that plants them."""

from collections.abc import AsyncIterator

from slurmtop.model.ports import Command, Completed, FileStat, Runner

_HEX40 = "3f2a9c0d1e4b5a6978c0ffee3f2a9c0d1e4b5a69"
#: What stands in a log, one a line.
LOG = (
    f"wandb: Currently logged in, WANDB_API_KEY={_HEX40}",
    "huggingface: using token 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",
    "boto3: aws_access_key_id=AKIAIOSFODNN7EXAMPLE",
    "boto3: aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "git clone https://alice:s3cr3tPassw0rd@git.example.org/moe.git",
    "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl",
    "OPENAI_API_KEY='sk-proj-Abc123Def456Ghi789Jkl012'",
    '{"github": {"token": "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"}}',
    "mlflow tracking: password: Tr0ub4dor&3plus",
    "slack https://hooks.slack.com/services/T00000000/B00000000/XXabcdXXXXXXXXXXXXXXXXXX",
    "dsn postgresql://train:pgPassw0rd9@db1:5432/runs",
    "gitlab glpat-AbCdEfGhIjKlMnOpQrSt",
    "GET /blob?sig=AbCdEfGhIjKlMnOpQrStUvWxYz012345%3D HTTP/1.1",
)
#: What an environment may hold under names that leave a node, or in a tool's own line.
ENVIRONMENT = (
    "TORCH_TOKEN=nvapi-AbCdEfGhIjKlMnOpQrStUvWx",
    "NCCL_AUTH_TOKEN=tok_AbCdEfGh12345678IjKl",
    "MASTER_ADDR=tcp://alice:envPassw0rd7@gpu03",
    "NCCL_API_KEY=9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "TORCHELASTIC_SECRET_KEY=kZx81LmNoPqRsTuVwXyZ",
    "GLOO_PASSWORD=gl00-hunter2-hunter2",
)
#: Words of a command line, option and value on one line as some programs write their title.
ARGV = (
    "--api-key=argvKey0123456789AbCdEf",
    "--wandb-token argvTok0123456789GhIj",
    "--db postgresql://u:argvPassw0rd5@db/x",
    "--password=argv-hunter2-secret",
)
#: What a person writes into the comment of a job, or its name.
COMMENT = (
    "token=cmtTok0123456789AbCdEfGh",
    "api_key:cmtKey0123456789AbCdEfGh",
    "https://bob:cmtPassw0rd6@wiki/x",
    "secret=cmtSecret0123456789",
)
#: Beside the log: what the batch script prints of itself.
SCRIPT = (
    "+ export HF_TOKEN=hf_sCrIpTsCrIpTsCrIpTsCrIpTsCrIpTsCrI",
    "+ export DB_PASSWORD=scriptPassw0rd8",
    "+ curl -H 'X-Api-Key: scriptKey0123456789AbCd' https://api.example.org",
)
#: The parts that must stand nowhere.
SECRETS = (
    _HEX40,
    "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",
    "AKIAIOSFODNN7EXAMPLE",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
    "s3cr3tPassw0rd",
    "eyJhbGciOiJIUzI1NiJ9",
    "sk-proj-Abc123Def456Ghi789Jkl012",
    "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "Tr0ub4dor",
    "XXabcdXXXXXXXXXXXXXXXXXX",
    "pgPassw0rd9",
    "glpat-AbCdEfGhIjKlMnOpQrSt",
    "AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "nvapi-AbCdEfGhIjKlMnOpQrStUvWx",
    "tok_AbCdEfGh12345678IjKl",
    "envPassw0rd7",
    "9f8e7d6c5b4a39281706f5e4d3c2b1a0",
    "kZx81LmNoPqRsTuVwXyZ",
    "gl00-hunter2-hunter2",
    "argvKey0123456789AbCdEf",
    "argvTok0123456789GhIj",
    "argvPassw0rd5",
    "argv-hunter2-secret",
    "cmtTok0123456789AbCdEfGh",
    "cmtKey0123456789AbCdEfGh",
    "cmtPassw0rd6",
    "cmtSecret0123456789",
    "hf_sCrIpTsCrIpTsCrIpTsCrIpTsCrIpTsCrI",
    "scriptPassw0rd8",
    "scriptKey0123456789AbCd",
)


class Planting:
    """Any runner, with the secrets in what it says: of Slurm, of nodes, of files."""

    def __init__(self, inner: Runner) -> None:
        self._inner = inner
        self.planted = 0

    async def run(self, command: Command) -> Completed:
        done = await self._inner.run(command)
        out = done.stdout
        if command.argv[0] == "scontrol":
            comment = " ".join(COMMENT)
            out = out.replace(b"   WorkDir=", f"   Comment={comment}\n   WorkDir=".encode())
        elif command.host is not None:
            out = b"".join(map(self._planted, out.splitlines(keepends=True)))
        self.planted += out != done.stdout
        return Completed(
            done.rc, out, done.stderr, done.started_at, done.took_s, truncated=done.truncated
        )

    def _planted(self, line: bytes) -> bytes:
        kind, _, rest = line.partition(b" ")
        pid = rest.partition(b" ")[0].decode()
        if line.endswith(b" train.py\n") and kind == b"A":
            return line + "".join(f"A {pid} {word}\n" for word in ARGV).encode()
        if b" NCCL_DEBUG=" in line and kind == b"E":
            return line + "".join(f"E {pid} {word}\n" for word in ENVIRONMENT).encode()
        return line

    def stream(self, command: Command) -> AsyncIterator[bytes]:
        return self._inner.stream(command)

    async def read(self, path: str, offset: int, length: int, host: str | None = None) -> bytes:
        data = await self._whole(path)
        return data[offset : offset + length]

    async def _whole(self, path: str) -> bytes:
        size = (await self._inner.stat(path)).size
        data = await self._inner.read(path, 0, size)
        head = "".join(f"{line}\n" for line in (*SCRIPT, *LOG))
        return head.encode() + data

    async def stat(self, path: str, host: str | None = None) -> FileStat:
        stat = await self._inner.stat(path, host)
        size = len(await self._whole(path))
        return FileStat(size, stat.mtime, stat.device, stat.inode, stat.is_dir, stat.is_regular)

    async def list(self, path: str, host: str | None = None) -> tuple[str, ...]:
        return await self._inner.list(path, host)
