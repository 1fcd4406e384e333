//! HTTP stream of the emulated Envoy, which acts on what the filter's callbacks return.

use super::vm::Vm;
use super::world::{Local, PLUGIN, Side, VisibleStream as Shown};
use crate::{End, Got, Header, Seen, value};

/// Default of Envoy's `per_connection_buffer_limit_bytes`.
const BUFFER_LIMIT: usize = 1 << 20;

/// Variations of Envoy's behaviour, by configuration or by chance.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// True if `allow_on_headers_stop_iteration` is not set: a paused head then stops everything.
    pub stop_all: bool,
    /// Size of the chunks in which bodies arrive; 0: as they are sent.
    pub cut: usize,
    /// True if the end of a body arrives in a call of its own (HTTP/1), not with the last chunk
    /// (HTTP/2).
    pub end_apart: bool,
}

/// State of one direction of a stream: request or response.
#[derive(Debug, Default)]
struct Way {
    /// Head that went on to the other side; `None` as long as no head went on.
    released: Option<Vec<Header>>,
    /// Part of the body that went on to the other side.
    body: Vec<u8>,
    /// Part of the body that is buffered because a callback paused.
    kept: Vec<u8>,
    /// True if the end of the body has arrived and waits with the buffered part.
    end_waits: bool,
    /// True if the end of the body went on to the other side.
    ended: bool,
}

/// State of one HTTP stream.
#[derive(Debug)]
pub struct Stream {
    id: u32,
    rules: Rules,
    request: Way,
    response: Way,
    /// True if everything is stopped, because a head was paused under [`Rules::stop_all`].
    stopped: bool,
    over: bool,
    /// Answer that the client got so far.
    pub got: Got,
}

impl Stream {
    /// Starts a stream.
    pub fn new(vm: &mut Vm, rules: Rules) -> Self {
        // Ids of contexts are not used twice.
        vm.world_mut().contexts += 1;
        let id = PLUGIN + vm.world().contexts;
        vm.world_mut().streams.insert(id, Shown::default());
        vm.in_context(id);
        vm.call::<(u32, u32), ()>("proxy_on_context_create", (id, PLUGIN)).expect("no trap");
        Self {
            id,
            rules,
            request: Way::default(),
            response: Way::default(),
            stopped: false,
            over: false,
            got: Got::nothing(End::Silent),
        }
    }

    /// Returns true if the upstream has the whole request.
    pub fn asks_upstream(&self) -> bool {
        !self.over && self.request.ended
    }

    /// Returns true if the client has everything that it will get.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Passes the request's head to the filter.
    pub fn request_headers(&mut self, vm: &mut Vm, head: Vec<Header>, end: bool) {
        let count = head.len() as u32;
        self.open(vm, Side::Request, head);
        let result = self.call(vm, "proxy_on_request_headers", count, end);
        self.after_head(vm, Side::Request, result, end);
    }

    /// Passes a chunk of the request's body to the filter.
    pub fn request_body(&mut self, vm: &mut Vm, piece: &[u8], end: bool) {
        if !self.over && !self.stopped {
            self.body(vm, Side::Request, "proxy_on_request_body", piece, end);
        }
    }

    /// Passes the request's trailers to the filter.
    pub fn request_trailers(&mut self, vm: &mut Vm) {
        if self.over || self.stopped {
            return;
        }
        let result = self.trailers(vm, "proxy_on_request_trailers");
        if !self.settle(vm) && result == 0 {
            self.release(vm, Side::Request);
            self.end(vm, Side::Request);
        }
    }

    /// Passes the upstream's response head to the filter.
    pub fn response_headers(&mut self, vm: &mut Vm, status: u16, head: &[Header], end: bool) {
        if self.over || self.stopped {
            return;
        }
        let mut all = vec![(":status".to_owned(), status.to_string())];
        all.extend_from_slice(head);
        self.show(vm, |shown| "via_upstream".clone_into(&mut shown.details));
        let count = all.len() as u32;
        self.open(vm, Side::Response, all);
        let result = self.call(vm, "proxy_on_response_headers", count, end);
        self.after_head(vm, Side::Response, result, end);
    }

    /// Passes a chunk of the upstream's body to the filter.
    pub fn response_body(&mut self, vm: &mut Vm, piece: &[u8], end: bool) {
        if !self.over && !self.stopped {
            self.body(vm, Side::Response, "proxy_on_response_body", piece, end);
        }
    }

    /// Passes the upstream's trailers to the filter.
    pub fn response_trailers(&mut self, vm: &mut Vm) {
        if self.over || self.stopped {
            return;
        }
        let result = self.trailers(vm, "proxy_on_response_trailers");
        if self.settle(vm) {
            return;
        }
        if result == 0 {
            self.release(vm, Side::Response);
            self.end(vm, Side::Response);
        } else {
            self.response.end_waits = true;
        }
    }

