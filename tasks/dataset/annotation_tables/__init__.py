"""Labels by people: export to a spreadsheet and import from it."""
