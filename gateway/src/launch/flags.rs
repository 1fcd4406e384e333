//! Flags of `creole launch`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::configure::{Chosen, NamedServices};
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// The client: claude, opencode, pi, qwen-code
    pub(crate) client: String,
    /// URL of the model's server, http://localhost:11434/v1 [variable: UPSTREAM_URL]; without it,
    /// --profile and --config, the servers of this machine are looked for, then the keys in the
    /// environment
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Environment variable with the upstream's key
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    /// The model; without it, the only one that the server lists or has loaded
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model of small tasks such as titles; without it, the model
    #[arg(long, value_name = "NAME")]
    pub(crate) small_model: Option<String>,
    /// Model of the same server that judges tool calls in Claude Code's auto mode
    #[arg(long, value_name = "NAME")]
    pub(crate) judge: Option<String>,
    /// How many tokens the model's context window has; without it, what the server says
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context_window: Option<u64>,
    /// File that the gateway's log is appended to, in place of launch.log in the user's state
    /// folder
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Ask nothing, also on a terminal: take the first server, and start with a window that is too
    /// small
    #[arg(long)]
    pub(crate) yes: bool,
    /// Ask again which server and model, although this folder has answers
    #[arg(long, conflicts_with = "yes")]
    pub(crate) ask: bool,
    #[command(flatten)]
    pub(crate) services: NamedServices,
    /// What the client gets as its own arguments, behind --
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

impl Launch {
    /// Returns true if a flag describes the gateway, so that one that already runs cannot be used.
    pub(crate) fn needs_own_gateway(&self) -> bool {
        self.services.is_any() || self.judge.is_some() || self.log.is_some()
    }
}
