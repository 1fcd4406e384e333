//! JSON as text: the package in `json/`, by the name under which the other modules know it.

pub use creole_json::*;
