"""Small distributed programs on Gloo that really hang, each beside its healthy twin, and what they leave behind."""
