"""Training and measuring a translator on sentence pairs; the command is ``python -m transformer.translation``."""
