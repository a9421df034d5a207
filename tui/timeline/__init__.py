"""What the timeline screen shows and measures, without any widget."""