    /// Breaks the upstream's connection. The filter learns of the break only by `on_log`.
    pub fn upstream_reset(&mut self, vm: &mut Vm) {
        if self.over {
            return;
        }
        let details = "upstream_reset_after_response_started{connection_termination}";
        self.show(vm, |shown| details.clone_into(&mut shown.details));
        if self.response.released.is_none() {
            // Envoy's error response bypasses the filter; `local_reply_config` of envoy/envoy.yaml
            // formats it.
            let message = format!(
                "upstream connect error or disconnect/reset before headers. \
                reset reason: connection termination ({details})"
            );
            let body = serde_json::json!({
                "error": {"message": message, "type": "api_error"}, "type": "error"
            });
            self.got.status = 503;
            let kind = ("content-type".to_owned(), "application/json".to_owned());
            self.got.headers = vec![kind];
            self.got.body = body.to_string().into_bytes();
            self.finish(vm, End::Complete);
        } else {
            self.finish(vm, End::Aborted);
        }
    }

    /// Ends the stream because the client disconnects.
    pub fn client_gone(&mut self, vm: &mut Vm) {
        if !self.over {
            self.show(vm, |shown| "downstream_remote_disconnect".clone_into(&mut shown.details));
            self.finish(vm, End::Aborted);
        }
    }

    /// Advances the clock and runs the ticks that are due.
    pub fn tick(&mut self, vm: &mut Vm, ms: u64) {
        vm.world_mut().now_ms += ms;
        vm.in_context(PLUGIN);
        vm.call::<u32, ()>("proxy_on_tick", PLUGIN).expect("no trap");
        if !self.over && !self.settle(vm) {
            self.resume(vm);
        }
    }

    /// Sends the buffered body on, if the filter requested that. The filter may write more at any
    /// later time.
    fn resume(&mut self, vm: &mut Vm) {
        let mut kept = None;
        self.show(vm, |shown| {
            if std::mem::take(&mut shown.resume) {
                kept = shown.ways[Side::Response as usize].buffer.replace(Vec::new());
            }
        });
        let Some(kept) = kept else { return };
        self.release(vm, Side::Response);
        self.response.kept.clear();
        self.response.body.extend_from_slice(&kept);
        self.got.body.extend_from_slice(&kept);
        if self.response.end_waits {
            self.end(vm, Side::Response);
        }
    }

    /// Ends the stream when the test has no more input for it.
    pub fn give_up(&mut self, vm: &mut Vm) {
        if !self.over {
            self.finish(vm, End::Silent);
        }
    }

    fn show(&self, vm: &mut Vm, change: impl FnOnce(&mut Shown)) {
        if let Some(shown) = vm.world_mut().streams.get_mut(&self.id) {
            change(shown);
        }
    }

    fn open(&self, vm: &mut Vm, side: Side, head: Vec<Header>) {
        self.show(vm, |shown| {
            let way = &mut shown.ways[side as usize];
            way.headers = head;
            way.headers_open = true;
        });
    }

    fn call(&mut self, vm: &mut Vm, name: &str, size: u32, end: bool) -> u32 {
        vm.in_context(self.id);
        // A trap would end every stream of the VM, so every test fails at a trap.
        vm.call::<(u32, u32, u32), u32>(name, (self.id, size, u32::from(end))).expect("no trap")
    }

    fn trailers(&mut self, vm: &mut Vm, name: &str) -> u32 {
        vm.in_context(self.id);
        vm.call::<(u32, u32), u32>(name, (self.id, 1)).expect("no trap")
    }

    fn after_head(&mut self, vm: &mut Vm, side: Side, result: u32, end: bool) {
        if self.settle(vm) {
            return;
        }
        if result == 0 {
            self.release(vm, side);
            if end {
                self.end(vm, side);
            }
        } else if self.rules.stop_all {
            self.stopped = true;
        }
    }

    fn body(&mut self, vm: &mut Vm, side: Side, name: &str, piece: &[u8], end: bool) {
        let mut buffer = std::mem::take(&mut self.way(side).kept);
        buffer.extend_from_slice(piece);
        if buffer.len() > BUFFER_LIMIT && buffer.len() > piece.len() {
            return self.too_large(vm, side);
        }
        let size = buffer.len() as u32;
        self.show(vm, |shown| shown.ways[side as usize].buffer = Some(buffer));
        let result = self.call(vm, name, size, end);
        let mut left = None;
        self.show(vm, |shown| left = shown.ways[side as usize].buffer.take());
        if self.settle(vm) {
            return;
        }
        let left = left.expect("the buffer of a stream that is there");
        match result {
            // The callback's result 0 lets a paused head go on as well.
            0 => {
                self.release(vm, side);
                self.way(side).body.extend_from_slice(&left);
                if side == Side::Response {
                    self.got.body.extend_from_slice(&left);
                }
                if end {
                    self.end(vm, side);
                }
            }
            1 => {
                self.show(vm, |shown| shown.ways[side as usize].buffer = Some(left.clone()));
                self.way(side).kept = left;
                self.way(side).end_waits = end;
            }
            // Any other result of the callback throws the chunk away.
            _ => {}
        }
    }

    fn way(&mut self, side: Side) -> &mut Way {
        match side {
            Side::Request => &mut self.request,
            Side::Response => &mut self.response,
        }
    }

