//! Fates of the fields of a Messages request on the way to Responses.
//!
//! The fate is a word for each thing that its values do: `written` (the body differs, at the places
//! that are named), `header`, `form` (the field says what its object is, and the object is taken),
//! `silent` (the body is the one without the field), `warned`, `refused`, `answered` (Creole does
//! it by itself). Where the fate is another than on the way to Chat Completions, a note says why.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{host, way};
use crate::spec::{MARK, Spec};
use crate::{REQUEST, ROOTS, Run, Tally, Walk, Way, each_field, run};

/// Maximum number of places that are named for a field.
const PLACES_MAX: usize = 4;

#[test]
fn every_field_of_a_request_has_its_decided_fate_in_responses() {
    let spec = Spec::read(REQUEST);
    let mut tally = Tally::default();
    each_field(&spec, &mut tally, &mut |walk, tally| {
        if walk.name == ROOTS[2] {
            return; // Counting: the fields are those of a request.
        }
        let [fates, places, note] = &walk.facts.in_responses;
        *tally.counts.entry(fates.clone()).or_default() += 1;
        tally.check(&walk.text(), |sent| {
            let found = observe(walk, way, sent)?;
            if (&found.0, &found.1) != (fates, places) {
                return Err(format!("decided {fates:?}, {places:?}, but it is {found:?}"));
            }
            let chat = || {
                Way::overrides(
                    "openai-chat",
                    json!({"cache_breakpoints": "prompt_cache_breakpoint"}),
                )
            };
            let in_chat = observe(walk, chat, sent)?.0;
            match in_chat == *fates || !note.is_empty() {
                true => Ok(()),
                false => Err(format!("{in_chat} in Chat Completions, {fates} here, and no note")),
            }
        });
    });
    tally.finish("requests in Responses");
}

/// Returns the fates of a field's values, and the places where they are written.
fn observe(
    walk: &Walk<'_>,
    way: fn() -> Way,
    sent: &mut usize,
) -> Result<(String, String), String> {
    let (mut fates, mut places) = (BTreeSet::new(), BTreeSet::new());
    let base = (!walk.facts.required).then(|| run(&walk.request(None), &way()));
    for value in walk.values() {
        *sent += 1;
        let mut request = walk.request(Some(&value));
        if walk.field == "signature" {
            host::sign(&mut request);
        }
        fates.insert(fate(walk, &request, way, base.as_ref(), &mut places)?);
    }
    let places: Vec<String> = places.into_iter().take(PLACES_MAX).collect();
    Ok((fates.into_iter().collect::<Vec<_>>().join(" "), places.join(" ")))
}

fn fate(
    walk: &Walk<'_>,
    request: &Value,
    way: fn() -> Way,
    base: Option<&Run>,
    places: &mut BTreeSet<String>,
) -> Result<&'static str, String> {
    let with = run(request, &way());
    if let Some((status, _)) = with.replied {
        if status == 200 {
            return Ok("answered");
        }
        walk.refusal(&with)?;
        return Ok("refused");
    }
    let body = with.body()?;
    let base = base.filter(|base| base.sent.is_some());
    let before = base.map(Run::dropped).unwrap_or_default();
    // A field of something that is left out as a whole is lost with it.
    let is_inside = base.is_some_and(|base| base.sent == with.sent);
    if with.dropped().len() > before.len() || is_inside && !with.dropped().is_empty() {
        if body.to_string().contains(MARK) {
            return Err(format!("a warning, and the value arrives: {body}"));
        }
        let strict = Way { settings: json!({"strict": true}), ..way() };
        if run(request, &strict).sent.is_some() {
            return Err(format!("a warning, and strict takes it: {request}"));
        }
        return Ok("warned");
    }
    let marked = leaves(body).into_iter().filter(|(_, value)| value.contains(MARK));
    let mut found: BTreeSet<String> = marked.map(|(place, _)| place).collect();
    if let Some(base) = base
        && found.is_empty()
    {
        found = difference(body, base.sent.as_ref().unwrap());
        if found.is_empty() {
            return Ok(if with.headers == base.headers { "silent" } else { "header" });
        }
    }
    if found.is_empty() {
        return Ok("form");
    }
    places.extend(found);
    Ok("written")
}

/// The places at which one body differs from another.
fn difference(one: &Value, other: &Value) -> BTreeSet<String> {
    let (mut one, other) = (leaves(one), leaves(other));
    let mut rest = other.clone();
    one.retain(|leaf| match rest.iter().position(|known| known == leaf) {
        Some(at) => {
            rest.remove(at);
            false
        }
        None => true,
    });
    one.into_iter().chain(rest).map(|(place, _)| place).collect()
}

/// Returns each value of a body that holds no others, with the pointer to it; `*` stands for any
/// place in an array.
fn leaves(body: &Value) -> Vec<(String, String)> {
    fn walk(value: &Value, place: String, found: &mut Vec<(String, String)>) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                items.iter().for_each(|item| walk(item, format!("{place}/*"), found));
            }
            Value::Object(members) if !members.is_empty() => {
                for (name, value) in members {
                    let name = if name.contains(MARK) { "NAME" } else { name };
                    let is_schema = place.ends_with("/parameters") || place.ends_with("/schema");
                    let place = if is_schema { place.clone() } else { format!("{place}/{name}") };
                    walk(value, place, found);
                }
            }
            leaf => found.push((place, leaf.to_string())),
        }
    }
    let mut found = Vec::new();
    walk(body, String::new(), &mut found);
    found
}
