//! Words, names, hashes: what is known of texts.

pub(crate) mod hash;
pub mod names;
pub(crate) mod surrogates;
pub mod words;
