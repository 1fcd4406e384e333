//! Program that runs the demo model: prints its address and serves until it is stopped.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Parser;
use creole_demo::Options;

/// A small, deterministic server of Chat Completions and Responses.
#[derive(Parser)]
struct Arguments {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The key that clients must send.
    #[arg(long)]
    key: Option<String>,
    /// Longest tool call id that is accepted; 0 is no limit.
    #[arg(long, default_value_t = 0)]
    id_length_max: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let options = Options {
        key: arguments.key,
        id_length_max: arguments.id_length_max,
        ..Options::default()
    };
    match run(arguments.listen, options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo model: {}: {error}", arguments.listen);
            ExitCode::FAILURE
        }
    }
}

async fn run(listen: SocketAddr, options: Options) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind(listen).await?;
    println!("http://{}", listener.local_addr()?);
    tokio::select! {
        served = creole_demo::serve(listener, options) => served,
        stopped = tokio::signal::ctrl_c() => stopped,
    }
}
