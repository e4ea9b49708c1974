"""People's labels of results: what a judge has filled up, made good by a random sample of questions."""
