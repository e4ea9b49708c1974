"""Sequential change detection with a budget of false alarms: levels that are checked after every nightly run."""
