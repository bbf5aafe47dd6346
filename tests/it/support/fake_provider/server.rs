//! The fake provider's server: listens, chooses the script of each request, and records what
//! happens.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::connection::{Connection, PlayedScript};
use super::fault;
use super::request_log::{RequestLog, RequestLogs};
use super::script::{HoldPoint, ResponseScript};

/// The maximum number of concurrent connections; more clients have to wait.
const MAX_CONNECTIONS: usize = 4_096;

type TokenCounter = Box<dyn Fn(&str) -> usize + Send>;
type Answerer = Box<dyn FnMut(&Value) -> ResponseScript + Send>;

/// A provider for tests. Dropping it closes every connection.
pub struct FakeProvider {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    facts: RequestLogs,
    plan: Mutex<Plan>,
}

/// The scripts of later requests.
struct Plan {
    next: VecDeque<ResponseScript>,
    otherwise: Answerer,
    gate: Option<HoldPoint>,
    models: Vec<String>,
    /// Answers of `GET`, by path.
    documents: HashMap<String, Value>,
    /// Counts the tokens of a text for the APIs that do so.
    token_counter: Option<TokenCounter>,
}

impl FakeProvider {
    /// Listens on a free local port, and replies "Hello." unless a script is set.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let plan = Plan {
            next: VecDeque::new(),
            otherwise: Box::new(|_| ResponseScript::say("Hello.")),
            gate: None,
            models: vec!["scripted".to_owned()],
            documents: HashMap::new(),
            token_counter: None,
        };
        let shared = Arc::new(Shared {
            facts: RequestLogs::new(),
            plan: Mutex::new(plan),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Returns the base URL for a provider's settings.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// Returns the URL without a path, for APIs with other path prefixes.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the local port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers every request with this text.
    pub fn reply_with(&self, text: &str) {
        self.always(ResponseScript::say(text));
    }

    /// Answers every request with this script.
    pub fn always(&self, script: ResponseScript) {
        self.answer_with(move |_| script.clone());
    }

    /// Chooses the script of every request by its JSON body.
    pub fn answer_with(&self, answerer: impl FnMut(&Value) -> ResponseScript + Send + 'static) {
        self.plan(|plan| plan.otherwise = Box::new(answerer));
    }

    /// Answers one request with this script, after the scripts that were added earlier.
    pub fn next(&self, script: ResponseScript) {
        self.plan(|plan| plan.next.push_back(script));
    }

    /// Injects faults into this percentage of the responses; the same seed and order give the same
    /// faults.
    pub fn inject_faults(&self, seed: u64, percent: u32) {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        self.plan(|plan| {
            let otherwise: Answerer = Box::new(|_| ResponseScript::say("Hello."));
            let mut otherwise = std::mem::replace(&mut plan.otherwise, otherwise);
            plan.otherwise = Box::new(move |body| {
                let is_spoilt = dice.random_range(0..100) < percent;
                if is_spoilt {
                    fault::draw(&mut dice)
                } else {
                    otherwise(body)
                }
            });
        });
    }

    /// From now on each text chunk waits for this gate, except in scripts with a gate.
    pub fn gate(&self) -> HoldPoint {
        let gate = HoldPoint::closed();
        self.plan(|plan| plan.gate = Some(gate.clone()));
        gate
    }

    /// Sets the models that `GET /v1/models` lists.
    pub fn models(&self, names: &[&str]) {
        self.plan(|plan| plan.models = names.iter().map(|it| (*it).to_owned()).collect());
    }

    /// Answers `GET` of this path with a document.
    pub fn document(&self, path: &str, document: Value) {
        self.plan(|plan| {
            plan.documents.insert(path.to_owned(), document);
        });
    }

    /// Answers requests for token counts of llama.cpp and KoboldCpp. Without a counter, they get 404.
    pub fn count_tokens_with(&self, counter: impl Fn(&str) -> usize + Send + 'static) {
        self.plan(|plan| plan.token_counter = Some(Box::new(counter)));
    }

    /// Returns the number of completion requests so far.
    pub fn n_requests(&self) -> usize {
        self.shared.facts.n_requests()
    }

    /// Returns the log of a request, numbered from 0.
    pub fn seen(&self, i: usize) -> RequestLog {
        self.shared.facts.seen(i)
    }

    /// Returns the JSON body of a request.
    pub fn body(&self, i: usize) -> Value {
        self.seen(i).body
    }

    /// Waits until `n` requests have arrived in total.
    pub async fn wait_for_requests(&self, n: usize) {
        self.shared.facts.wait_for_requests(n).await;
    }

    /// Waits until `n` text chunks of this response were sent.
    pub async fn wait_for_texts(&self, i: usize, n_texts: usize) {
        self.shared.facts.wait_for_texts(i, n_texts).await;
    }

    /// Waits until the client disconnects before the response is complete.
    pub async fn wait_for_disconnect(&self, i: usize) -> Instant {
        self.shared.facts.wait_for_disconnect(i).await
    }

    /// Waits until this response was played to its end.
    pub async fn finished(&self, i: usize) -> Instant {
        self.shared.facts.finished(i).await
    }

    fn plan(&self, change: impl FnOnce(&mut Plan)) {
        change(
            &mut self
                .shared
                .plan
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    for number in 0.. {
        while connections.try_join_next().is_some() {}
        if connections.len() >= MAX_CONNECTIONS {
            connections.join_next().await;
        }
        if let Ok((socket, _)) = listener.accept().await {
            connections.spawn(serve(socket, number, Arc::clone(&shared)));
        }
    }
}

/// The completion paths of the supported APIs.
fn answers(path: &str) -> bool {
    let known = [
        "/v1/chat/completions",
        "/v1/messages",
        "/api/chat",
        "/v1/completions",
        "/completion",
        "/api/extra/generate/stream",
    ];
    known.contains(&path) || path.ends_with(":streamGenerateContent")
}

/// The paths of their model lists.
fn lists(path: &str) -> bool {
    ["/v1/models", "/v1beta/models", "/api/tags"].contains(&path)
}

async fn serve(socket: TcpStream, number: usize, shared: Arc<Shared>) {
    let _ = socket.set_nodelay(true);
    let mut connection = Connection::new(socket);
    while let Some(received) = connection.receive().await {
        let path = received.path.split('?').next().unwrap_or_default();
        let played = match (received.method.as_str(), path) {
            ("POST", path) if answers(path) => {
                let script = shared.script(&received.body);
                let i = shared.facts.came(number, received);
                let on_text = || shared.facts.note(i, |seen| seen.n_texts += 1);
                let played = connection.play(&script, on_text).await;
                shared.note_end(i, played);
                played
            }
            ("GET", path) if shared.document(path).is_some() => {
                let document = shared.document(path).unwrap_or_default();
                connection
                    .play(&ResponseScript::json(200, &document), || ())
                    .await
            }
            ("POST", path) if shared.count_tokens(path, &received.body).is_some() => {
                let count = shared
                    .count_tokens(path, &received.body)
                    .unwrap_or_default();
                connection
                    .play(&ResponseScript::json(200, &count), || ())
                    .await
            }
            ("GET", path) if lists(path) => connection.play(&shared.models(path), || ()).await,
            _ => connection.play(&ResponseScript::status(404), || ()).await,
        };
        if played != PlayedScript::Whole {
            return;
        }
    }
}

impl Shared {
    fn script(&self, body: &Value) -> ResponseScript {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let mut script = match plan.next.pop_front() {
            Some(script) => script,
            None => (plan.otherwise)(body),
        };
        script.gate = script.gate.or_else(|| plan.gate.clone());
        script
    }

    fn document(&self, path: &str) -> Option<Value> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.documents.get(path).cloned()
    }

    fn count_tokens(&self, path: &str, body: &Value) -> Option<Value> {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = plan.token_counter.as_ref()?;
        match path {
            "/tokenize" => {
                let n_tokens = counter(body["content"].as_str()?);
                Some(json!({ "tokens": vec![0; n_tokens] }))
            }
            "/api/extra/tokencount" => Some(json!({ "value": counter(body["prompt"].as_str()?) })),
            _ => None,
        }
    }

    fn models(&self, path: &str) -> ResponseScript {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let entries =
            |entry: fn(&String) -> Value| plan.models.iter().map(entry).collect::<Value>();
        let list = match path {
            "/api/tags" => json!({ "models": entries(|it| json!({ "name": it, "model": it })) }),
            "/v1beta/models" => {
                let methods = json!(["generateContent"]);
                let entry = |it| json!({ "name": format!("models/{it}"), "supportedGenerationMethods": methods });
                json!({ "models": plan.models.iter().map(entry).collect::<Value>() })
            }
            _ => {
                json!({ "object": "list", "data": entries(|it| json!({ "id": it, "object": "model" })) })
            }
        };
        ResponseScript::json(200, &list)
    }

    fn note_end(&self, i: usize, played: PlayedScript) {
        let now = Instant::now();
        self.facts.note(i, |seen| match played {
            PlayedScript::Left => seen.hung_up_at = Some(now),
            PlayedScript::Whole | PlayedScript::Broken => seen.finished_at = Some(now),
        });
    }
}
