//! Which keys may sign what, and when.
