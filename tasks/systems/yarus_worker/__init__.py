"""Worker in a process of the user's code, for Python 3.7 or later with nothing but the standard library.

It is imported there as `yarus_worker`, so that no module of the user has its name.
"""
