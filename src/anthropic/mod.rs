//! The wire types of the Messages API, as they are read; no logic.

pub mod tool;
