//! `creole translate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Chosen;

#[derive(Debug, Subcommand)]
pub(crate) enum Translate {
    /// A Messages request from standard input: prints the upstream's request
    Request {
        #[command(flatten)]
        chosen: Chosen,
        #[command(flatten)]
        seed: Seed,
    },
    /// An upstream's whole answer from standard input: prints the client's
    Response {
        #[command(flatten)]
        answer: Answer,
        /// The upstream's content type
        #[arg(long, value_name = "TYPE", default_value = "application/json")]
        content_type: String,
    },
    /// An upstream's event stream from standard input: prints what the client gets
    Stream {
        #[command(flatten)]
        answer: Answer,
        /// The upstream's content type
        #[arg(long, value_name = "TYPE", default_value = "text/event-stream")]
        content_type: String,
        /// Hands over the stream in pieces of this size; 0 is all at once
        #[arg(long, value_name = "BYTES", default_value_t = 0)]
        piece: usize,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The Messages request that is answered
    #[arg(long, value_name = "FILE")]
    pub(crate) request: PathBuf,
    /// The upstream's status
    #[arg(long, value_name = "STATUS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..=599))]
    pub(crate) status: u16,
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    #[command(flatten)]
    pub(crate) seed: Seed,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Seed {
    /// Ids are made of this number: the same number gives the same bytes
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) seed: u128,
}
