//! Guards: what keeps an agent from loops, whatever the protocols are.

pub(crate) mod breaker;
pub(crate) mod claude_code;
pub(crate) mod failure;
pub(crate) mod loops;
pub(crate) mod person;
mod same;
mod waiting;
