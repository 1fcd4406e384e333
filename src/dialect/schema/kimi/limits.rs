//! How deep and how long a schema may be for Kimi, and which of its definitions end.
//!
//! Properties stand at most 30 deep, those of what is referred to included. A schema has at most 3,000 of them and
//! 120,000 bytes. One that has more is written again with properties less deep, and with definitions that refer to none
//! but themselves.

use crate::json::{self, Reader, Str, ValueKind};
use crate::text::names::{NameSet, Names};
use crate::text::words;

/// The name of the root among definitions.
pub(super) const ROOT: &str = "#";

const DEPTH_MAX: u32 = 30;
const PROPERTIES_MAX: usize = 3000;
const BYTES_MAX: usize = 120_000;

/// How deep properties are written, and whether definitions refer to others: the first of these that fits.
pub(super) const ATTEMPTS: [(u32, bool); 7] =
    [(DEPTH_MAX, true), (10, false), (5, false), (3, false), (2, false), (1, false), (0, false)];

/// A schema that is shorter has neither too many bytes nor too many properties.
const BYTES_FEW: usize = BYTES_MAX / 6;

/// So many steps along references are taken to see how deep they lead.
const STEPS_MAX: usize = 20_000;

/// Whether a schema in Kimi's flavour is neither too long nor too deep.
pub(super) fn fits(schema: &str) -> bool {
    let is_short = || bytes(schema) <= BYTES_MAX && properties(schema) <= PROPERTIES_MAX;
    (schema.len() < BYTES_FEW || is_short())
        && (!words::has(schema, "\"$ref\"") || Graph::of(schema).is_shallow())
}

/// Its length as Kimi counts: `<`, `>` and `&` as six bytes.
fn bytes(schema: &str) -> usize {
    let long = schema.bytes().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
    schema.len().saturating_add(long.saturating_mul(5))
}

/// How many properties there are, in one pass.
fn properties(schema: &str) -> usize {
    let mut count = 0;
    // Nothing fails with a schema that was just written.
    drop(count_properties(&mut Reader::of(schema), false, &mut count));
    count
}

/// Adds the properties in a value. `named`: its members are such.
fn count_properties(
    reader: &mut Reader<'_>,
    named: bool,
    count: &mut usize,
) -> Result<(), json::Error> {
    match reader.kind()? {
        ValueKind::Object => {
            reader.begin_object()?;
            while let Some(key) = reader.next_key()? {
                *count = count.saturating_add(usize::from(named));
                count_properties(reader, key == "properties", count)?;
            }
        }
        ValueKind::Array => {
            reader.begin_array()?;
            while reader.next_element()? {
                count_properties(reader, false, count)?;
            }
        }
        _ => drop(reader.skip()?),
    }
    Ok(())
}

/// The definitions that do not end as Kimi looks at them, and are to be loosened. Of those that require each other, the
/// objects suffice in most cases, unless all are wanted.
pub(super) fn endless(schema: &str, all: bool) -> Vec<String> {
    if !words::has(schema, "\"$ref\"") {
        return Vec::new();
    }
    let graph = Graph::of(schema);
    let ends = graph.ends();
    if ends.first() == Some(&true) {
        return Vec::new();
    }
    let is_used = graph.used();
    let is_at = |list: &[bool], at: usize| list.get(at) == Some(&true);
    let is_endless = |at: usize| is_at(&is_used, at) && !is_at(&ends, at);
    let circles = graph.circles(&is_endless);
    let mut names = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate().filter(|(at, _)| is_endless(*at)) {
        let is_leaf = node.needs.as_ref().is_some_and(Vec::is_empty);
        if is_leaf || is_at(&circles, at) && (all || node.is_object) {
            names.push(node.name.clone());
        }
    }
    names
}

/// The root, or a definition.
struct Node {
    name: String,
    is_object: bool,
    /// To what it refers, and how deep among its properties.
    refers: Vec<(usize, u32)>,
    /// How deep its properties are.
    depth: u32,
    /// One of these must end, if it does not by itself.
    needs: Option<Vec<usize>>,
}

