//! HTTP server of the demo model: routing of paths, and sending of answers.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::serve::ListenerExt as _;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::check::{self, Refusal};
use crate::record::{Ended, Record};
use crate::script::{Answer, End, Script};
use crate::wire::Head;
use crate::{Options, fault, plan, responses};

/// State of one running server.
#[derive(Debug)]
pub(crate) struct Model {
    options: Options,
    pub(crate) record: Record,
    pub(crate) script: Script,
}

impl Model {
    pub(crate) fn new(options: Options) -> Self {
        let record = Record::new(options.requests_max, options.recorded_bytes_max);
        Self { options, record, script: Script::default() }
    }
}

pub(crate) async fn serve(listener: TcpListener, model: Arc<Model>) -> io::Result<()> {
    let router = Router::new().fallback(handle).with_state(model);
    // Without `nodelay`, the kernel holds small pieces back and joins them.
    let listener = listener.tap_io(|connection| drop(connection.set_nodelay(true)));
    axum::serve(listener, router).await
}

async fn handle(State(model): State<Arc<Model>>, request: Request) -> Result<Response, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        return Ok(plain(StatusCode::BAD_REQUEST, "the request was cut"));
    };
    let path = head.uri.path().to_owned();
    if let Some(word) = path.strip_prefix("/demo/") {
        return Ok(control(&model, &head.method, word, head.uri.query(), &body));
    }
    let whole_path = head.uri.path_and_query().map_or(path.as_str(), |path| path.as_str());
    let number = model.record.add(head.method.as_str(), whole_path, &head.headers, &body);
    let authorization = head.headers.get(header::AUTHORIZATION);
    let answer = match model.script.take(&path, &body) {
        Some(answer) if answer.words.is_empty() => answer,
        scripted => {
            let words = scripted.as_ref().map(|answer| answer.words.as_str());
            generated(&model, &head.method, &path, authorization, &body, words)
        }
    };
    Ok(send(model, number, answer).await)
}

/// Handles `/demo/…`, the paths by which tests read and set the server's state.
fn control(
    model: &Model,
    method: &Method,
    word: &str,
    query: Option<&str>,
    body: &[u8],
) -> Response {
    match (method.as_str(), word) {
        ("GET", "requests") => {
            // `?contains=WORD`: only the requests whose body has this word.
            let word = query.and_then(|query| query.strip_prefix("contains=")).unwrap_or_default();
            let mut requests = model.record.all();
            requests.retain(|request| request.body.contains(word));
            own_json(StatusCode::OK, &json!({ "requests": requests }))
        }
        ("DELETE", "requests") => {
            model.record.clear();
            own_json(StatusCode::OK, &json!({"requests": []}))
        }
        ("POST", "script") => match Script::read(body) {
            Ok(answers) => {
                let count = answers.len();
                model.script.add(answers);
                own_json(StatusCode::OK, &json!({ "added": count }))
            }
            Err(error) => plain(StatusCode::BAD_REQUEST, &error),
        },
        ("DELETE", "script") => {
            model.script.clear();
            own_json(StatusCode::OK, &json!({"added": 0}))
        }
        ("GET", "health") => plain(StatusCode::OK, "ok"),
        _ => plain(StatusCode::NOT_FOUND, "see docs/dev/demo-model.md for the paths under /demo/"),
    }
}

fn generated(
    model: &Model,
    method: &Method,
    path: &str,
    authorization: Option<&HeaderValue>,
    body: &[u8],
    words: Option<&str>,
) -> Answer {
    let sent = authorization.and_then(|value| value.to_str().ok());
    if let Some(key) = &model.options.key
        && sent.and_then(|sent| sent.strip_prefix("Bearer ")) != Some(key)
    {
        return refuse(Refusal {
            status: 401,
            code: Some("invalid_api_key"),
            ..Refusal::invalid("Incorrect API key provided.")
        });
    }
    if method == Method::GET && path.ends_with("/models") {
        let models = model.options.models.iter();
        let list: Vec<Value> = models.map(|name| model_object(name)).collect();
        return Answer::json(200, json!({"object": "list", "data": list}).to_string());
    }
    if let (&Method::GET, Some((_, name))) = (method, path.split_once("/models/")) {
        if model.options.models.iter().any(|known| known == name) {
            return Answer::json(200, model_object(name).to_string());
        }
        let message = format!("The model '{name}' does not exist");
        let code = Some("model_not_found");
        return refuse(Refusal { status: 404, code, ..Refusal::invalid(message) });
    }
    let Some(api) = Api::at(path) else {
        let message = format!("Invalid URL ({method} {path})");
        return refuse(Refusal { status: 404, ..Refusal::invalid(message) });
    };
    if method != Method::POST {
        let message = format!(
            "Not allowed to {method} on {path} (HINT: Perhaps you meant to use a different HTTP method?)"
        );
        let code = Some("method_not_supported");
        return refuse(Refusal { status: 405, code, ..Refusal::invalid(message) });
    }
    match api.answer(model, body, words) {
        Ok(mut answer) => {
            let id = plan::id("req_", plan::hash(body), 1 << 17);
            answer.headers.push(("x-request-id".to_owned(), id));
            answer
        }
        Err(refusal) => refuse(refusal),
    }
}

