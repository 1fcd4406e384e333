//! Table F (being built).
