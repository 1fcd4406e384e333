//! Gauges of the server: what is in progress, and how full the limits are.

use std::sync::Arc;

use crate::server::connections::Connections;
use crate::server::load::Load;
use crate::server::records::Records;
use crate::server::setup::Process;

/// Adds the gauges of the server to its metrics. `budget_max` is the maximum of the memory of
/// requests.
pub(crate) fn add(
    records: &Records,
    connections: &Arc<Connections>,
    process: &Process<'_>,
    budget_max: usize,
) {
    let Process { budget, documents, health, translations, .. } = process;
    let add = |name, help, read: Box<dyn Fn() -> usize + Send + Sync>| {
        records.metrics.gauge(name, help, move || u64::try_from(read()).ok());
    };
    let load = |load: &Load| {
        let load = load.clone();
        Box::new(move || load.now())
    };
    add("creole_gateway_requests_running", "Requests that are not over", load(&records.running));
    let help = "Answers whose body is on its way to a client";
    add("creole_gateway_streams_running", help, load(&records.streams));
    let connections = Arc::clone(connections);
    let max = connections.clients_max();
    let open = Box::new(move || connections.open());
    add("creole_gateway_connections", "Open connections of clients", open);
    let help = "Most connections of clients that may be open";
    add("creole_gateway_connections_max", help, Box::new(move || max));
    let budget = Arc::clone(budget);
    let held = Box::new(move || budget.held_bytes());
    add("creole_gateway_held_bytes", "Memory of requests, of buffered_bytes_max", held);
    let help = "Most memory of requests: buffered_bytes_max";
    add("creole_gateway_held_bytes_max", help, Box::new(move || budget_max));
    let translating = translations.waiting.clone();
    let (reading, documents) = (Arc::clone(documents), Arc::clone(documents));
    let waiting = Box::new(move || translating.now().saturating_add(documents.counts().0));
    let help = "Translations that wait for a thread, and documents that wait for a reader";
    add("creole_gateway_waiting", help, waiting);
    let reading = Box::new(move || reading.counts().1);
    add("creole_gateway_documents_reading", "Documents that are read", reading);
    let (health, reach) = (Arc::clone(health), Arc::clone(&health.reach));
    let stopping = Box::new(move || usize::from(health.is_stopping()));
    add("creole_gateway_shutting_down", "1 while the gateway stops", stopping);
    let name = "creole_gateway_upstream_reachable";
    let help = "Whether the last request reached the upstream: 1 or 0";
    records.metrics.gauge_of_upstreams(name, help, move || {
        let all = reach.all().into_iter();
        all.filter_map(|(name, known)| Some((name, u64::from(known?)))).collect()
    });
}
