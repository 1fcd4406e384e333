//! The facts: every type of the wire formats with its fields, and the fate of each field.
//!
//! A field's type is written as `"string"`, `"integer"`, `"number"`, `"boolean"`, `"null"`,
//! `"object"`, `"#TypeName"`, `{"enum": […]}`, `{"array": T}`, `{"map": T}` or `{"any": [T, …]}`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value, json};

/// A text that stands nowhere else. It is at once a name, an id, and base64.
pub const MARK: &str = "Zq7Markx";
/// A number that stands nowhere else.
pub const NUMBER: u64 = 4242;

/// Types of one wire format, with their fields.
pub struct Spec {
    types: BTreeMap<String, BTreeMap<String, Field>>,
}

/// Field of a type, with the decision on it.
pub struct Field {
    pub tree: Value,
    pub required: bool,
    /// The decision.
    pub fate: String,
    /// Place where the field goes, as the decision says.
    pub to: String,
    /// The note to the decision.
    pub note: String,
    /// Fate of a field of Messages on the way to Responses, the place where it arrives, and a note.
    pub in_responses: [String; 3],
    /// The words of an enumeration that are sent.
    pub sent: BTreeSet<String>,
    /// Outcomes of the words of an enumeration, by word.
    pub words: BTreeMap<String, String>,
}

/// Step from a type to a type that it holds.
#[derive(Clone, Debug)]
pub struct Step {
    pub from: String,
    pub field: String,
    pub to: String,
}

impl Spec {
    pub fn read(text: &str) -> Self {
        let document: Value = serde_json::from_str(text).unwrap();
        let mut types = BTreeMap::new();
        for (name, fields) in document["types"].as_object().unwrap() {
            let mut all = BTreeMap::new();
            for (field, facts) in fields.as_object().unwrap() {
                let fate = &facts["fate"];
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let sent = facts["sent"].as_array().into_iter().flatten();
                let words = facts["values"].as_object().into_iter().flatten();
                all.insert(
                    field.clone(),
                    Field {
                        tree: facts["type"].clone(),
                        required: facts["required"] == true,
                        fate: fate[0].as_str().unwrap().to_owned(),
                        to: fate[1].as_str().unwrap_or_default().to_owned(),
                        note: fate[2].as_str().unwrap_or_default().to_owned(),
                        in_responses: [0, 1, 2].map(|at| text(&facts["responses"][at])),
                        sent: sent.map(text).collect(),
                        words: words.map(|(word, fate)| (word.clone(), text(fate))).collect(),
                    },
                );
            }
            types.insert(name.clone(), all);
        }
        Self { types }
    }

    pub fn types(&self) -> impl Iterator<Item = (&String, &BTreeMap<String, Field>)> {
        self.types.iter()
    }

    pub fn fields(&self, name: &str) -> &BTreeMap<String, Field> {
        self.types.get(name).unwrap_or_else(|| panic!("no type {name}"))
    }

    pub fn field(&self, name: &str, field: &str) -> Option<&Field> {
        self.types.get(name)?.get(field)
    }

    /// A valid instance with only what is required. `marked`: with the mark in its texts.
    pub fn instance(&self, name: &str, marked: bool) -> Value {
        let mut object = Map::new();
        for (field, facts) in self.fields(name) {
            if facts.required {
                object.insert(field.clone(), self.plain(name, field, &facts.tree, marked));
            }
        }
        Value::Object(object)
    }

    /// Returns one valid value of a field.
    fn plain(&self, name: &str, field: &str, tree: &Value, marked: bool) -> Value {
        self.values(name, field, tree, marked).remove(0)
    }

