//! `creole check-config`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CheckConfig {
    /// The configuration, one JSON document
    #[arg(required_unless_present = "schema")]
    pub(crate) file: Option<PathBuf>,
    /// Print the JSON Schema of the configuration instead
    #[arg(long, conflicts_with = "file")]
    pub(crate) schema: bool,
}
