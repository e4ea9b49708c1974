"""What calls cost: prices, and estimates before they are sent."""
