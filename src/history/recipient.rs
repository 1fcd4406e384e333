//! Recipient of a history: the upstream that gets it.

use crate::carry::marks::Marks;
use crate::profile::Profile;

/// Upstream for which a history is read.
#[derive(Clone, Copy)]
pub(crate) struct Recipient<'p> {
    pub(crate) profile: &'p Profile,
    /// Marks of the upstream and its model.
    pub(crate) marks: &'p Marks,
    /// The ids of calls are kept. There can be thousands.
    pub(crate) keeps_ids: bool,
    /// Reasoning goes back as items of Responses, and in no other form.
    pub(crate) takes_items: bool,
}
