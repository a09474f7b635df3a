"""The kinds of statements that logs make, one module a speaker.

``nccl``, ``torch`` (c10d), ``launch`` (torchrun, mpirun, Ray and the ends of processes),
``slurm``, ``system`` (kernel, driver, memory), ``program`` (the user's own code) and ``reports``
(text reports of other tools that stand in a log).
"""
