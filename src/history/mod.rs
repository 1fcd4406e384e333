//! The history as turns: what both protocols mean by it, before either one's form.

pub(crate) mod attached;
pub(crate) mod beginning;
pub(crate) mod omitted;
pub(crate) mod pairs;
pub(crate) mod read;
pub(crate) mod rebuild;
pub(crate) mod server_tools;
pub(crate) mod spoilt_inputs;
pub(crate) mod thinking;
mod turns;

pub(crate) use turns::Turns;
