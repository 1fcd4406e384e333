//! JSON as text: read in one pass without copying, written without a tree in between.
//!
//! Most of a request or a chunk is only copied: message texts, schemas, tool inputs. A tree
//! (`serde_json::Value`) would decode and allocate all of it and change what it holds (`1.10`,
//! `1E5`, 30-digit integers, duplicate keys). `derive(Deserialize)` borrows, but cannot say where in
//! the document a value is wrong, cannot name the fields it did not know, and reads nested values
//! of an undecided type twice. So the two wire formats are read with [`Reader`], a cursor that is
//! asked for what is expected next, and written with [`Writer`].
//!
//! A string stays as the sender escaped it ([`Str`]): both sides of Creole are JSON, so its bytes
//! are copied across without being decoded.
//!
//! The configuration is read in the same way.
//!
//! This is a package of its own because a profile of Cargo knows packages: it is compiled for speed where
//! everything else is compiled for size.
#![forbid(unsafe_code)]

mod error;
mod kind;
mod member;
mod number;
mod place;
mod reader;
mod scan;
mod text;
mod writer;

pub use error::Error;
pub use kind::ValueKind;
pub use member::{elements, member, members, string};
pub use number::Number;
pub use place::offset_in;
pub use reader::{DEPTH_LIMIT, Reader};
pub use text::{Str, hold_back, push_whole, trim_end_raw, trim_start_raw, unescape};
pub use writer::{Raw, Writer, compact, escape, escape_compact, push_u64, quote, quoted};
