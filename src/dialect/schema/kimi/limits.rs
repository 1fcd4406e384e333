//! Kimi's limits on the depth and length of a schema, and its check for definitions that refer to
//! themselves without end.
//!
//! Properties may be nested 30 levels deep, including those of referenced definitions. A schema may
//! have 3,000 properties and 120,000 bytes. A larger schema is written again with fewer levels of
//! properties, and with definitions that refer only to themselves.

use super::tree::Tree;
use crate::json::Str;
use crate::text::names::{NameSet, Names};
use crate::text::words;

/// Name under which the root is listed among the definitions.
pub(super) const ROOT: &str = "#";

const DEPTH_MAX: u32 = 30;
const PROPERTIES_MAX: usize = 3000;
const BYTES_MAX: usize = 120_000;

/// Attempts to write a schema, each with a maximum depth of properties and a flag: true if
/// definitions may refer to others. The first result within Kimi's limits is sent.
pub(super) const ATTEMPTS: [(u32, bool); 7] =
    [(DEPTH_MAX, true), (10, false), (5, false), (3, false), (2, false), (1, false), (0, false)];

/// Number of bytes below which a schema needs no check: so short a schema has neither too many
/// bytes nor too many properties.
const BYTES_FEW: usize = BYTES_MAX / 6;

/// Maximum number of steps along references when their depth is measured.
const STEPS_MAX: usize = 20_000;

/// Returns true if a schema in Kimi's form is neither too long nor too deep.
pub(super) fn fits(schema: &str) -> bool {
    let refers = words::has(schema, "\"$ref\"");
    if schema.len() < BYTES_FEW && !refers {
        return true;
    }
    let tree = Tree::of(schema);
    bytes(schema) <= BYTES_MAX
        && properties(&tree, false) <= PROPERTIES_MAX
        && (!refers || Graph::of(&tree).is_shallow())
}

/// Returns the length of a schema as Kimi counts it: `<`, `>` and `&` count as six bytes.
fn bytes(schema: &str) -> usize {
    let long = schema.bytes().filter(|byte| matches!(byte, b'<' | b'>' | b'&')).count();
    schema.len().saturating_add(long.saturating_mul(5))
}

/// Returns the number of properties in a schema. `named`: the members of `schema` are properties.
fn properties(schema: &Tree<'_>, named: bool) -> usize {
    let own = if named { schema.members().len() } else { 0 };
    let members = schema.members().iter().map(|(key, it)| properties(it, *key == "properties"));
    let elements = schema.elements().iter().map(|it| properties(it, false));
    members.chain(elements).fold(own, usize::saturating_add)
}

/// Returns the names of the definitions to loosen, because Kimi considers their recursion endless.
/// Among definitions that require each other, only the objects are returned, unless `all` is true.
pub(super) fn endless(schema: &str, all: bool) -> Vec<String> {
    if !words::has(schema, "\"$ref\"") {
        return Vec::new();
    }
    let tree = Tree::of(schema);
    let graph = Graph::of(&tree);
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

/// Node of the reference graph: the root of the schema, or a definition.
struct Node {
    name: String,
    is_object: bool,
    /// References of the node: index of the node that each leads to, and its depth among the
    /// properties.
    refers: Vec<(usize, u32)>,
    /// Greatest depth of the node's properties.
    depth: u32,
    /// Indices of the nodes of which at least one must end for this node to end (have finite
    /// values). `None` if this node ends by itself.
    needs: Option<Vec<usize>>,
}

/// Graph of the references between definitions. The root is the first node.
struct Graph<'s> {
    places: Names<'s, usize>,
    nodes: Vec<Node>,
}

