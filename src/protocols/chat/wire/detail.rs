//! Parsing of `reasoning_details`, `thinking_blocks` and `reasoning_opaque`.

use crate::json::{Error, Reader, ValueKind};
use crate::model::reasoning::Detail;
use crate::protocols::chat::wire::limits::{Allowance, List};
use crate::protocols::chat::wire::{Few, filled, number, text};

impl<'a> Detail<'a> {
    /// Reads a list of reasoning details, or a single detail that some servers send without a list
    /// around it.
    #[inline(never)]
    pub(crate) fn read_all(
        reader: &mut Reader<'a>,
        blocks: bool,
        details: &mut Few<Self>,
        allowance: &mut Allowance,
    ) -> Result<(), Error> {
        let mut take = |reader: &mut Reader<'a>| {
            if let Some(mut detail) = Self::read(reader)? {
                let kind = detail.kind.map_or("", |kind| kind.raw());
                detail.block = blocks && matches!(kind, "thinking" | "redacted_thinking");
                if detail.block == blocks
                    && detail.says_something()
                    && allowance.take(List::Details)
                {
                    details.push(detail);
                }
            }
            Ok(())
        };
        if reader.kind()? != ValueKind::Array {
            return take(reader);
        }
        reader.begin_array()?;
        while reader.next_element()? {
            take(reader)?;
        }
        Ok(())
    }

    /// Returns true if the detail has a text, data or a signature, which a client or the upstream
    /// can use.
    fn says_something(&self) -> bool {
        self.text.is_some() || self.data.is_some() || self.signature.is_some()
    }

    /// Reads a `reasoning_opaque`, which is a string, as a reasoning detail.
    #[inline(never)]
    pub(crate) fn opaque(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let raw = reader.clone().skip()?;
        Ok(Self { raw, data: filled(reader)?, ..Self::default() })
    }

    /// Reads one reasoning detail. Returns `None` for a value that is not an object.
    fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, Error> {
        let raw = reader.skip()?;
        let mut inside = Reader::of(raw);
        if !inside.object_or_skip()? {
            return Ok(None);
        }
        let mut detail = Self { raw, ..Self::default() };
        while let Some(key) = inside.next_key()? {
            match key.raw() {
                "type" => detail.kind = inside.string_or_skip()?,
                "index" => detail.index = number(&mut inside)?,
                "text" | "summary" | "thinking" => detail.text = text(&mut inside)?.or(detail.text),
                "data" => detail.data = filled(&mut inside)?,
                "signature" => detail.signature = filled(&mut inside)?,
                _ => drop(inside.skip()?),
            }
        }
        Ok(Some(detail))
    }
}
