"""The viewer's time zone, with its summer time, without knowing its name."""

import time
from datetime import UTC, datetime, timedelta, tzinfo


class LocalZone(tzinfo):
    """The zone of this machine (``TZ``, ``/etc/localtime``), right for every date.

    ``datetime.astimezone()`` without a zone gives the offset of one moment only, which is an
    hour off on the other side of a change of the clocks.
    """

    def fromutc(self, dt: datetime) -> datetime:
        seconds = dt.replace(tzinfo=UTC).timestamp()
        # Without a zone Python asks the C library, and marks the hour that comes twice.
        return datetime.fromtimestamp(seconds).replace(tzinfo=self)  # noqa: DTZ006

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return timedelta(seconds=_local(dt).tm_gmtoff) if dt is not None else None

    def dst(self, dt: datetime | None) -> timedelta | None:
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        return _local(dt).tm_zone if dt is not None else None


def _local(moment: datetime) -> time.struct_time:
    return time.localtime(moment.replace(tzinfo=None).timestamp())
