//! Writes the settings of thinking in the members of Chat Completions.

use crate::json::Writer;
use crate::profile::{Profile, SHARED_MEMBERS, ThinkingSwitch};
use crate::protocols::effort::Effective;

/// Writes effort, switch and budget of thinking, together with the members of `extra_body` that
/// have the same names.
pub(crate) fn write(effective: &Effective, profile: &Profile, json: &mut Writer<'_>) {
    if let Some(effort) = effective.effort {
        json.key("reasoning_effort").text(effort.word());
    }
    if let (ThinkingSwitch::EnableThinking, Some(on)) = (profile.thinking_switch, effective.switch)
    {
        json.key("enable_thinking").bool(on);
    }
    for name in SHARED_MEMBERS {
        let switch = profile.thinking_switch.member().filter(|(within, _)| *within == name);
        let switch = switch.map(|(_, key)| key).zip(effective.switch);
        let added = profile.added_to(name);
        if switch.is_none() && added.is_none() {
            continue;
        }
        json.key(name).begin_object();
        match switch {
            Some(("type", true)) => drop(json.kind("enabled")),
            Some(("type", false)) => drop(json.kind("disabled")),
            Some((key, on)) => drop(json.key(key).bool(on)),
            None => {}
        }
        if let Some(added) = added {
            added.write_into(&[], json);
        }
        json.end_object();
    }
    let field = profile.thinking_budget.word();
    if let Some(tokens) = effective.budget.filter(|_| profile.extra_body.get(field).is_none()) {
        json.key(field).u64(tokens);
    }
}
