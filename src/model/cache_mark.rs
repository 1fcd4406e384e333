//! Values of `cache_control`: marks up to which the client wants the prompt cached.

use crate::json::Writer;

/// Value of a `cache_control` member of a request, a block or a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheMark {
    /// Mark without a `ttl`, or with a `ttl` that the Messages API does not define.
    #[default]
    Plain,
    /// Mark with `"ttl": "5m"`: cached for five minutes.
    FiveMinutes,
    /// Mark with `"ttl": "1h"`: cached for one hour.
    OneHour,
}

impl CacheMark {
    /// Returns the mark for a value of `ttl`.
    pub(crate) fn of(ttl: &str) -> Self {
        match ttl {
            "5m" => Self::FiveMinutes,
            "1h" => Self::OneHour,
            _ => Self::Plain,
        }
    }

    /// Writes the mark as member `cache_control` of the JSON object that is being written.
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
