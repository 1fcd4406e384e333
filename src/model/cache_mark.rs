//! `cache_control`: marks up to which the client wants the prompt cached.

use crate::json::Writer;

/// `cache_control` of a request, a block or a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheMark {
    /// Mark without a `ttl`, or with a `ttl` that the Messages API does not have.
    #[default]
    Plain,
    /// `"ttl": "5m"`
    FiveMinutes,
    /// `"ttl": "1h"`
    OneHour,
}

impl CacheMark {
    /// Returns the mark with this `ttl`.
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
