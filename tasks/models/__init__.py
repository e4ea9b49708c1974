"""The models behind the steps: embedders, the chat client, and what stands in for them offline."""
