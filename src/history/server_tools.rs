//! Calls and results of tools that ran at Anthropic, turned into text of the assistant for another
//! model.
//!
//! Results have many shapes, and each new tool adds one. Their readable parts are found by member
//! name at any depth: titles and addresses, outputs, texts, error codes. Encrypted parts and base64
//! are left out.

use crate::json::{Reader, Str, ValueKind, escape, escape_compact};

/// Appends a call as `[NAME INPUT]`, escaped for the inside of a JSON string.
pub(crate) fn push_call(out: &mut Vec<u8>, name: Str<'_>, input: &str) {
    out.push(b'[');
    out.extend_from_slice(name.raw().as_bytes());
    out.push(b' ');
    escape_compact(out, input);
    out.push(b']');
}

/// Appends the readable lines of a server tool's result, escaped for the inside of a JSON string.
pub(crate) fn push_result(out: &mut Vec<u8>, content: &str) {
    let mut lines = ServerToolLines { start: out.len(), out };
    let mut reader = Reader::of(content);
    // The content of the result was parsed before, so it is valid JSON; nothing is lost by stopping
    // early.
    let _ = lines.value(&mut reader);
}

/// Calls `each` with the name of each tool that a tool search found.
pub(crate) fn tool_names<'a>(content: &'a str, mut each: impl FnMut(Str<'a>)) {
    let mut reader = Reader::of(content);
    let _ = walk_names(&mut reader, &mut each);
}

fn walk_names<'a>(
    reader: &mut Reader<'a>,
    each: &mut impl FnMut(Str<'a>),
) -> Result<(), crate::json::Error> {
    match reader.kind()? {
        ValueKind::Array => {
            reader.begin_array()?;
            while reader.next_element()? {
                walk_names(reader, each)?;
            }
        }
        ValueKind::Object => {
            reader.begin_object()?;
            while let Some(key) = reader.next_key()? {
                if key == "tool_name" && reader.kind()? == ValueKind::String {
                    each(reader.string()?);
                } else {
                    walk_names(reader, each)?;
                }
            }
        }
        _ => {
            reader.skip()?;
        }
    }
    Ok(())
}

struct ServerToolLines<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl ServerToolLines<'_> {
    /// Appends the readable lines of the next JSON value. The reader limits the nesting to 128
    /// levels, so the recursion ends.
    fn value(&mut self, reader: &mut Reader<'_>) -> Result<(), crate::json::Error> {
        match reader.kind()? {
            ValueKind::String => {
                let text = reader.string()?;
                self.line(text);
            }
            ValueKind::Array => {
                reader.begin_array()?;
                while reader.next_element()? {
                    self.value(reader)?;
                }
            }
            ValueKind::Object => self.object(reader)?,
            ValueKind::Number | ValueKind::Bool | ValueKind::Null => {
                reader.skip()?;
            }
        }
        Ok(())
    }

    fn object(&mut self, reader: &mut Reader<'_>) -> Result<(), crate::json::Error> {
        // The address is written after the title, in whatever order the two members come.
        let (mut title, mut url, mut data) = (None, None, None);
        let mut base64 = false;
        reader.begin_object()?;
        while let Some(key) = reader.next_key()? {
            let kind = reader.kind()?;
            match (key.decode().as_ref(), kind) {
                ("title", ValueKind::String) => title = Some(reader.string()?),
                ("url", ValueKind::String) => url = Some(reader.string()?),
                ("data", ValueKind::String) => data = Some(reader.string()?),
                ("type", ValueKind::String) => base64 = reader.string()? == "base64",
                ("text" | "stdout" | "stderr" | "content" | "lines" | "tool_references", _)
                | ("source", ValueKind::Object) => self.value(reader)?,
                ("error_code" | "error_message", ValueKind::String) => {
                    let text = reader.string()?;
                    self.begin_line("error: ");
                    self.out.extend_from_slice(text.raw().as_bytes());
                }
                ("return_code", ValueKind::Number) => {
                    let code = reader.number()?;
                    if code != "0" {
                        self.begin_line("return code: ");
                        self.out.extend_from_slice(code.as_bytes());
                    }
                }
                ("tool_name", ValueKind::String) => {
                    let name = reader.string()?;
                    self.begin_line("Tool loaded: ");
                    self.out.extend_from_slice(name.raw().as_bytes());
                }
                ("file_id", ValueKind::String) => {
                    let id = reader.string()?;
                    self.begin_line("file: ");
                    self.out.extend_from_slice(id.raw().as_bytes());
                }
                _ => {
                    reader.skip()?;
                }
            }
        }
        match (title, url) {
            (Some(title), Some(url)) => {
                self.line(title);
                self.out.push(b' ');
                self.out.extend_from_slice(url.raw().as_bytes());
            }
            (Some(one), None) | (None, Some(one)) => self.line(one),
            (None, None) => {}
        }
        if let Some(data) = data.filter(|_| !base64) {
            self.line(data);
        }
        Ok(())
    }

    fn line(&mut self, text: Str<'_>) {
        if !text.is_empty() {
            self.begin_line("");
            self.out.extend_from_slice(text.raw().as_bytes());
        }
    }

    fn begin_line(&mut self, label: &str) {
        if self.out.len() > self.start {
            self.out.extend_from_slice(b"\\n");
        }
        escape(self.out, label);
    }
}

#[cfg(test)]
mod tests;
