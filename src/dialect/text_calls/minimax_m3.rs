//! Parser for the output of MiniMax M3, whose elements are named like the members of the input.
//! Only text behind the model's mark is a tag.

use super::Piece;
use super::cursor::{Cursor, FindTool};
use super::in_tags::{Declared, InputObject, write_value};
use super::schema::allows;
use crate::json;
use crate::json_schema::input::property;
use crate::text::words;

pub(super) const MARK: &str = "]<]minimax[>[";

/// Maximum depth of nested elements.
const DEPTH_MAX: u8 = 32;

/// Reads calls such as `]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="NAME">…`, in which each
/// parameter is an element: `]<]minimax[>[<KEY>VALUE]<]minimax[>[</KEY>`.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    tools: FindTool<'_>,
    calls: &mut Vec<Piece>,
) -> Option<()> {
    cursor.tag("<tool_call>")?;
    while !cursor.rest.is_empty() {
        if cursor.tag("</tool_call>").is_some() {
            return Some(());
        }
        cursor.tag("<invoke name=\"")?;
        let tool = tools(cursor.until("\"")?)?;
        cursor.expect(">")?;
        let schema = tool.schema.as_deref().unwrap_or_default();
        let elements = cursor.elements(schema, schema, DEPTH_MAX)?;
        let input = elements.unwrap_or_else(|| "{}".to_owned());
        if !input.starts_with('{') {
            return None;
        }
        calls.push(Piece::call(None, tool, input));
        cursor.tag("</invoke>")?;
    }
    (!cursor.extent.is_cut_off).then_some(())
}

impl<'a> Cursor<'a> {
    fn tag(&mut self, tag: &str) -> Option<()> {
        let rest = self.rest.trim_start().strip_prefix(MARK)?.trim_start().strip_prefix(tag)?;
        self.rest = rest;
        Some(())
    }

    /// Reads the start tag at the cursor, and returns the name of the element.
    fn opened(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start().strip_prefix(MARK)?.trim_start().strip_prefix('<')?;
        let (name, behind) = words::split_once(rest, ">")?;
        let is_name = !name.is_empty() && !name.bytes().any(|it| matches!(it, b'/' | b'<' | b'\n'));
        self.rest = if is_name { behind } else { return None };
        Some(name)
    }

    /// Reads the elements at the cursor, if there are any: as a list if the elements are called
    /// `item`, otherwise as an object.
    fn elements(&mut self, root: &str, schema: &str, depth: u8) -> Option<Option<String>> {
        let depth = depth.checked_sub(1)?;
        let (mut object, mut list) = (InputObject::default(), String::new());
        let items = json::member(schema, "items").unwrap_or_default();
        while let Some(name) = self.opened() {
            let is_item = name == "item" && property(schema, name).is_none();
            let schema = if is_item { items } else { property(schema, name).unwrap_or_default() };
            let value = match self.elements(root, schema, depth)? {
                Some(value) => value,
                None => self.leaf(root, schema)?,
            };
            self.tag("</")?;
            self.rest = self.rest.strip_prefix(name)?.strip_prefix('>')?;
            if is_item {
                list.push(if list.is_empty() { '[' } else { ',' });
                list.push_str(&value);
            } else {
                object.json(name, &value)?;
            }
        }
        match (list.is_empty(), object.is_empty()) {
            (true, true) => Some(None),
            (true, false) => Some(Some(object.end())),
            (false, true) => Some(Some(list + "]")),
            (false, false) => None,
        }
    }

    /// Reads the text up to the next tag, and returns the text as a JSON value.
    fn leaf(&mut self, root: &str, schema: &str) -> Option<String> {
        let (text, _) = words::split_once(self.rest, MARK)?;
        self.rest = self.rest.get(text.len()..)?;
        let allows = |kind| allows(root, schema, kind);
        let text = match text {
            text if !text.trim().is_empty() || allows("string") => text,
            // The element of an argument without content is an empty list or object, if the
            // argument may be one.
            _ if allows("array") => "[]",
            _ if allows("object") => "{}",
            text => text,
        };
        let mut value = Vec::new();
        write_value(&mut value, text, Declared::Nothing, root, Some(schema));
        String::from_utf8(value).ok()
    }
}
