"""What `yarus init` recognises: files, a database, a service, and what it writes into `.env`."""
