"""Worker in a process of the user's code. It runs on the user's interpreter, Python 3.7 or later, with the standard
library.

It is imported there as `yarus_worker`, so that no module of the user has its name.
"""
