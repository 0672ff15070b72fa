"""Re-ranking with given weights, and checks of lists before tuning."""
