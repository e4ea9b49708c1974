"""Pages besides Prefect's UI: reports, and pages for labels."""
