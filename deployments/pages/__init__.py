"""What browsers are served by us beside Prefect's UI: reports, and pages to label on."""
