"""Hostile files: damaged in every way that a seeded random generator finds, and read by everything that reads files.

    python -m tests.fuzz --inputs 1000000

An input must be read or refused with one of our errors, in bounded time and memory. Input number i is a function of its
number alone, so that `python -m tests.fuzz --first i --inputs 1` repeats it.
"""
