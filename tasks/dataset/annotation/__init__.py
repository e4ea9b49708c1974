"""Labels by people: a spreadsheet out, and back in."""
