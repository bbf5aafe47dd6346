//! A model provider with faults: the scripted upstream with every kind of faulty response of a chat
//! completions server.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::record::ModelCall;
use crate::support::fake_provider::fault;
use crate::support::fake_provider::script::{ResponseScript, text_event};
use crate::support::fake_provider::server::FakeProvider;
use crate::{facts, speaker_choices, text_keys};

/// The percentage of faulty responses.
const FAULT_PERCENT: u32 = 20;

/// The provider, and the complete texts that it has sent.
pub struct Model {
    pub upstream: FakeProvider,
    sent: Arc<Mutex<RepliesSent>>,
}

#[derive(Default)]
struct RepliesSent {
    texts: Vec<String>,
    n_of_memory: usize,
    n_faults: usize,
    n_choices: usize,
    calls: Vec<ModelCall>,
}

impl Model {
    /// Starts the provider; its responses are random.
    pub async fn start(seed: u64) -> Model {
        let upstream = FakeProvider::start().await;
        let sent = Arc::<Mutex<RepliesSent>>::default();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut n = 0;
        let note = Arc::clone(&sent);
        upstream.answer_with(move |request| {
            n += 1;
            let of_memory = facts::extraction(request, n).or_else(|| facts::summary(request, n));
            note.lock().n_of_memory += usize::from(of_memory.is_some());
            let offered = speaker_choices::offered(request);
            note.lock().n_choices += usize::from(offered.is_some());
            if rng.random_range(0..100) < FAULT_PERCENT {
                note.lock().n_faults += 1;
                return faulty_response(&mut rng, n);
            }
            if let Some(script) = of_memory {
                return script;
            }
            let whispers = text_keys::whispers_in(&request.to_string());
            if let Some(names) = offered {
                let key = speaker_choices::reason(n);
                note.lock().calls.push(ModelCall { key, whispers });
                return speaker_choices::answer(&mut rng, &names, n);
            }
            let text = reply(&mut rng, n);
            let key = text_keys::reply(n);
            let mut sent = note.lock();
            sent.calls.push(ModelCall { key, whispers });
            sent.texts.push(text.clone());
            slowly(&mut rng, &text)
        });
        Model { upstream, sent }
    }

    /// Returns every text that it was scripted to send completely.
    pub fn sent_texts(&self) -> Vec<String> {
        self.sent.lock().texts.clone()
    }

    /// Returns the number of requests for replies.
    pub fn n_calls(&self) -> usize {
        let sent = self.sent.lock();
        self.upstream.n_requests() - sent.n_of_memory - sent.n_choices
    }

    /// Returns the number of requests to choose a speaker.
    pub fn n_choices(&self) -> usize {
        self.sent.lock().n_choices
    }

    /// Returns the requests that got a right response: for a reply, or to choose a speaker.
    pub fn calls(&self) -> Vec<ModelCall> {
        self.sent.lock().calls.clone()
    }

    /// Returns the number of faulty responses.
    pub fn n_faults(&self) -> usize {
        self.sent.lock().n_faults
    }
}

/// Returns a unique text.
fn reply(rng: &mut ChaCha8Rng, n: usize) -> String {
    let words = [
        "the", "stage", "is", "dark", "and", "a", "lamp", "burns", "🎭", "low",
    ];
    let n_words = rng.random_range(4..16);
    let words = (0..n_words).map(|_| words[rng.random_range(0..words.len())]);
    format!(
        "{} {}",
        text_keys::reply(n),
        words.collect::<Vec<_>>().join(" ")
    )
}

/// Sends the text word by word at a random pace.
fn slowly(rng: &mut ChaCha8Rng, text: &str) -> ResponseScript {
    let pace = Duration::from_millis(rng.random_range(0..70));
    let begun = ResponseScript::stream().role();
    let words = text.split_inclusive(' ');
    let spoken = words.fold(begun, |script, word| script.text(word).pause(pace));
    spoken.finish("stop").usage(7, 9).done()
}

/// One of the faults U1 to U35; half of them are drawn from the list shared with other tests.
fn faulty_response(rng: &mut ChaCha8Rng, n: usize) -> ResponseScript {
    let text = format!("odd{n} and not to be trusted");
    let begun = ResponseScript::stream().role();
    let whole = |script: ResponseScript| script.finish("stop").usage(7, 9).done();
    match rng.random_range(0..36) {
        0 => ResponseScript::status(401),
        1 => ResponseScript::status(404),
        2 => ResponseScript::status(302)
            .header("Location", "http://169.254.169.254/latest/meta-data"),
        3 => begun.forever(text_event(""), Duration::from_millis(100)),
        4 => whole(
            ResponseScript::stream()
                .event(&json!({"choices": []}))
                .role()
                .words(&text),
        ),
        5 => whole(bytewise(begun, &text)),
        6 => odd_frames(&text),
        7 => whole(begun.words(&text))
            .done()
            .raw(text_event("after the end")),
        8 => begun.words(&text).finish("length").done(),
        9 => begun.words(&text).finish("content_filter").done(),
        10 => begun.words(&text).finish("tool_calls").done(),
        11 => begun.raw(vec![b'x'; 2 * 1024 * 1024]),
        12 => ResponseScript::stream().forever("d", Duration::from_millis(900)),
        13 => ResponseScript::stream()
            .header("Content-Encoding", "gzip")
            .raw([0x1f, 0x8b, 8, 0]),
        14 => begun
            .event(&json!({"choices": [{"delta": {"content": null}}]}))
            .words(&text),
        15 => begun.event(&json!({"choices": [{"delta": {"content": [1, {"a": []}]}}]})),
        16 => begun.event(&json!({"choices": 7})).words(&text),
        17 => whole(begun.words(&format!("{text} \u{0}\u{202e}\u{1b}[31m"))),
        18 => whole(begun.words("Bob: data: [DONE] <script>alert(1)</script>")),
        19 => ResponseScript::stream()
            .header("X-Big", &"a".repeat(100_000))
            .role()
            .words(&text),
        20 => whole(ResponseScript::json(200, &json!({"choices": []}))),
        21 => whole(begun.comment().empty().words(&text)),
        _ => fault::draw(rng),
    }
}

/// The text in events that are split at every byte.
fn bytewise(script: ResponseScript, text: &str) -> ResponseScript {
    let events: Vec<u8> = text.split_inclusive(' ').flat_map(text_event).collect();
    events
        .into_iter()
        .fold(script, |script, byte| script.raw([byte]))
}

/// A stream without spaces after colons, with CRLF, a byte order mark, and event names.
fn odd_frames(text: &str) -> ResponseScript {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    ResponseScript::stream()
        .raw("\u{feff}")
        .raw(format!("event: message\r\ndata:{chunk}\r\n\r\n"))
        .raw(format!("id: 7\r\ndata:{end}\r\n\r\ndata:[DONE]\r\n\r\n"))
}
