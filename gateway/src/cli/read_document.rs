//! `creole read-document`, which only the gateway starts.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct ReadDocument {
    /// Most pages that are read
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pages_max: usize,
    /// Most text, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) bytes_max: usize,
    /// Most time of the processor, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds_max: u64,
}
