"""What slurmtop itself prints, where it was kept as text: ``slurmtop triage logs > logs/now.txt``.

It quotes what a run said, perhaps another one and long ago. A file is known for it where it begins
as one of the forms and holds nothing that stands in none of them: a log whose script had printed a
verdict goes on with other lines.
"""

import re

_STATES = b"PENDING|HUNG|FAILED|SLOW|RECOVERING|HEALTHY|IDLE|UNKNOWN"
_REPORT_HEAD = rb"(?:job [^\n]{1,200}: )?(?:" + _STATES + rb")(?:  [a-z0-9-]{1,60})?"
_CHAT_HEAD = (
    rb"(?:job [^\n,]{1,200}|files), (?:cluster [^\n,]{1,80}, )?state [a-z]{1,20}, [^\n]{1,90}"
)
_LABELS = b"what|who|since|proof|but|unread|do|by"
_DAY = rb"-- [0-9]{4}-[0-9]{2}-[0-9]{2}(?: \(UTC\))?"
_CLOCK = rb"[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}[ ~]"
_UNTIMED = rb"-- no time told: in each file's order"
#: The long report, the four lines, the block for a chat, the timeline.
_BEGINS = re.compile(
    rb"%b\n(?:  [^\n]*\n){1,60}?  (?:[^\n]*; )?confidence\s{1,4}(?:low|medium|high)\b"
    rb"|what {3}[^\n]*\nwho {4}[^\n]*\nproof {2}[^\n]*\ndo {5}"
    rb"|%b\nwhat: {3}[^\n]*\nwho: {4}"
    rb"|%b\n%b"
    rb"|%b\n" % (_REPORT_HEAD, _CHAT_HEAD, _DAY, _CLOCK, _UNTIMED)
)
_LINE = re.compile(
    rb"(?: {2}[^\n]*|%b|who|proof|against it|not read|sources|what now|where the ranks stand.*"
    rb"|(?:%b) [^\n]*|(?:%b): [^\n]*|%b|%b[^\n]*|slurmtop: [^\n]*)?\Z"
    % (_REPORT_HEAD, _LABELS, _LABELS, _CHAT_HEAD, _CLOCK)
)
_TIMELINE_BREAK = b"-- "
_NOTES = re.compile(rb"(?:(?:slurmtop: [^\n]*)?\n)*")
#: Reports are short; so much of one is looked at.
_LOOKED_AT = 64 * 1024


def is_printed(start: bytes) -> bool:
    """Is the file that begins with ``start`` nothing but what slurmtop printed?"""
    # Its last line may be cut, by whoever took the sample.
    text = start[:_LOOKED_AT].replace(b"\r\n", b"\n")
    text = text[: text.rfind(b"\n") + 1]
    notes = _NOTES.match(text)
    # Nearly every file is known for a log by its first line.
    if notes is None or not _BEGINS.match(text, notes.end()):
        return False
    untimed = False
    for line in text.split(b"\n"):
        untimed = line.startswith(_TIMELINE_BREAK) or (untimed and b": " in line)
        if not untimed and not _LINE.match(line):
            return False
    return True
