//! The client's body: collected in pieces, which are counted as they come.

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

/// Bytes that are collected, and what brings more of them.
struct Collecting {
    body: Incoming,
    bytes: RefCell<Vec<u8>>,
    /// True if the request was given up for others, and its bytes are free.
    given_up: Cell<bool>,
}

impl Collecting {
    /// Called in the context of another request. The runtime calls what waits for the promise in
    /// its own.
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

/// Stops reading when it is dropped, whoever drops it.
struct Reading(Rc<Collecting>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.body.stop();
    }
}

/// Collects a body, within the limits of one request and of all together. Gives it back where it is
/// not whole.
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