impl<'s> Graph<'s> {
    fn of(schema: &Tree<'s>) -> Self {
        let mut schemas = vec![(ROOT.into(), schema)];
        let definitions = schema.member("$defs").map(Tree::members).unwrap_or_default();
        schemas.extend(definitions.iter().map(|(name, schema)| (name.decode(), schema)));
        let mut graph = Self { places: Names::default(), nodes: Vec::new() };
        for (at, (name, _)) in schemas.iter().enumerate() {
            graph.places.insert(name.clone(), at);
        }
        for (at, (name, schema)) in schemas.into_iter().enumerate() {
            let mut node = Node {
                is_object: schema.text("type").is_some_and(|name| name == "object"),
                name: name.into_owned(),
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

    /// Returns the index of the node to which a reference leads.
    fn place(&self, reference: Str<'_>) -> Option<usize> {
        let reference = reference.decode();
        self.places.get(reference.strip_prefix("#/$defs/").unwrap_or(&reference)).copied()
    }

    /// Records the references and the depth of properties of a schema in `node`.
    fn read(&self, schema: &Tree<'_>, depth: u32, root: bool, node: &mut Node) {
        node.depth = node.depth.max(depth);
        for (key, value) in schema.members() {
            match key.raw() {
                "$ref" => {
                    let place = value.as_text().and_then(|reference| self.place(reference));
                    node.refers.extend(place.map(|place| (place, depth)));
                }
                "$defs" if root => {}
                "properties" => {
                    for (_, schema) in value.members() {
                        self.read(schema, depth.saturating_add(1), false, node);
                    }
                }
                _ => self.read(value, depth, false, node),
            }
        }
        for schema in schema.elements() {
            self.read(schema, depth, false, node);
        }
    }

    /// Returns true if the recursion of a schema ends, whatever its references lead to. For an
    /// object, Kimi requires that at least one required property ends; for an array, that `items`
    /// ends, although an array may be empty.
    fn ends_by_itself(&self, schema: &Tree<'_>, needs: &mut Vec<usize>) -> bool {
        if schema.members().is_empty() {
            return true;
        }
        let types = schema.member("type");
        let listed = types.map(Tree::elements).unwrap_or_default().iter().map(Tree::as_text);
        let names: Vec<Str<'_>> =
            types.map(Tree::as_text).into_iter().chain(listed).flatten().collect();
        let is_last = |name: &str| names.last().is_some_and(|last| *last == *name);
        if names.iter().any(|name| !(*name == "object" || *name == "array")) {
            return true;
        }
        let items = || schema.member("items");
        if is_last("array") && items().is_none_or(|items| self.ends_by_itself(items, needs)) {
            return true;
        }
        if is_last("object") && self.object_ends(schema, needs) {
            return true;
        }
        let branches = schema.member("anyOf").map(Tree::elements).unwrap_or_default();
        if branches.iter().any(|branch| self.ends_by_itself(branch, needs)) {
            return true;
        }
        needs.extend(schema.text("$ref").and_then(|reference| self.place(reference)));
        false
    }

    /// Returns true if the recursion of an object schema ends, by Kimi's rule for its required
    /// properties.
    fn object_ends(&self, schema: &Tree<'_>, needs: &mut Vec<usize>) -> bool {
        let properties = schema.member("properties").map(Tree::members).unwrap_or_default();
        let required = schema.member("required").map(Tree::elements).unwrap_or_default();
        let mut names = NameSet::default();
        for name in required.iter().filter_map(Tree::as_text) {
            names.add(name.decode());
        }
        let mut needed = properties.iter().filter(|(name, _)| names.contains(&name.decode()));
        names.is_empty()
            || properties.is_empty()
            || needed.any(|(_, schema)| self.ends_by_itself(schema, needs))
    }

    /// Returns one flag for each node: true if the recursion of the node ends.
    fn ends(&self) -> Vec<bool> {
        let mut needed_by = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for needed in node.needs.iter().flatten() {
                if let Some(all) = needed_by.get_mut(*needed) {
                    all.push(at);
                }
            }
        }
        let by_themselves = |(at, node): (usize, &Node)| node.needs.is_none().then_some(at);
        let open = self.nodes.iter().enumerate().filter_map(by_themselves).collect();
        let next = |at: usize| needed_by.get(at).cloned().unwrap_or_default();
        self.reached(open, next)
    }

    /// Returns one flag for each node: true if references lead to the node from the root.
    fn used(&self) -> Vec<bool> {
        let refers = |at: usize| self.nodes.get(at).map(|node| node.refers.as_slice());
        let next =
            |at: usize| refers(at).unwrap_or_default().iter().map(|(place, _)| *place).collect();
        self.reached(next(0), next)
    }

    /// Returns one flag for each node: true if the node can be reached from the nodes in `open`.
    fn reached(&self, mut open: Vec<usize>, next: impl Fn(usize) -> Vec<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        while let Some(at) = open.pop() {
            if let Some(reached) = reached.get_mut(at).filter(|reached| !**reached) {
                *reached = true;
                open.extend(next(at));
            }
        }
        reached
    }

    /// Returns one flag for each node: true if the node is in a cycle of nodes that need each
    /// other, or is needed by one of these cycles. Only nodes selected by `is_meant` count.
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

    /// Returns true if no properties are too deep, including those of referenced definitions.
    fn is_shallow(&self) -> bool {
        // Upper bound of the depth: a path visits each node at most once, except for the first
        // node.
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

    /// Returns the depth of a node's properties, including those of referenced nodes, each followed
    /// once. `None` if the properties are too deep or the search takes too many steps.
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