    /// Sends a head on, as its callbacks changed it. The head cannot be changed any more.
    fn release(&mut self, vm: &mut Vm, side: Side) {
        if self.way(side).released.is_some() {
            return;
        }
        let mut head = Vec::new();
        self.show(vm, |shown| {
            let way = &mut shown.ways[side as usize];
            way.headers_open = false;
            head.clone_from(&way.headers);
        });
        if side == Side::Response {
            (self.got.status, self.got.headers) = split(&head);
        }
        self.way(side).released = Some(head);
    }

    fn end(&mut self, vm: &mut Vm, side: Side) {
        self.way(side).ended = true;
        match side {
            Side::Request => {
                let head = self.request.released.clone().unwrap_or_default();
                let text = |name| value(&head, name).unwrap_or_default().to_owned();
                let body = std::mem::take(&mut self.request.body);
                if let Some(length) = value(&head, "content-length") {
                    assert_eq!(length, body.len().to_string(), "the request's content-length");
                }
                self.got.upstream.push(Seen {
                    method: text(":method"),
                    path: text(":path"),
                    headers: head.into_iter().filter(|(name, _)| !name.starts_with(':')).collect(),
                    bytes: body.len(),
                    body: body.into(),
                });
            }
            Side::Response => {
                if let Some(length) = self.got.header("content-length") {
                    let size = self.response.body.len().to_string();
                    assert_eq!(length, size, "the answer's content-length");
                }
                self.finish(vm, End::Complete);
            }
        }
    }

    fn too_large(&mut self, vm: &mut Vm, side: Side) {
        let (status, details, text) = match side {
            Side::Request => (413, "request_payload_too_large", "Payload Too Large"),
            Side::Response => (500, "response_payload_too_large", "Internal Server Error"),
        };
        let local = Local {
            status,
            details: details.to_owned(),
            headers: Vec::new(),
            body: text.as_bytes().to_vec(),
        };
        self.show(vm, |shown| shown.local = Some(local));
        self.settle(vm);
    }

    /// Executes the actions that waited for the end of the callback. Returns true if the stream is
    /// over.
    fn settle(&mut self, vm: &mut Vm) -> bool {
        if self.over {
            return true;
        }
        let Some(shown) = vm.world_mut().streams.get_mut(&self.id) else {
            // A hostcall has ended the stream, and has already informed the filter.
            self.over = true;
            self.got.end = End::Aborted;
            return true;
        };
        let (local, close) = (shown.local.take(), std::mem::take(&mut shown.close));
        if let Some(local) = local {
            self.answer(vm, local);
            return true;
        }
        if close {
            self.finish(vm, End::Aborted);
            return true;
        }
        false
    }

    fn answer(&mut self, vm: &mut Vm, local: Local) {
        if self.response.released.is_some() {
            // The client already has a head, so the stream is reset.
            self.finish(vm, End::Aborted);
            return;
        }
        let begun = self.request.ended && self.has_response(vm);
        let mut head = vec![(":status".to_owned(), local.status.to_string())];
        head.extend(local.headers);
        let plain = value(&head, "content-type").is_none();
        if plain && !local.body.is_empty() {
            head.push(("content-type".to_owned(), "text/plain".to_owned()));
        }
        if begun {
            (self.got.status, self.got.headers) = split(&head);
            self.got.body = local.body;
        } else {
            // A local response from a request's callback passes the response callbacks, like any
            // response.
            let count = head.len() as u32;
            let empty = local.body.is_empty();
            self.show(vm, |shown| shown.details = local.details);
            self.open(vm, Side::Response, head);
            let result = self.call(vm, "proxy_on_response_headers", count, empty);
            assert_eq!(result, 0, "an answer of its own is not held");
            self.release(vm, Side::Response);
            if !empty {
                let size = local.body.len() as u32;
                self.show(vm, |shown| shown.ways[1].buffer = Some(local.body));
                let result = self.call(vm, "proxy_on_response_body", size, true);
                assert_eq!(result, 0, "an answer of its own is not held");
                let mut left = None;
                self.show(vm, |shown| left = shown.ways[1].buffer.take());
                self.got.body = left.unwrap_or_default();
            }
        }
        self.finish(vm, End::Complete);
    }

    fn has_response(&self, vm: &Vm) -> bool {
        let shown = vm.world().streams.get(&self.id);
        shown.is_some_and(|shown| !shown.ways[1].headers.is_empty())
    }

    fn finish(&mut self, vm: &mut Vm, end: End) {
        self.over = true;
        self.got.end = end;
        vm.in_context(self.id);
        vm.call::<u32, ()>("proxy_on_log", self.id).expect("no trap");
        vm.call::<u32, u32>("proxy_on_done", self.id).expect("no trap");
        vm.call::<u32, ()>("proxy_on_delete", self.id).expect("no trap");
        vm.world_mut().streams.remove(&self.id);
    }
}

fn split(head: &[Header]) -> (u16, Vec<Header>) {
    let status = value(head, ":status").and_then(|text| text.parse().ok()).unwrap_or_default();
    (status, head.iter().filter(|(name, _)| !name.starts_with(':')).cloned().collect())
}
