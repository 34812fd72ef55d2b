"""The parts of a report, each measured by a function of its own."""
