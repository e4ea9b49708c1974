"""Models behind the steps: embedders, the chat client, and their offline stand-ins."""
