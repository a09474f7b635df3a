"""Which phase of a program a line begins or ends: evaluating, saving, loading, and so on.

Source: trainers and libraries (transformers, Megatron, DeepSpeed, Lightning, mmengine, pycocotools,
datasets, vLLM, torch inductor), for example::

    Evaluate annotation type *bbox*
    saving checkpoint at iteration     500 to /ckpt in torch format

A verb at the beginning of what is said counts; a setting (``save_steps=500``), a plan (``will be
saved every``) and a measured value do not.
"""

import re

from slurmtop.model.events.program import Doing

#: Where a statement begins: at once, or behind a logger's name, level, bracket or ornament.
_START = (
    r"(?:^|[\]>|*#:=-]\s{1,6}|[*#=>-]{2,40}|\b(?:INFO|WARNING|DEBUG|NOTICE|info)\s{1,4}"
    r"|\bINFO:[\w.]{1,60}:|\.\.\.\s?)\s{0,4}"
)
_BEGINS = (
    r"(?:(?:[Nn]ow|[Ss]tart(?:ing|ed)?(?: to| the)?|[Bb]egin(?:ning)?(?: to| the)?|[Rr]unning"
    r"|[Pp]erforming|[Dd]oing) )"
)
_PLAN = re.compile(
    r"(?i)\b(?:every|will|would|can|should|if|when|disabled|enabled|skip\w*|not|interval|strategy"
    r"|frequency|option|argument)\b"
)
_SETTING = re.compile(r"^\w{0,30}['\"]?\s{0,8}(?:[=:]\s{0,8}\S|\()")
_MEASURED = re.compile(
    r"(?i)^\s{0,4}(?:set )?(?:loss|acc|accuracy|metrics?|results?|scores?|ppl|perplexity|f1"
    r"|m?ap|bleu|wer|took|time|done|finished|complete\w*|ended|over)\b"
)
#: What is prepared: these verbs alone would say anything.
_DATA = (
    r"\b(?:data\w*|index|indices|indexes|splits?|cache|samples?|examples?|files?|shards?|tokens?"
    r"|documents?|features?|vocab\w*|captions?|images?|videos?|embeddings?|latents?)\b"
)


def _statement(words: str) -> re.Pattern[str]:
    return re.compile(rf"{_START}(?P<verb>{words})(?P<rest>.{{0,160}})")


