//! Connections and requests to upstreams, and to servers on the web that clients name.
//!
//! | file | what is in it |
//! |---|---|
//! | `call` | sends the calls of exchanges |
//! | `client` | pooled HTTP clients, and why a server could not be reached |
//! | `connection` | connections that count the bytes that came in on them |
//! | `dns` | look-ups of names |
//! | `proxy` | proxies on the way to upstreams |
//! | `reach` | reachability of upstreams |
//! | `tls_identity` | certificates of this program |
//! | `tls_roots` | certificate authorities |
//! | `wire` | streams to servers, whatever is between |
//! | `decompress` | bodies that come compressed |
//! | `paced_body` | a client's body on its way to an upstream |
//! | `fetch`, `fetch_limits` | requests for what clients name on the web |

pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod decompress;
mod dns;
pub(crate) mod fetch;
pub(crate) mod fetch_limits;
pub(crate) mod paced_body;
pub(crate) mod proxy;
pub(crate) mod reach;
pub(crate) mod tls_identity;
mod tls_roots;
mod wire;
