//! Guards that keep an agent out of loops, for all protocols.

pub(crate) mod breaker;
pub(crate) mod claude_code;
pub(crate) mod failure;
pub(crate) mod loops;
pub(crate) mod person;
mod same;
mod waiting;