#: (what it does, over, words). The first that fits tells.
_PHASES: tuple[tuple[Doing, bool, re.Pattern[str]], ...] = (
    (
        Doing.EVALUATING,
        True,
        re.compile(
            r"^\s{0,4}Average (?:Precision|Recall)\s{1,4}\(A[PR]\) @\["
            r"|['\"]eval_(?:loss|runtime)['\"]:"
            r"|\bvalidation loss at (?:iteration|the end)|^\*{3,8} eval metrics \*{3,8}"
            r"|\b(?:[Ee]valuation|[Vv]alidation|[Ii]nference|[Tt]esting) (?:is |has )?"
            r"(?:done|finished|complete[d]?|took|results?:|summary)\b"
        ),
    ),
    (
        Doing.EVALUATING,
        False,
        _statement(
            r"[Ee]valuating|Evaluate annotation type|Running per image evaluation"
            r"|Accumulating evaluation results|[Vv]alidating|Sanity [Cc]hecking"
            rf"|{_BEGINS}(?:[Ee]valuation|[Vv]alidation|[Ii]nference|[Tt]esting|[Pp]rediction|eval"
            r"|evaluate|validate|test|predict)\b"
            r"|[Cc]omputing (?:the )?(?:metrics?|mAP|FID|BLEU|scores?)|Start(?:ing)? inference on"
        ),
    ),
    (
        Doing.COMPILING,
        True,
        re.compile(
            r"SingleProcess AUTOTUNE|Loading extension module|Time to load \w{1,60} op:"
            r"|ninja: no work to do|[Gg]raph captur\w{1,4} (?:finished|took|done)"
            r"|\b[Cc]ompil(?:ation|ing)\b.{0,60}\b(?:took|finished|done|complete[d]?)\b"
            r"|torch\.compile takes|[Aa]utotun\w{1,4} (?:finished|took|done|complete[d]?)"
        ),
    ),
    (
        Doing.COMPILING,
        False,
        _statement(
            r"AUTOTUNE(?= \w)|[Aa]uto-?tuning|[Cc]ompiling|[Bb]uilding extension module"
            r"|[Cc]apturing (?:the )?(?:model for )?(?:CUDA|cuda) ?[Gg]raphs?"
            r"|Capturing the model|Detected CUDA files, patching ldflags|[Jj]it compiling"
        ),
    ),
    (
        Doing.SAVING,
        True,
        re.compile(
            r"(?i)\b(?:successfully saved"
            r"|saved (?:the )?(?:\w{1,20} ){0,3}?(?:checkpoint|model|state|weights)"
            r"|(?:checkpoint|model weights|configuration|model|weights|state)"
            r"(?: is| has been| was)? (?:successfully )?(?:saved|written)(?! every)\b"
            r"|\[torch\] saved"
            r"|checkpoint \S{1,300} is ready"
            r"|(?:saving|checkpointing) (?:\w{1,20} ){0,3}(?:took|finished|done|complete[d]?))"
        ),
    ),
    (
        Doing.SAVING,
        False,
        _statement(
            r"[Ss]aving(?! (?:logs?|config\w*|hyper\w*|args|arguments|plots?|figures?|vocab\w*)\b)"
            r"(?= \S)|[Ww]riting (?:the )?checkpoint|[Cc]heckpointing(?= \S)|[Dd]umping checkpoint"
            rf"|{_BEGINS}(?:sav(?:e|ing)|checkpoint)\b|\[Torch\] Saving"
        ),
    ),
    (
        Doing.LOADING,
        True,
        re.compile(
            r"(?i)\b(?:successfully (?:loaded|resumed|restored)"
            r"|loaded (?:the )?(?:\w{1,20} ){0,3}?(?:checkpoint|model|state|weights|dataset)"
            r"|(?:checkpoint|model|weights|dataset)(?: is| has been| was)?"
            r" (?:successfully )?loaded\b"
            r"|loading (?:\w{1,20} ){0,3}(?:took|finished|done|complete[d]?))"
        ),
    ),
    (
        Doing.LOADING,
        False,
        _statement(
            r"[Ll]oading(?= \S)"
            r"(?! (?:extension|plugins?|librar\w+|modules?|config\w*|environment)\b)"
            r"|[Rr]esum(?:e|ing) (?:training )?from|[Rr]estor(?:e|ing) (?:the )?"
            r"(?:checkpoint|model|state|states|weights|all)"
        ),
    ),
    (
        Doing.PREPARING,
        True,
        re.compile(
            r"(?i)^\s{0,4}index created!"
            r"|\bdone (?:creating|building|preparing|with)\b.{0,60}(?:data|index)"
            r"|\bfinished (?:creating|building|preparing|tokeni[sz]ing|preprocessing|caching)\b"
            r"|\b(?:tokeni[sz]ation|preprocessing|data preparation) (?:is )?"
            r"(?:done|finished|complete)"
        ),
    ),
    (
        Doing.PREPARING,
        False,
        _statement(
            r"(?:[Tt]okeni[sz]ing|[Pp]re-?processing|[Pp]reparing|[Dd]ownloading|[Cc]aching"
            r"|[Ss]huffling)(?= \S)(?! (?:model|to|for|optimizer|everything)\b)"
            rf"|(?:[Mm]apping|[Ff]iltering|[Pp]acking|[Ii]ndexing|[Ee]xtracting|[Cc]onverting"
            r"|[Pp]rocessing|[Gg]rouping|[Bb]uilding|[Cc]reating|[Gg]enerating)"
            rf"(?= .{{0,60}}{_DATA})"
            r"|[Cc]reating index\.\.\.|Running tokenizer on"
        ),
    ),
)
#: No line without one of these begins or ends anything.
_WORDS = (
    "valuat",
    "alidat",
    "anity",
    "nference",
    "esting",
    "test",
    "redict",
    "eval",
    "etric",
    "omputing",
    "Average ",
    "ompil",
    "utotun",
    "uto-tun",
    "AUTOTUNE",
    "xtension",
    "ninja",
    "aptur",
    "Time to load",
    "ldflags",
    "sav",
    "Sav",
    "heckpoint",
    "CHECKPOINT",
    "written",
    "umping",
    "oad",
    "esum",
    "estor",
    "ndex",
    "DONE (",
    "Done (",
    "done ",
    "inished",
    "kenizing",
    "kenising",
    "kenizat",
    "rocessing",
    "eparing",
    "eparation",
    "aching",
    "huffling",
    "apping",
    "iltering",
    "acking",
    "xtracting",
    "onverting",
    "rouping",
    "uilding",
    "reating",
    "nerating",
    "tokenizer",
)
_COMMON_DONE = re.compile(r"^\s{0,4}(?:DONE|Done) \(t=\s{0,4}\d")

#: The first of these words in front of a bar tells what it counts.
_BAR_WORDS = re.compile(
    r"(?i)(?P<compiling>compil|captur|auto-?tun)|(?P<saving>\bsav(?:e|ing)\b|writing|dumping)"
    r"|(?P<loading>\bload(?:ing)?\b|resum|restor)"
    r"|(?P<preparing>prepar|tokeni[sz]|\bmap\b|mapping|filter|\w*process(?:ing)?\b|download|fetch"
    r"|build|pack(?:ing)?\b|cach|group|generat|index|convert|extract|shuffl|sort|hash|split|chunk)"
    r"|(?P<evaluating>eval|valid|\bval\b|\btest(?:ing)?\b|predict|infer|sanity|scor)"
)


def phase_of(text: str, last: Doing | None = None) -> tuple[Doing, bool] | None:
    """(what, over) of a line; ``last`` is what the writer did before (``DONE (t=0.41s)``)."""
    if not any(word in text for word in _WORDS):
        return None
    if _COMMON_DONE.match(text):
        return (last, True) if last is not None else None
    for doing, over, pattern in _PHASES:
        found = pattern.search(text)
        if found is None:
            continue
        if over:
            if re.search(r"(?i)\b(?:will|to) be (?:saved|loaded|written)\b|\bevery\b", text):
                return None
            return doing, True
        rest = found["rest"]
        if _PLAN.search(rest[:60]) or _SETTING.match(rest):
            return None
        return doing, _MEASURED.match(rest) is not None
    return None


def bar_phase(about: str | None) -> Doing | None:
    """What a bar counts, by the words in front of it; None for the steps of training."""
    found = _BAR_WORDS.search(about) if about else None
    if found is None or re.search(r"(?i)\btrain(?:ing)?\b(?! (?:split|set|data))", about or ""):
        return None
    return Doing(found.lastgroup) if found.lastgroup else None
