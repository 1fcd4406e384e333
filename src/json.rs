//! JSON as text: the package in `json/`, by the name under which the other rooms know it.

pub use creole_json::*;
