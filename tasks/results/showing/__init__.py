"""What it costs that the gate shows wrong answers and hides right ones, and which threshold costs least."""
