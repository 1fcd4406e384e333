//! Client of MCP servers: lists of tools, and calls of tools. The client performs no I/O; its jobs
//! ask questions, which the exchange turns into calls.
//!
//! ```text
//!  modern server                     legacy server
//!  tools/list ──▶ result             tools/list ──▶ 400 (the probe of the era)
//!                                    initialize ──▶ version, session
//!                                    notifications/initialized ──▶ 202
//!                                    tools/list ──▶ result
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `client` | requests: headers and JSON-RPC bodies |
//! | `era` | meaning of an answer for the era and the session of a server |
//! | `answer` | JSON-RPC message in an answer, which is JSON or an event stream |
//! | `list` | pages of a list of tools |
//! | `lists` | step that lists the tools before the call |
//! | `mirror` | arguments that a tool's schema wants as headers |
//! | `result` | output of a call |
//! | `session` | sessions with servers, within one exchange |
//! | `call` | jobs for a list and for a call |
//! | `run` | run of a tool for a call of the model |
//! | `memory` | eras and lists that later exchanges use |

mod answer;
mod call;
mod client;
mod era;
mod list;
mod lists;
mod memory;
mod mirror;
mod result;
mod run;
mod session;

#[cfg(test)]
mod tests;

pub(crate) use answer::RpcEnd;
pub(super) use call::{McpCallJob, McpJob, McpOutcome};
pub(crate) use list::McpList;
pub(crate) use lists::{begin as begin_lists, comes_first};
pub(crate) use memory::ToolMemory;
pub(super) use run::begin;
pub(crate) use session::AnswerSessions;
