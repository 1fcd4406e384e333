//! Collection of a request body from the client, chunk by chunk, with the bytes counted as they
//! arrive.

use std::cell::{Cell, RefCell};
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use creole::{Failure, Pace};
use wasm_bindgen::JsCast as _;
use worker::js_sys::Uint8Array;
use worker::wasm_bindgen_futures::JsFuture;

use crate::environment::now;
use crate::incoming::Incoming;
use crate::live::Live;
use crate::timer::Timer;

/// Request body that is being collected: its source, and the bytes so far.
struct Collecting {
    body: Incoming,
    bytes: RefCell<Vec<u8>>,
    /// True if the request was given up to free memory for other requests.
    given_up: Cell<bool>,
}

impl Collecting {
    /// Gives up the request: frees the collected bytes and stops the reading. Called in the context
    /// of another request; the runtime resumes the waiting task in the task's own context.
    fn give_up(&self) {
        self.given_up.set(true);
        self.bytes.take();
        self.body.stop();
    }

    fn append(&self, piece: &Uint8Array) {
        let mut bytes = self.bytes.borrow_mut();
        let from = bytes.len();
        bytes.resize(from.saturating_add(piece.length() as usize), 0);
        if let Some(end) = bytes.get_mut(from..) {
            piece.copy_to(end);
        }
    }
}

/// Guard that stops reading the body when it is dropped.
struct Reading(Rc<Collecting>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.body.stop();
    }
}

/// Collects a request body, within the limits for one request and for all requests together. On
/// failure, returns the unread body with the error.
pub(crate) async fn collect(
    live: &Live,
    body: Option<Incoming>,
) -> Result<Vec<u8>, (Failure, Option<Incoming>)> {
    let Some(body) = body else {
        live.complete();
        return Ok(Vec::new());
    };
    let (bytes, given_up) = (RefCell::default(), Cell::default());
    let collecting = Rc::new(Collecting { body, bytes, given_up });
    let given_up = Rc::clone(&collecting);
    live.collect(move || given_up.give_up());
    let read = read(live, &Reading(Rc::clone(&collecting))).await;
    live.complete();
    let bytes = collecting.bytes.take();
    match read {
        Ok(()) => Ok(bytes),
        Err(failure) => Err((failure, Rc::into_inner(collecting).map(|it| it.body))),
    }
}

async fn read(live: &Live, Reading(collecting): &Reading) -> Result<(), Failure> {
    let settings = &live.exchange.config().settings;
    let mut pace = Pace::start(settings, now());
    let mut timer = Timer::default();
    let mut length = 0_usize;
    loop {
        let mut read = JsFuture::from(collecting.body.read());
        let piece = poll_fn(|context: &mut Context<'_>| match Pin::new(&mut read).poll(context) {
            Poll::Ready(piece) => Poll::Ready(Some(piece)),
            Poll::Pending => timer.poll(Some(pace.end(length)), context).map(|()| None),
        });
        let piece: Uint8Array = match piece.await {
            _ if collecting.given_up.get() => return Err(Failure::Overloaded),
            None => return Err(Failure::RequestTooSlow),
            Some(Err(_)) => return Err(Failure::RequestIncomplete),
            Some(Ok(piece)) if piece.is_undefined() => return Ok(()),
            Some(Ok(piece)) => piece.unchecked_into(),
        };
        let bytes = piece.length() as usize;
        length = length.saturating_add(bytes);
        if length > settings.request_bytes_max {
            return Err(Failure::RequestTooLarge);
        }
        live.count(length)?;
        collecting.append(&piece);
        if !pace.goes_on(bytes, length, now()) {
            return Err(Failure::RequestTooSlow);
        }
    }
}