/// API that a request path belongs to.
#[derive(Clone, Copy)]
enum Api {
    Chat,
    Responses,
    InputTokens,
}

impl Api {
    fn at(path: &str) -> Option<Self> {
        let served = [
            ("/chat/completions", Self::Chat),
            ("/responses", Self::Responses),
            ("/responses/input_tokens", Self::InputTokens),
        ];
        served.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, api)| api)
    }

    fn answer(self, model: &Model, body: &[u8], words: Option<&str>) -> Result<Answer, Refusal> {
        let read: Map<String, Value> = serde_json::from_slice(body).map_err(|error| {
            Refusal::invalid(format!("We could not parse the JSON body of your request. ({error})"))
        })?;
        let longest = model.options.id_length_max;
        match self {
            Self::Chat => chat(&read, body, words, longest),
            Self::Responses => responses::answer(&read, body, words, longest),
            Self::InputTokens => responses::count(&read, body, longest),
        }
    }
}

fn chat(
    read: &Map<String, Value>,
    body: &[u8],
    words: Option<&str>,
    id_length_max: usize,
) -> Result<Answer, Refusal> {
    check::request(read, id_length_max)?;
    let seed = plan::hash(body);
    let plan = plan::plan(read, seed, words).map_err(Refusal::invalid)?;
    let stream = read.get("stream") == Some(&Value::Bool(true));
    let include_usage = read.get("stream_options").and_then(|options| options.get("include_usage"));
    let head = Head {
        id: plan::id("chatcmpl-", seed, 1 << 16),
        model: read.get("model").and_then(Value::as_str).unwrap_or_default().to_owned(),
        prompt_tokens: plan::input_tokens(body),
        include_usage: include_usage == Some(&Value::Bool(true)),
    };
    Ok(fault::answer(&plan, &head, stream))
}

fn refuse(refusal: Refusal) -> Answer {
    Answer::json(refusal.status, refusal.json())
}

fn model_object(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": plan::CREATED, "owned_by": "creole"})
}

/// Sends an answer with its pieces and delays, and records how the answer ended.
async fn send(model: Arc<Model>, number: u64, answer: Answer) -> Response {
    let mut gone = Gone { model: &model, number, answered: false };
    if answer.delay_ms > 0 {
        // A client that goes away now drops this future, and `gone` notes it.
        tokio::time::sleep(Duration::from_millis(answer.delay_ms)).await;
    }
    gone.answered = true;
    drop(gone);
    model.record.answered(number, answer.status);
    let mut response = Response::new(Body::empty());
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().append(name, value);
        }
    }
    let (pieces, body) = mpsc::channel::<io::Result<Bytes>>(1);
    *response.body_mut() = Body::from_stream(ReceiverStream::new(body));
    tokio::spawn(async move {
        let ended = tokio::select! {
            () = pieces.closed() => Ended::ClientGone,
            ended = produce(&pieces, answer) => ended,
        };
        model.record.ended(number, ended);
    });
    response
}

async fn produce(pieces: &mpsc::Sender<io::Result<Bytes>>, answer: Answer) -> Ended {
    for piece in answer.pieces {
        // A pause, however short, lets the server write what it has before the next piece.
        match piece.delay_ms {
            0 => tokio::task::yield_now().await,
            ms => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
        let bytes = Bytes::from(piece.into_bytes());
        if !bytes.is_empty() && pieces.send(Ok(bytes)).await.is_err() {
            return Ended::ClientGone;
        }
    }
    match answer.end {
        End::Complete => Ended::Complete,
        End::Abort => {
            // Written bytes need time to leave before the connection is cut.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let _ = pieces.send(Err(io::ErrorKind::ConnectionAborted.into())).await;
            Ended::Aborted
        }
        End::Hang => std::future::pending().await,
    }
}

/// Guard that records a client's disconnect before the head was sent.
struct Gone<'a> {
    model: &'a Model,
    number: u64,
    answered: bool,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.model.record.ended(self.number, Ended::ClientGone);
        }
    }
}

fn plain(status: StatusCode, text: &str) -> Response {
    own(status, "text/plain; charset=utf-8", format!("{text}\n"))
}

fn own_json(status: StatusCode, body: &Value) -> Response {
    own(status, "application/json", body.to_string())
}

fn own(status: StatusCode, content_type: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
