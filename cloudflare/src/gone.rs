//! Detection of clients that disconnect: `request.signal`, with the compatibility flag
//! `enable_request_signal`.
//!
//! The runtime drops a request whose client is gone, and never polls it again. So the exchange must
//! end in the callback of the signal, or it would stay in the isolate for ever.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;
use worker::js_sys::Reflect;
use worker::web_sys::{AbortSignal, Request};

/// Connection state of the client of one request.
pub(crate) struct Client {
    signal: Option<AbortSignal>,
    state: Rc<State>,
    /// Callback of the abort signal, kept alive as long as the signal may call it.
    _listener: Closure<dyn FnMut()>,
}

#[derive(Default)]
struct State {
    gone: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    /// Function that ends the stream of the answer to the client.
    end: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl State {
    fn leave(&self) {
        self.gone.set(true);
        let (waker, end) = (self.waker.take(), self.end.take());
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some(end) = end {
            end();
        }
    }
}

impl Client {
    pub(crate) fn of(request: &Request) -> Self {
        let state = Rc::<State>::default();
        let told = Rc::clone(&state);
        let listener = Closure::new(move || told.leave());
        // Without the compatibility flag, a request has no signal.
        let signal = Reflect::get(request, &"signal".into()).ok();
        let signal = signal.and_then(|signal| signal.dyn_into::<AbortSignal>().ok());
        if let Some(signal) = &signal {
            signal.set_onabort(Some(listener.as_ref().unchecked_ref()));
        }
        Self { signal, state, _listener: listener }
    }

    /// Waits for `answer`. Returns `None` if the client disconnects first.
    pub(crate) async fn wait<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = pin!(answer);
        poll_fn(|context| match self.poll_gone(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => answer.as_mut().poll(context).map(Some),
        })
        .await
    }

    /// Sets the function that ends the client's stream when the client disconnects, because no task
    /// may be waiting for the stream's next chunk then.
    pub(crate) fn on_leaving(&self, end: impl FnOnce() + 'static) {
        self.state.end.replace(Some(Box::new(end)));
    }

    fn poll_gone(&self, context: &Context<'_>) -> Poll<()> {
        if self.state.gone.get() {
            return Poll::Ready(());
        }
        self.state.waker.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(signal) = &self.signal {
            signal.set_onabort(None);
        }
    }
}
