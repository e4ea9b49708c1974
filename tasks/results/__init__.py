"""What evaluations left: files, metrics, summaries, exports."""
