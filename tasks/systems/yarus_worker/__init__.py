"""What runs in a process of the user's code, with the user's interpreter: Python 3.7 or later, nothing but its library.

It is imported there as `yarus_worker`, so that no module of the user's has its name.
"""
