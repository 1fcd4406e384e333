//! Thinking signatures (being built).
