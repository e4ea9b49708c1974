"""People's labels of results, which correct the labels of a judge."""