    /// Valid values for a field, one for each alternative of its type, with the mark in them.
    pub fn values(&self, name: &str, field: &str, tree: &Value, marked: bool) -> Vec<Value> {
        match tree {
            Value::String(kind) => vec![match kind.as_str() {
                "string" => text(name, field, marked),
                "integer" => {
                    if marked || field == "budget_tokens" {
                        NUMBER.into()
                    } else {
                        8000.into()
                    }
                }
                "number" => 0.5.into(),
                "boolean" => true.into(),
                "null" => Value::Null,
                "object" => {
                    if marked {
                        json!({ MARK: 1 })
                    } else {
                        json!({})
                    }
                }
                reference => self.instance(reference.strip_prefix('#').unwrap(), marked),
            }],
            Value::Object(tree) => {
                if let Some(values) = tree.get("enum") {
                    return values.as_array().unwrap().clone();
                }
                if let Some(alternatives) = tree.get("any") {
                    return alternatives
                        .as_array()
                        .unwrap()
                        .iter()
                        .filter(|tree| *tree != "null")
                        .flat_map(|tree| self.values(name, field, tree, marked))
                        .collect();
                }
                if let Some(item) = tree.get("array") {
                    let items = self.values(name, field, item, marked);
                    return items.into_iter().map(|item| json!([item])).collect();
                }
                let item = self.values(name, field, &tree["map"], marked).remove(0);
                vec![json!({ (key(marked)): item })]
            }
            _ => panic!("{name}.{field}: {tree}"),
        }
    }

    /// The shortest way from `root` to every type, by the steps that `allowed` admits.
    pub fn paths(
        &self,
        root: &str,
        allowed: &dyn Fn(&Step) -> bool,
    ) -> BTreeMap<String, Vec<Step>> {
        let mut reached = BTreeMap::from([(root.to_owned(), Vec::new())]);
        let mut queue = VecDeque::from([root.to_owned()]);
        while let Some(name) = queue.pop_front() {
            for (field, facts) in self.fields(&name) {
                for to in references(&facts.tree) {
                    let step = Step { from: name.clone(), field: field.clone(), to };
                    if reached.contains_key(&step.to) || !allowed(&step) {
                        continue;
                    }
                    let mut longer = reached[&name].clone();
                    longer.push(step.clone());
                    reached.insert(step.to.clone(), longer);
                    queue.push_back(step.to);
                }
            }
        }
        reached
    }

    /// Puts `value`, an instance of the last step's type, into an instance of the first step's.
    pub fn wrap(&self, steps: &[Step], value: Value) -> Value {
        steps.iter().rev().fold(value, |value, step| {
            let mut parent = self.instance(&step.from, false);
            let tree = &self.field(&step.from, &step.field).unwrap().tree;
            parent[&step.field] = hold(tree, &step.to, value).unwrap();
            parent
        })
    }
}

/// The name of a member of a map.
fn key(marked: bool) -> &'static str {
    if marked { MARK } else { "plain" }
}

fn text(name: &str, field: &str, marked: bool) -> Value {
    let url = matches!(field, "url") || (field == "source" && name == "SearchResultBlockParam");
    match (url, marked) {
        (true, true) => format!("https://x.test/{MARK}").into(),
        (true, false) => "https://x.test/a".into(),
        (false, true) => MARK.into(),
        (false, false) => match field {
            "model" => "claude-test",
            "data" => "QUJD",
            "name" | "tool_name" => "w",
            "tool_use_id" | "id" => "toolu_t1",
            "mcp_server_name" | "server_name" => "files",
            _ => "plain",
        }
        .into(),
    }
}

fn references(tree: &Value) -> Vec<String> {
    match tree {
        Value::String(kind) => kind.strip_prefix('#').map(str::to_owned).into_iter().collect(),
        Value::Object(tree) => tree
            .values()
            .flat_map(|inner| match inner {
                Value::Array(alternatives) => alternatives.iter().flat_map(references).collect(),
                inner => references(inner),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// `value` in the alternative of `tree` that holds the type `to`.
fn hold(tree: &Value, to: &str, value: Value) -> Option<Value> {
    match tree {
        Value::String(kind) => (kind.strip_prefix('#') == Some(to)).then_some(value),
        Value::Object(tree) => {
            if let Some(alternatives) = tree.get("any") {
                let alternatives = alternatives.as_array().unwrap();
                return alternatives.iter().find_map(|tree| hold(tree, to, value.clone()));
            }
            if let Some(item) = tree.get("array") {
                return hold(item, to, value).map(|item| json!([item]));
            }
            hold(tree.get("map")?, to, value).map(|item| json!({ (key(false)): item }))
        }
        _ => None,
    }
}
