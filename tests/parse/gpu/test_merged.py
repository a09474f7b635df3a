"""One GPU as several sources saw it."""

from slurmtop.model.gpu import GpuSample
from slurmtop.parse.gpu.merged import merge_samples


def test_what_the_first_has_stands_and_what_it_lacks_is_filled_by_uuid() -> None:
    base = (GpuSample(index=0, uuid="GPU-a", util_percent=97.0), GpuSample(index=1, uuid="GPU-b"))
    other = (
        GpuSample(dcgm_id=0, uuid="GPU-b", util_percent=3.0, sm_active=0.1),
        GpuSample(dcgm_id=1, uuid="GPU-a", util_percent=50.0, sm_active=0.9, jobs=("7",)),
        GpuSample(dcgm_id=2, uuid="GPU-of-another-job", sm_active=0.5),
    )
    merged, used = merge_samples(base, other)
    assert used
    assert [(one.util_percent, one.sm_active, one.index) for one in merged] == [
        (97.0, 0.9, 0),
        (3.0, 0.1, 1),
    ]
    assert merged[0].jobs == ("7",)


def test_numbers_join_nothing_and_slices_are_left_to_themselves() -> None:
    base = (GpuSample(index=0), GpuSample(index=1, uuid="GPU-a", slice_id="3"))
    other = (GpuSample(index=0, dcgm_id=0, sm_active=0.9), GpuSample(uuid="GPU-a", sm_active=0.8))
    assert merge_samples(base, other) == (base, False)


def test_words_that_say_why_there_is_no_number_stay() -> None:
    parent = GpuSample(uuid="GPU-a", mig=True, words=(("util_percent", "[N/A]"),))
    merged, used = merge_samples((parent,), (GpuSample(uuid="GPU-a", util_percent=0.0),))
    assert (merged[0].util_percent, used) == (None, False)
