"""Cases: their table, labels, samples, dialogs and texts."""
