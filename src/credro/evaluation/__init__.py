"""How good an uncertainty is: out-of-distribution detection, selective classification, calibration."""
