"""Lines by which a program tells that it, or one worker, has come to an end.

Source: Lightning, transformers, Megatron, Keras, submitit and what people write, for example::

    `Trainer.fit` stopped: `max_epochs=10` reached.
    Worker 0 completed its entire epoch (training).
"""

import re

from slurmtop.model.events.program import Closing

#: "When training is done" is no end, nor is the end of one epoch.
_CONDITION = re.compile(r"(?i)\b(?:after|when|until|once|if|before|not|will|to be|as soon as)\b")

_FINISHED = re.compile(
    r"`?Trainer\.(?:fit|train)`? stopped: `?(?:max_epochs|max_steps|min_\w{3,8})|'train_runtime'"
    r"|^\*{3,8} train metrics \*{3,8}|\[after training is done\]|exiting program at iteration \d"
    r"|Job completed successfully"
)
_TRAINING_OVER = re.compile(
    r"(?i)\b(?P<over>(?:training|fine-?tuning|pre-?training)(?: job| run| loop)?(?: is| has| was)?"
    r"(?: been)?(?: successfully)? (?:complete[d]?|finished|done|ended|over)"
    r"|(?:finished|completed|done with|done) (?:the )?(?:whole |entire )?training)\b"
    r"(?! (?:epoch|step|iteration|batch|phase|on |for epoch|of epoch|\d))"
)
#: ``Training finished with exit code 1`` tells of no good end.
_BADLY = re.compile(
    r"(?i)\b(?:code|status|rc|exit(?:code)?)[ =:]{1,3}-?[1-9]|\berror|\bfail|exception|\babort"
    r"|unsuccessful|premature|too early|interrupt|\bcrash"
)
_EPOCH_DONE = re.compile(
    r"(?i)\b(?:worker|rank|process|trainer|replica)\s?#?\[?(?P<rank>\d{1,6})\]?:? (?:has )?"
    r"(?:completed|finished|is done with|reached the end of|exhausted) (?:its |the |all )?"
    r"(?:whole |entire |own |of its )?(?:epoch|data\w*|shard|batches|iterator|dataloader)\b"
)
_OUT_OF_DATA = re.compile(
    r"^StopIteration(?::|\s*$)|(?i:\bran out of (?:batches|data|samples|input)\b"
    r"|\b(?:data ?set|data ?loader|iterator|data)(?: is| was| has been| are)? exhausted\b"
    r"|\bexhausted (?:all )?(?:its |the )?(?:inputs?|data)\b"
    r"|\bno more (?:batches|data|samples)\b|\bout of data\b)|OutOfRangeError: End of sequence"
)
_TIME_UP = re.compile(
    r"(?i)\b(?:time|wall[- ]?time|wall[- ]?clock|run ?time|duration|time[- ]budget)"
    r"(?: limit| budget)?(?: (?:of|\()[^.\n]{1,40}?)?,? (?:is |was |has been )?"
    r"(?:reached|exceeded|hit|expired|up)\b.{0,80}?\b(?:stop|exit|end|terminat|finish|signal|sav|quit)"
    r"|\btime limit reached\b|\breached (?:the )?(?:max(?:imum)? )?(?:time|wall[- ]?time) limit\b"
    r"|exiting program after \d{1,9}(?:\.\d+)? minutes"
)

#: No line without one of these closes anything.
_WORDS = (
    "rain",
    "uning",
    "exiting program",
    "completed",
    "finished",
    "done with",
    "reached",
    "xhausted",
    "StopIteration",
    "ran out",
    "no more",
    "out of data",
    "End of sequence",
    "ime",
    "xpired",
    "uration",
)


def closing_of(text: str) -> tuple[Closing, int | None] | None:
    """What comes to its end by this line, and the worker that it names."""
    if not any(word in text for word in _WORDS):
        return None
    if (worker := _EPOCH_DONE.search(text)) is not None:
        return Closing.EPOCH_DONE, int(worker["rank"])
    if _FINISHED.search(text):
        return Closing.FINISHED, None
    if (found := _TRAINING_OVER.search(text)) is not None:
        badly = _CONDITION.search(text[: found.start()]) or _BADLY.search(text)
        return None if badly else (Closing.FINISHED, None)
    if (found := _OUT_OF_DATA.search(text)) is not None:
        return None if _CONDITION.search(text[: found.start()]) else (Closing.OUT_OF_DATA, None)
    if "DUE TO TIME LIMIT" not in text and _TIME_UP.search(text):
        return Closing.TIME_UP, None
    return None
