"""Parts of the report that have a page of their own."""
