#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod kind;
mod member;
mod number;
mod place;
mod reader;
mod rewrite;
mod scan;
mod text;
mod writer;

pub use error::Error;
pub use kind::ValueKind;
pub use member::{elements, member, members, string};
pub use number::Number;
pub use place::offset_in;
pub use reader::{DEPTH_LIMIT, Reader};
pub use rewrite::{replaced, rewrite_array, rewrite_object};
pub use scan::find_pair;
pub use text::{Str, hold_back, push_whole, trim_end_raw, trim_start_raw, unescape};
pub use writer::{
    Raw, Writer, compact, compacted, escape, escape_compact, escaped, push_u64, quote, quoted,
    written,
};
