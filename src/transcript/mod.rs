//! The transcript: a signed statement, then its sections.
