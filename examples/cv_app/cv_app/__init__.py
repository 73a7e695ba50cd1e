"""A CV that an assistant writes, and of which every message can be taken back."""
