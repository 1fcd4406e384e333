//! Flags of `creole check`.

use clap::Args;

use crate::configure::{Chosen, NamedServices, NamedUpstream};

#[derive(Clone, Debug, Args)]
pub(crate) struct Check {
    /// Where the model is: http://localhost:11434/v1; without it, the usual address of --profile,
    /// and without that a server of this machine, as `creole launch` finds it
    #[arg(long, value_name = "URL")]
    pub(crate) upstream: Option<String>,
    /// Environment variable with the upstream's key; without it, that of its profile where it is
    /// set
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// The model to ask, by the name that clients use; without it, the first that is listed
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) services: NamedServices,
    /// How long each answer may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: u64,
    /// Print JSON in place of the table
    #[arg(long)]
    pub(crate) json: bool,
}

impl Check {
    /// Returns true if no flag says where the model is, so that a server can be searched for. A key
    /// flag counts, because a key belongs to a named server.
    pub(crate) fn names_no_upstream(&self) -> bool {
        let named = self.named();
        named.url.is_none() && self.key_env.is_none() && named.is_open()
    }

    /// Returns what flags, variables and the usual file name.
    pub(crate) fn named(&self) -> NamedUpstream {
        self.chosen.named(self.upstream.as_deref())
    }
}
