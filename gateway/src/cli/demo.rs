//! `creole demo`.

use clap::Args;

use super::serve::address;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Address and port of the gateway; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// Address and port of the demo model itself, which speaks Chat Completions: for another host of Creole
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) model_listen: String,
}
