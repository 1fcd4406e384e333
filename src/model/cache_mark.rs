//! Marks of the client's: the prompt is to be cached up to here.

use crate::json::Writer;

/// A `cache_control` of a block or a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheMark {
    /// Without a `ttl`, or with one that the Messages API does not have.
    #[default]
    Plain,
    /// `"ttl": "5m"`
    FiveMinutes,
    /// `"ttl": "1h"`
    OneHour,
}

impl CacheMark {
    /// The mark with this `ttl`.
    pub(crate) fn of(ttl: &str) -> Self {
        match ttl {
            "5m" => Self::FiveMinutes,
            "1h" => Self::OneHour,
            _ => Self::Plain,
        }
    }

    /// Writes the mark as a member of the object that is open.
    pub(crate) fn write(self, json: &mut Writer<'_>) {
        json.key("cache_control").begin_object().kind("ephemeral");
        match self {
            Self::Plain => {}
            Self::FiveMinutes => {
                json.key("ttl").text("5m");
            }
            Self::OneHour => {
                json.key("ttl").text("1h");
            }
        }
        json.end_object();
    }
}
