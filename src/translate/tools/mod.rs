//! x
pub mod names;
pub mod schema;