/// Which definitions refer to which. The root is the first.
struct Graph<'s> {
    places: Names<'s, usize>,
    nodes: Vec<Node>,
}

impl<'s> Graph<'s> {
    fn of(schema: &'s str) -> Self {
        let mut schemas = vec![(ROOT.into(), schema)];
        for (name, schema) in json::members(json::member(schema, "$defs").unwrap_or_default()) {
            schemas.push((name.decode(), schema));
        }
        let mut graph = Self { places: Names::default(), nodes: Vec::new() };
        for (at, (name, _)) in schemas.iter().enumerate() {
            graph.places.insert(name.clone(), at);
        }
        for (at, (name, schema)) in schemas.iter().enumerate() {
            let mut node = Node {
                name: name.to_string(),
                is_object: json::member(schema, "type") == Some("\"object\""),
                refers: Vec::new(),
                depth: 0,
                needs: None,
            };
            graph.read(schema, 0, at == 0, &mut node);
            let mut needs = Vec::new();
            node.needs = (!graph.ends_by_itself(schema, &mut needs)).then_some(needs);
            graph.nodes.push(node);
        }
        graph
    }

    /// To what a reference is.
    fn place(&self, reference: Str<'_>) -> Option<usize> {
        let reference = reference.decode();
        self.places.get(reference.strip_prefix("#/$defs/").unwrap_or(&reference)).copied()
    }

    /// Reads what a schema refers to.
    fn read(&self, schema: &str, depth: u32, root: bool, node: &mut Node) {
        node.depth = node.depth.max(depth);
        let deeper = depth.saturating_add(1);
        for (key, value) in json::members(schema) {
            match key.raw() {
                "$ref" => {
                    let place = json::string(value).and_then(|reference| self.place(reference));
                    node.refers.extend(place.map(|place| (place, depth)));
                }
                "$defs" if root => {}
                "properties" => {
                    for (_, schema) in json::members(value) {
                        self.read(schema, deeper, false, node);
                    }
                }
                _ => self.read(value, depth, false, node),
            }
        }
        for schema in json::elements(schema) {
            self.read(schema, depth, false, node);
        }
    }

    /// Whether a schema ends whatever it refers to. Kimi is content if one of the properties that an object requires
    /// ends, and wants that the items of a list do, though a list may be empty.
    fn ends_by_itself(&self, schema: &str, needs: &mut Vec<usize>) -> bool {
        if json::members(schema).next().is_none() {
            return true;
        }
        let types = json::member(schema, "type").unwrap_or_default();
        let is_value = |name: &str| !matches!(name, "\"object\"" | "\"array\"");
        if types.starts_with('"') && is_value(types) || json::elements(types).any(is_value) {
            return true;
        }
        if types == "\"array\"" || json::elements(types).last() == Some("\"array\"") {
            let items = json::member(schema, "items");
            if items.is_none_or(|items| self.ends_by_itself(items, needs)) {
                return true;
            }
        }
        if types == "\"object\"" || json::elements(types).last() == Some("\"object\"") {
            let properties = json::member(schema, "properties").unwrap_or_default();
            let required = json::member(schema, "required").unwrap_or_default();
            let mut names = NameSet::default();
            for name in json::elements(required).filter_map(json::string) {
                names.add(name.decode());
            }
            if names.is_empty() || json::members(properties).next().is_none() {
                return true;
            }
            for (name, schema) in json::members(properties) {
                if names.contains(&name.decode()) && self.ends_by_itself(schema, needs) {
                    return true;
                }
            }
        }
        let branches = json::member(schema, "anyOf").unwrap_or_default();
        if json::elements(branches).any(|branch| self.ends_by_itself(branch, needs)) {
            return true;
        }
        let reference = json::member(schema, "$ref").and_then(json::string);
        needs.extend(reference.and_then(|reference| self.place(reference)));
        false
    }

