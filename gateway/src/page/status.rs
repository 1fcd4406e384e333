//! Figures of the gateway as JSON, for the status line of a client.

use creole::Millis;
use serde_json::json;

use super::board::BoardState;

/// Media type by which the figures are requested at `/`.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.creole.status+json";

/// Returns the speed of the last answer, and the last failure.
pub(super) fn json(state: &BoardState, now: Millis) -> String {
    let mut newest = state.rows.iter().rev();
    let speed = newest.clone().find_map(|row| row.figures.speed);
    let failure = newest.find(|row| row.is_failed()).map(|row| {
        let seconds = now.saturating_sub(row.ended_at) / 1000;
        json!({"status": row.figures.status, "cause": row.cause, "seconds": seconds})
    });
    json!({"tokens_per_second": speed, "failure": failure}).to_string()
}
