//! Command-line flags of a server: the address to listen on, the permitted callers, and the page
//! and log.

use std::path::PathBuf;

use clap::Args;

use crate::log::Format;
use crate::server::records::Failures;

/// How clients, and those who operate the gateway, come in.
#[derive(Debug, Args)]
pub(crate) struct Door {
    /// Address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8787", value_parser = address)]
    pub(crate) listen: String,
    /// Address and port for /metrics alone; without it, /metrics is answered on the address of
    /// --listen where that is a loopback address
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) metrics: Option<String>,
    /// Certificate for clients, with those of its authorities, in PEM: clients then connect with
    /// TLS. The file is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Private key of --tls-certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Fetch also images and pages that clients name through the proxy of HTTPS_PROXY and
    /// HTTP_PROXY, which must keep them out of private networks
    #[arg(long)]
    pub(crate) proxy_fetches: bool,
    /// Host name that requests, and web pages, may have besides localhost and IP addresses; may be
    /// repeated. Also turns the check of Host on where --listen is not a loopback address
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub(crate) allow_host: Vec<String>,
    /// Serve everyone who can reach an address that is not a loopback one, though upstreams get
    /// keys of the gateway's and clients have none
    #[arg(long)]
    pub(crate) allow_anyone: bool,
    #[command(flatten)]
    pub(crate) view: View,
    /// Do not ask the upstreams for their models at the start, by which their profile may be known
    #[arg(long)]
    pub(crate) no_check: bool,
    /// How long streams may go on after SIGINT or SIGTERM, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) shutdown_timeout: u64,
    /// Gives every exchange this seed, so that ids repeat: for tests that compare bytes
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub(crate) seed: Option<u128>,
}

/// Where people see what the gateway does.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct View {
    /// Serve no page for browsers at /
    #[arg(long)]
    pub(crate) no_page: bool,
    /// File that the log is appended to, in place of standard error
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// How the log is written; without it, text on a terminal and JSON elsewhere
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log_format: Option<Format>,
    /// Receiver of a line about each failure after which clients ask again.
    #[arg(skip)]
    pub(crate) failures: Option<Failures>,
}

impl Door {
    /// Returns the flags of a server that only this machine can reach.
    pub(crate) fn local(listen: String, shutdown_timeout: u64) -> Self {
        Self {
            listen,
            metrics: None,
            tls_certificate: None,
            tls_key: None,
            proxy_fetches: false,
            allow_host: Vec::new(),
            allow_anyone: false,
            view: View::default(),
            no_check: true,
            shutdown_timeout,
            seed: None,
        }
    }
}

/// Checks an address to listen on. The machine need not have the address.
pub(crate) fn address(text: &str) -> Result<String, &'static str> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => Err("expected an address and a port, such as 127.0.0.1:8787"),
    }
}

/// Checks a host name for the flag `--allow-host`: a name as in the header `Host`, without a port.
/// Any other text would match no request, and the user would not notice.
fn host(text: &str) -> Result<String, &'static str> {
    let is_letter =
        |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match text {
        "" => Err("expected a host name"),
        text if text.chars().all(is_letter) => Ok(text.to_owned()),
        _ => Err("expected a host name, without scheme and port"),
    }
}
