"""Lines that show what a language model wrote: nobody's statement on the run, whatever they say.

Source: evaluations and samples in training logs, for example::

    2031-05-05 10:00:01 INFO Generated: [rank3]:[E505 10:00:01.1 ProcessGroupNCCL.cpp:632] [Rank 3]
"""

import re

#: In front of the words stand times, levels and ranks only: ``Error in prediction: …`` is none.
_BEGINS = re.compile(
    r"(?:[\[(]?\d[\d:.,T/+Z-]{1,30}[\])]?,? {1,3}|[\[(]?(?:INFO|DEBUG)[\])]?:? {0,3}"
    r"|\[rank\d{1,6}\]:? {0,3}|[|-] ){0,6}"
    r"(?:[Gg]enerated(?:[_ ][Tt]ext|[_ ][Oo]utput)?|GENERATED|[Gg]eneration|[Cc]ompletion"
    r"|[Pp]rediction|[Mm]odel[_ ](?:[Oo]utput|[Aa]nswer)|[Aa]ssistant|[Dd]ecoded|[Ss]ample)"
    r"(?: ?\[?#?\d{1,9}\]?)?['\"]?: ?['\"]?[^\s\d]"
)

#: One of these stands in every such line.
_WORDS = ("enerat", "GENERATED", "ompletion", "rediction", "odel", "ssistant", "ecoded", "ample")


def is_of_a_model(text: str) -> bool:
    """Is what a line says the output of a model?"""
    return any(word in text for word in _WORDS) and _BEGINS.match(text) is not None
