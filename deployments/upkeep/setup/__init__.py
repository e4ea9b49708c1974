"""Recognise files, a database or a service for `yarus init`, and write settings into `.env`."""
