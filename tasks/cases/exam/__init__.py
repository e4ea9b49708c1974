"""What a judge is examined with: sound answers of the source's own, and twins of them damaged in a known way."""
