//! Questions to an upstream outside of any exchange: whether it answers, which models it lists,
//! what kind of server it is, and who runs it.
//!
//! | file | what is in it |
//! |---|---|
//! | `look` | whether an upstream answers where it is said to be, and which models it lists |
//! | `at_start` | looks at all upstreams at the start of the server |
//! | `ask` | one question to a server that may be there |
//! | `models` | models of a server: what it lists, and what it says of them elsewhere |
//! | `this_machine` | search for a server of this machine that nobody named |
//! | `places` | places that were looked at in vain |
//! | `problem` | problems of an upstream, and what to do |
//! | `guess` | kind of a server, by its address, its list or its port |
//! | `model_names` | names of models in a server's list |
//! | `owner` | user who runs a server of this machine |
//! | `private_network` | test for hosts of private networks |

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
