//! Greedy choice and its tie rule.
