//! `creole demo`.

use clap::{Args, ValueEnum};

use super::serve::{View, address};

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Address and port of the gateway; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// Address and port of the demo model itself, which speaks both protocols: for another host of Creole
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    pub(crate) model_listen: String,
    /// What the gateway and the demo model speak with each other: Chat Completions (openai) or Responses
    #[arg(long, value_enum, value_name = "NAME", default_value = "openai")]
    pub(crate) protocol: Protocol,
    #[command(flatten)]
    pub(crate) view: View,
}

/// The protocols of the demo model, by their names in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    Openai,
    Responses,
}
