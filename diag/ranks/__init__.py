"""What the ranks of one distributed job did together: what they left behind when they hung, and who is late."""
