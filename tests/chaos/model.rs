//! A model provider with faults: the scripted upstream with every kind of misbehavior that a server
//! of chat completions can show.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::support::fake_provider::fault;
use crate::support::fake_provider::script::{ResponseScript, text_event};
use crate::support::fake_provider::server::FakeProvider;

/// The percentage of answers that are faulty.
const FAULT_PERCENT: u32 = 20;

/// The provider, and what it said whole.
pub struct Model {
    pub upstream: FakeProvider,
    said: Arc<Mutex<RepliesSent>>,
}

#[derive(Default)]
struct RepliesSent {
    texts: Vec<String>,
    n_faults: usize,
}

impl Model {
    /// Listens, and answers by dice.
    pub async fn start(seed: u64) -> Model {
        let upstream = FakeProvider::start().await;
        let said = Arc::<Mutex<RepliesSent>>::default();
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let mut n = 0;
        let note = Arc::clone(&said);
        upstream.answer_with(move |_| {
            n += 1;
            if dice.random_range(0..100) < FAULT_PERCENT {
                note.lock().n_faults += 1;
                return spoilt(&mut dice, n);
            }
            let text = reply(&mut dice, n);
            note.lock().texts.push(text.clone());
            slowly(&mut dice, &text)
        });
        Model { upstream, said }
    }

    /// Every text that it was willing to say whole.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().texts.clone()
    }

    /// How many answers were spoilt.
    pub fn n_faults(&self) -> usize {
        self.said.lock().n_faults
    }
}

/// Never the same text twice.
fn reply(dice: &mut ChaCha8Rng, n: usize) -> String {
    let words = [
        "the", "stage", "is", "dark", "and", "a", "lamp", "burns", "🎭", "low",
    ];
    let n_words = dice.random_range(4..16);
    let words = (0..n_words).map(|_| words[dice.random_range(0..words.len())]);
    format!("reply{n} {}", words.collect::<Vec<_>>().join(" "))
}

/// Word by word, at a pace of its own.
fn slowly(dice: &mut ChaCha8Rng, text: &str) -> ResponseScript {
    let pace = Duration::from_millis(dice.random_range(0..70));
    let begun = ResponseScript::stream().role();
    let words = text.split_inclusive(' ');
    let spoken = words.fold(begun, |script, word| script.text(word).pause(pace));
    spoken.finish("stop").usage(7, 9).done()
}

/// One of the rows U1 to U35; half of them are drawn from the common list of the tests.
fn spoilt(dice: &mut ChaCha8Rng, n: usize) -> ResponseScript {
    let text = format!("odd{n} and not to be trusted");
    let begun = ResponseScript::stream().role();
    let whole = |script: ResponseScript| script.finish("stop").usage(7, 9).done();
    match dice.random_range(0..36) {
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
        _ => fault::draw(dice),
    }
}

/// The text in events that are split at every byte.
fn bytewise(script: ResponseScript, text: &str) -> ResponseScript {
    let events: Vec<u8> = text.split_inclusive(' ').flat_map(text_event).collect();
    events
        .into_iter()
        .fold(script, |script, byte| script.raw([byte]))
}

/// Without a blank, with CRLF, a mark at the beginning, and a name of the event.
fn odd_frames(text: &str) -> ResponseScript {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    ResponseScript::stream()
        .raw("\u{feff}")
        .raw(format!("event: message\r\ndata:{chunk}\r\n\r\n"))
        .raw(format!("id: 7\r\ndata:{end}\r\n\r\ndata:[DONE]\r\n\r\n"))
}
