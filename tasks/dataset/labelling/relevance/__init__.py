"""People's labels of results, by which labels that a judge has filled in are corrected."""
