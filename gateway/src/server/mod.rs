//! Server to which clients connect: connections, requests, and the responses to them.
//!
//! | file | what is in it |
//! |---|---|
//! | `door` | flags: the address to listen on, and the permitted callers |
//! | `listen` | listens, accepts connections, and stops without cutting streams |
//! | `workers` | threads that serve connections |
//! | `connections` | limit of connections, and requests in flight on each |
//! | `client_socket` | sockets of clients, with the count of bytes of unfinished heads |
//! | `service` | one request, from its head to the head of its answer |
//! | `exchange` | an exchange while it lives, counted and logged at its end |
//! | `driver` | driver of an exchange: its calls, its timer, and the response |
//! | `open_calls` | open calls of an exchange: requests, downloads, documents |
//! | `request_body`, `response_body` | the client's body, and the answer's |
//! | `reply` | responses with a body that is known as a whole |
//! | `tls` | TLS towards clients |
//! | `watched_body` | detection of clients that stop reading |
//! | `passthrough` | requests that go to an upstream unchanged |
//! | `origin` | check of callers against foreign web pages |
//! | `budget` | memory of all requests |
//! | `health` | `/healthz` and `/readyz` |
//! | `gauges` | gauges of what is in progress |
//! | `offload` | threads for long translations |
//! | `load` | load of each worker |
//! | `setup` | state of the workers, of the process and of a configuration |
//! | `reload` | reading of the configuration while the gateway runs |
//! | `records` | records of exchanges in metrics, log and page |
//! | `ready` | address of the server, as it is printed for people and scripts |
//! | `signals` | signals that end the process |

pub(crate) mod budget;
mod client_socket;
pub(crate) mod connections;
pub(crate) mod door;
mod driver;
pub(crate) mod exchange;
pub(crate) mod gauges;
pub(crate) mod health;
pub(crate) mod listen;
pub(crate) mod load;
pub(crate) mod offload;
pub(crate) mod open_calls;
pub(crate) mod origin;
mod passthrough;
pub(crate) mod ready;
pub(crate) mod records;
pub(crate) mod reload;
mod reply;
mod request_body;
pub(crate) mod response_body;
pub(crate) mod service;
mod setup;
pub(crate) mod signals;
pub(crate) mod tls;
mod watched_body;
pub(crate) mod workers;
