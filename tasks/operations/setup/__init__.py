"""What `yarus init` finds: files, a database, a service, and what it writes into `.env`."""
