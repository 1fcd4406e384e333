//! Guards against endless loops of an agent, independent of the upstream's protocol.

pub(crate) mod breaker;
pub(crate) mod claude_code;
pub(crate) mod failure;
pub(crate) mod loops;
pub(crate) mod person;
mod same;
mod waiting;
