"""Measure with landspeed from Python, and read its results as data frames.

>>> import landspeed
>>> run = landspeed.run("dtn.example", time="10s", parallel=4)      # doctest: +SKIP
>>> run.goodput_bps, run.cause                                      # doctest: +SKIP
(9.41e9, 'receiver-window')
>>> before = landspeed.load("archive:tag=before,last=30d")          # doctest: +SKIP
>>> before.runs(frame="polars").group_by("congestion").len()        # doctest: +SKIP

Times are nanoseconds, rates bits per second and sizes bytes; every column's name ends with its unit.
"""

from landspeed._measure import Document, Run, compare, lab, run, sweep
from landspeed._program import CommandError, ProgramNotFoundError, find_program
from landspeed._results import Results, load

__all__ = [
    "CommandError",
    "Document",
    "ProgramNotFoundError",
    "Results",
    "Run",
    "compare",
    "find_program",
    "lab",
    "load",
    "run",
    "sweep",
]
