"""Everything that knows Streamlit. ``python -m app`` starts it."""
