//! Helpers for texts: word search, names, hashes, base64, and JSON that is incomplete or invalid.

pub(crate) mod bare_json;
pub(crate) mod base64;
pub(crate) mod domains;
pub mod harmless;
pub(crate) mod hash;
pub(crate) mod json_scan;
pub mod names;
pub(crate) mod says;
pub(crate) mod surrogates;
pub mod words;
