//! Requests to an upstream outside of any exchange. They find out if the upstream answers, which
//! models it lists, what kind of server it is, and who runs it.
//!
//! | file | what is in it |
//! |---|---|
//! | `look` | check that an upstream answers at its URL, and which models it lists |
//! | `again` | requests to upstreams that could not be reached |
//! | `at_start` | check of all upstreams when the server starts |
//! | `ask` | one request to a server, with a time limit |
//! | `models` | models of a server: its list, and details from other paths |
//! | `this_machine` | search for a model server of this machine |
//! | `places` | addresses where no server with the wanted model was found |
//! | `problem` | problems of an upstream, and what to do |
//! | `guess` | kind of a server, by its address, its list or its port |
//! | `model_names` | names of models in a server's list |
//! | `owner` | user who runs a server of this machine |
//! | `private_network` | test for hosts of private networks |
//! | `window` | judgement of a context window for Claude Code |

pub(crate) mod again;
pub(crate) mod ask;
pub(crate) mod at_start;
pub(crate) mod guess;
pub(crate) mod look;
pub(crate) mod model_names;
pub(crate) mod models;
pub(crate) mod owner;
pub(crate) mod places;
pub(crate) mod private_network;
pub(crate) mod problem;
pub(crate) mod this_machine;
pub(crate) mod window;
