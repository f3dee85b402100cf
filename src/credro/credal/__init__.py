"""The mathematics of credal sets: pure functions on tensors."""
