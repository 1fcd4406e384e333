//! What a Chat Completions server answers: the package in `openai/`, by the name under which the other modules
//! know it.

pub(crate) use creole_openai::*;
