//! Recipient of a history: the upstream that the history is sent to.

use crate::carry::marks::Marks;
use crate::profile::Profile;

use crate::model::own_tool::ToolsRunHere;

/// Upstream for which a history is read.
#[derive(Clone, Copy)]
pub(crate) struct Recipient<'p> {
    pub(crate) profile: &'p Profile,
    /// Identifiers of the upstream and its model, as they are written into signatures.
    pub(crate) marks: &'p Marks,
    /// True if the ids of calls are collected. There can be thousands of ids.
    pub(crate) keeps_ids: bool,
    /// True if the upstream accepts reasoning only as items of the Responses API.
    pub(crate) takes_items: bool,
    /// Server tools that Creole runs and the request offers.
    pub(crate) runs: ToolsRunHere,
}