    /// Which of all end.
    fn ends(&self) -> Vec<bool> {
        let mut ends: Vec<bool> = self.nodes.iter().map(|node| node.needs.is_none()).collect();
        let mut needed_by = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for needed in node.needs.iter().flatten() {
                if let Some(all) = needed_by.get_mut(*needed) {
                    all.push(at);
                }
            }
        }
        let is_first = |(at, ends): (usize, &bool)| ends.then_some(at);
        let mut open: Vec<usize> = ends.iter().enumerate().filter_map(is_first).collect();
        while let Some(at) = open.pop() {
            for by in needed_by.get(at).into_iter().flatten() {
                if let Some(ends) = ends.get_mut(*by).filter(|ends| !**ends) {
                    *ends = true;
                    open.push(*by);
                }
            }
        }
        ends
    }

    /// Which are referred to, from the root on.
    fn used(&self) -> Vec<bool> {
        let mut used = vec![false; self.nodes.len()];
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            for (place, _) in self.nodes.get(at).map(|node| &node.refers).into_iter().flatten() {
                if let Some(used) = used.get_mut(*place).filter(|used| !**used) {
                    *used = true;
                    open.push(*place);
                }
            }
        }
        used
    }

    /// Which of some need each other in a circle, or stand between two circles.
    fn circles(&self, is_meant: &dyn Fn(usize) -> bool) -> Vec<bool> {
        let mut stays: Vec<bool> = (0..self.nodes.len()).map(is_meant).collect();
        let mut times = vec![0usize; self.nodes.len()];
        let needs = |at: usize| self.nodes.get(at).and_then(|node| node.needs.as_ref());
        for at in (0..self.nodes.len()).filter(|at| is_meant(*at)) {
            for needed in needs(at).into_iter().flatten() {
                if let Some(times) = times.get_mut(*needed) {
                    *times = times.saturating_add(1);
                }
            }
        }
        let is_free = |(at, times): (usize, &usize)| (*times == 0 && is_meant(at)).then_some(at);
        let mut open: Vec<usize> = times.iter().enumerate().filter_map(is_free).collect();
        while let Some(at) = open.pop() {
            if let Some(stays) = stays.get_mut(at) {
                *stays = false;
            }
            for needed in needs(at).into_iter().flatten() {
                if let Some(times) = times.get_mut(*needed) {
                    *times = times.saturating_sub(1);
                    if *times == 0 && is_meant(*needed) {
                        open.push(*needed);
                    }
                }
            }
        }
        stays
    }

    /// Whether no properties are too deep, with those of what is referred to.
    fn is_shallow(&self) -> bool {
        // Each is met once on any way, but for the first.
        let depths = || self.nodes.iter().map(|node| node.depth);
        let all = depths().fold(depths().max().unwrap_or_default(), u32::saturating_add);
        if all <= DEPTH_MAX {
            return true;
        }
        let mut steps = STEPS_MAX;
        let mut deepest = Vec::new();
        for at in 0..self.nodes.len() {
            let mut within = vec![false; self.nodes.len()];
            match self.deepest(at, &mut within, DEPTH_MAX, &mut steps) {
                Some(depth) => deepest.push(depth),
                None => return false,
            }
        }
        self.nodes.iter().flat_map(|node| &node.refers).all(|(place, depth)| {
            let referred = deepest.get(*place).copied().unwrap_or_default();
            depth.saturating_add(referred) <= DEPTH_MAX
        })
    }

    /// How deep the properties of a node are, with those of what it refers to, each followed once. `None` if that is
    /// too deep, or takes too many steps.
    fn deepest(&self, at: usize, within: &mut [bool], left: u32, steps: &mut usize) -> Option<u32> {
        *steps = steps.checked_sub(1)?;
        let node = self.nodes.get(at)?;
        let mut deepest = node.depth;
        for (place, depth) in &node.refers {
            let left = left.checked_sub(*depth)?;
            if std::mem::replace(within.get_mut(*place)?, true) {
                continue;
            }
            let referred = self.deepest(*place, within, left, steps)?;
            deepest = deepest.max(depth.saturating_add(referred));
            *within.get_mut(*place)? = false;
        }
        (deepest <= left).then_some(deepest)
    }
}
