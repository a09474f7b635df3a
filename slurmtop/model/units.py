"""Numbers as people read them. Units stand in the names: seconds, bytes."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def clock_text(seconds: float) -> str:
    """Slurm's own shape: ``12:05``, ``3:02:07``, ``2-03:04:05``. Never negative."""
    whole = max(0, int(seconds))
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{secs:02}"
    if hours:
        return f"{hours}:{minutes:02}:{secs:02}"
    return f"{minutes}:{secs:02}"


def ago_text(seconds: float) -> str:
    """A short age: ``12 s``, ``4 min``, ``3.2 h``, ``5 d``. Never negative."""
    value = max(0.0, seconds)
    if value < 120:
        return f"{int(value)} s"
    if value < 7_200:
        return f"{int(value // 60)} min"
    if value < 172_800:
        return f"{value / 3_600:.1f} h"
    return f"{int(value // 86_400)} d"


def bytes_text(count: float) -> str:
    """``62.5 GiB``; rounds up to the next unit rather than print ``1024.0 GiB``."""
    value = float(count)
    for unit in _BINARY:
        if abs(value) < 1023.95 or unit == _BINARY[-1]:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("the loop always returns")


def count_text(count: int) -> str:
    """``20,000``."""
    return f"{count:,}"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """``1 job``, ``3 jobs``."""
    return f"{count_text(count)} {noun if count == 1 else many or noun + 's'}"
