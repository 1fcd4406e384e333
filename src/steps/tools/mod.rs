//! Server tools that Creole runs for models which cannot run them.

pub(crate) mod search;
