"""The paper's experiments: notebooks, and in `lab` what they call."""
