"""Which lines the patterns of :mod:`slurmtop.parse.mask_rules` need to see, told in one look."""

import re

_TOLD = (
    rb"(?:\\{0,3}(?:[\"'](?:,|[ \t]{0,20}\r?\n)|[\"']?\]?[ \t]*(?:[=:>]|%3[ad]))"
    rb"|&(?:quot|apos|#\d\d);|[ \t]*(?:\xc2\xa0|\xef\xbc[\x9a\x9d]))"
)
_TRIGGERS = (
    *(
        name + _TOLD
        for name in (
            *(rb"pass(?:words?|wd|phrase|code)?", rb"pwd", rb"pw", rb"secrets?[a-z_-]{0,12}"),
            *(rb"token", rb"key(?:[_-]?id)?", rb"pat", rb"auth", rb"credentials?", rb"string"),
            *(rb"authorization", rb"cookie2?", rb"signature", rb"session[_-]?id"),
        )
    ),
    *(
        name + rb"\\{0,3}[\"']?[ \t]{0,20}[:=][ \t]{0,20}\\{0,3}[\"']?"
        rb"[a-z0-9_.-]{0,60}(?:pass|secret|token|key|pw)"
        for name in (rb"name", rb"key")
    ),
    rb"passw(?:or)?d[ \t\\]|passphrase[ \t\\]|passcode[ \t]|_pass[ \t]|-pass[ \t]|token[ \t\\]",
    rb"secret[ \t\\]|key[ \t\\]|credentials?[ \t\\]|pat[ \t\\]|bearer[ \t]|basic[ \t]",
    rb"basic_?auth\(",
    rb"://[^\s/]{1,601}@|://[^\s/:@]{1,200}:[^\s/:@]{6,400}(?:\r?\n|\Z)|hooks\.slack|api/webhooks",
    rb"\?(?:sig|key|code|auth)=|&(?:sig|key|code|auth)=|curl |wget |https? |lftp |svn |git |mysql",
    rb"mariadb|mongo|sshpass|7za? |login |redis-cli|ldap[a-z]|zip |smbclient |rpcclient |wandb",
    rb"relogin|:aa[a-z0-9_-]{28}|pw[ \t]|auth[ \t]",
    rb"akia|asia|abia|acca|agpa|aida|aroa|aipa|anpa|anva|hf_|api_org_|sk[_-]|rk[_-]|pk[_-]",
    rb"gh[pousr]_|github_pat_|gl[a-z]{2,5}-|glsa_|glc_|xox[abeoprs]-|xapp-|local-|aiza|ya29\.|npm_",
    rb"pypi-|nvapi-|dapi|dckr_|dop_v1_|gsk_|xai-|r8_|tskey-|sg\.|eyj|shp[acp][ats]_|whsec_|hv[sbr]\.",
    rb"age-secret-key",
)
#: One look over the lower-cased bytes tells which lines the patterns need to see. Every
#: branch begins with a letter of its own: that is what makes the search fast.
TRIGGER = re.compile(rb"|".join(_TRIGGERS))
