//! Web searches: requests to the search service that the operator configured, and the pages in its
//! answers.
//!
//! | file | what it has |
//! |---|---|
//! | `services` | each kind of search service: its requests, and the places of results in its answers |
//! | `request` | the request for a search |
//! | `read` | the pages in an answer |
//! | `domains` | the client's lists of domains: which pages they permit |
//! | `snippet` | texts of pages, without control characters and not too long |

mod domains;
mod read;
mod request;
mod services;
mod snippet;

pub(crate) use read::read;
pub(crate) use request::request;

#[cfg(test)]
mod tests;
