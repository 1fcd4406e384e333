//! Stream of an answer for the client, pulled by JavaScript: see `stream.js`.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;
use worker::js_sys::{Promise, Uint8Array};
use worker::wasm_bindgen_futures::future_to_promise;
use worker::web_sys::ReadableStream;

use crate::gone::Client;

#[wasm_bindgen(raw_module = "./stream.js")]
extern "C" {
    #[wasm_bindgen(js_name = streamOf)]
    fn stream_of(source: Source) -> ReadableStream;
}

/// Answer that is read chunk by chunk.
pub(crate) trait Pieces {
    /// Polls for the answer's next chunk; `None` at the end of the answer.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>>;
}

/// Returns the answer as a JavaScript stream for the client.
pub(crate) fn stream(client: &Client, answer: Box<dyn Pieces>) -> ReadableStream {
    let pulled = Rc::new(RefCell::new(Pulled { answer: Some(answer), pulling: None }));
    let read = Rc::downgrade(&pulled);
    client.on_leaving(move || {
        if let Some(read) = read.upgrade() {
            cancel(&read);
        }
    });
    stream_of(Source(pulled))
}

/// Drops the answer of a client that has disconnected.
fn cancel(pulled: &RefCell<Pulled>) {
    let Ok(mut state) = pulled.try_borrow_mut() else { return };
    let (answer, pulling) = (state.answer.take(), state.pulling.take());
    drop(state);
    drop(answer);
    // The runtime would keep a pull for ever if nothing woke it.
    if let Some(pulling) = pulling {
        pulling.wake();
    }
}

/// Source of the client's response body, from which `stream.js` pulls chunks.
#[wasm_bindgen]
pub struct Source(Rc<RefCell<Pulled>>);

struct Pulled {
    /// Answer to read from; `None` once the answer is over or was given up.
    answer: Option<Box<dyn Pieces>>,
    /// Waker of the pull that waits for a chunk.
    pulling: Option<Waker>,
}

impl Pulled {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        let Some(answer) = &mut self.answer else { return Poll::Ready(None) };
        let piece = answer.poll_piece(context);
        match &piece {
            Poll::Pending => self.pulling = Some(context.waker().clone()),
            Poll::Ready(Some(_)) => {}
            Poll::Ready(None) => self.answer = None,
        }
        piece
    }
}

#[wasm_bindgen]
impl Source {
    /// Returns a promise of the answer's next chunk, or of `undefined` at the end.
    pub fn pull(&self) -> Promise {
        let state = Rc::clone(&self.0);
        future_to_promise(async move {
            // A poll never calls `pull` or `cancel`. If it did, the stream would wait.
            let poll = |context: &mut Context<'_>| {
                state.try_borrow_mut().map_or(Poll::Pending, |mut state| state.poll(context))
            };
            let piece = poll_fn(poll).await;
            Ok(piece.map_or(JsValue::UNDEFINED, |piece| Uint8Array::from(piece.as_slice()).into()))
        })
    }

    /// Ends the answer, because the client has disconnected.
    pub fn cancel(&self) {
        cancel(&self.0);
    }
}
