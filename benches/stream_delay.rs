//! Measures how long a piece of a reply takes from the model to a reader's socket, compared with a
//! plain relay. The real binary is between a scripted model and a WebSocket client, both in this
//! process; a second path leads over a relay that only copies bytes. A piece is sent, its arrival
//! is awaited, then the next one is sent. The paths alternate (ABBA), and the ratio is the median
//! of the ratios of the rounds. Nothing is asserted, and a machine with other load gives no
//! verdict.

// A measuring program: it prints, and what goes wrong ends it.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/it/support/fake_provider/mod.rs"]
#[allow(dead_code)]
mod fake_provider;
#[path = "../tests/it/support/http_client.rs"]
#[allow(dead_code)]
mod http_client;
#[path = "stream_delay/machine.rs"]
mod machine;

use std::time::{Duration, Instant};

use futures::{SinkExt, StreamExt};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::fake_provider::script::{HoldPoint, ResponseScript};
use crate::fake_provider::server::FakeProvider;
use crate::http_client::{HttpClient, http_client, root_of};
use crate::machine::{Process, Quiet};

const ROUNDS: usize = 20;
/// No round is begun after this.
const LONGEST: Duration = Duration::from_secs(40);
/// Pieces of one reply; with slices fewer, for each of them waits for its slice.
const PIECES: usize = 9;
const PIECES_IN_SLICES: usize = 3;
/// Between two pieces.
const PACE: Duration = Duration::from_millis(8);
const STARTS: usize = 7;

/// The delay of each piece of one reply.
type Run = Vec<Duration>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if machine::relays().await {
        return;
    }
    machine::calibrate();
    let upstream = FakeProvider::start().await;
    let at_once = Process::server(tempfile::tempdir().unwrap(), "0", &upstream.base_url());
    let in_slices = Process::server(tempfile::tempdir().unwrap(), "50", &upstream.base_url());
    let relay = Process::relay(&upstream.base_url());
    let mut quiet = Quiet::new([&at_once, &in_slices, &relay]);
    let mut reader = Reader::enter(&at_once.url).await;
    let mut slice_reader = Reader::enter(&in_slices.url).await;
    let address = format!("{}/v1/chat/completions", relay.url);

    let [mut troupe, mut sliced, mut bare] = [const { Vec::new() }; 3];
    let began = Instant::now();
    // The first round warms every way up and is not counted.
    while troupe.len() <= ROUNDS && began.elapsed() < LONGEST {
        quiet.begin();
        let a = reader.hear_a_reply(&upstream, PIECES).await;
        let b = ask_the_model(&address, &upstream).await;
        let c = slice_reader.hear_a_reply(&upstream, PIECES_IN_SLICES).await;
        let d = ask_the_model(&address, &upstream).await;
        let e = reader.hear_a_reply(&upstream, PIECES).await;
        quiet.end();
        troupe.push([a, e]);
        bare.push([b, d]);
        sliced.push([c, Run::new()]);
    }

    println!("\nfrom the model to the reader        n     median        p99   ÷ relay");
    for (what, way) in [
        ("troupe", &troupe),
        ("troupe, 50 ms slices", &sliced),
        ("bare relay", &bare),
    ] {
        print_line(what, "first delta", way, &bare, |run| run.iter().take(1));
        print_line(what, "later deltas", way, &bare, |run| run.iter().skip(1));
    }
    println!(
        "target: first delta ≤ 1 ms (median), also with slices\n{}",
        quiet.verdict()
    );
    println!(
        "\nresident after {} replies: {:.1} MiB",
        2 * troupe.len(),
        at_once.resident_mib()
    );
    drop(in_slices);
    print_starts(at_once, &upstream.base_url());
}

/// One line: some of the pieces of a path, and the same pieces of the relay.
fn print_line<'a, I: Iterator<Item = &'a Duration>>(
    what: &str,
    pieces: &str,
    way: &'a [[Run; 2]],
    floor: &'a [[Run; 2]],
    some: impl Fn(&'a Run) -> I + Copy,
) {
    let round = |runs: &'a [Run; 2]| sorted(runs.iter().flat_map(some).map(ms).collect());
    let all = sorted(way[1..].iter().flat_map(round).collect());
    let rounds = way[1..].iter().zip(&floor[1..]);
    let ratios = sorted(
        rounds
            .map(|(one, other)| part(&round(one), 0.5) / part(&round(other), 0.5))
            .collect(),
    );
    let (n, median, late) = (all.len(), part(&all, 0.5), part(&all, 0.99));
    println!(
        "{what:<21} {pieces:<12} {n:>4} {median:>7.2} ms {late:>7.2} ms   {:>7.2}",
        part(&ratios, 0.5)
    );
}

/// Starts the binary again and again on the database that the replies left.
fn print_starts(mut server: Process, base_url: &str) {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        server = Process::server(server.send_away(), "0", base_url);
        times.push(ms(&server.ready_after));
    }
    let times = sorted(times);
    println!(
        "start to /readyz on an existing database: median {:.0} ms, longest {:.0} ms (target ≤ 200 ms)",
        part(&times, 0.5),
        part(&times, 1.0)
    );
    println!(
        "resident at /readyz: {:.1} MiB (target ≤ 40 MiB)",
        server.resident_mib()
    );
}

fn ms(duration: &Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn sorted(mut figures: Vec<f64>) -> Vec<f64> {
    figures.sort_by(f64::total_cmp);
    figures
}

/// The figure below which this part of the sorted ones lies.
fn part(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// What the model answers next: pieces that wait at the gate.
fn hold_a_reply(upstream: &FakeProvider, pieces: usize) -> HoldPoint {
    let gate = HoldPoint::closed();
    let script = (0..pieces).fold(ResponseScript::stream(), |script, _| {
        script.text("tick tock ")
    });
    upstream.next(script.finish("stop").usage(7, 9).done().held_at(&gate));
    gate
}

/// Asks the model over the relay; the delay of each piece.
async fn ask_the_model(address: &str, upstream: &FakeProvider) -> Run {
    let gate = hold_a_reply(upstream, PIECES);
    let request = http_client().post(address).json(&json!({"stream": true}));
    let mut answer = request.send().await.unwrap();
    let mut run = Run::new();
    for _ in 0..PIECES {
        sleep(PACE).await;
        let let_go_at = Instant::now();
        gate.step();
        answer.chunk().await.unwrap().unwrap();
        run.push(let_go_at.elapsed());
    }
    run
}

/// Someone with a conversation, who hears it at a WebSocket.
struct Reader {
    person: HttpClient,
    conversation: i64,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Reader {
    /// Makes the account and a room with one character, and subscribes.
    async fn enter(url: &str) -> Reader {
        let person = HttpClient::set_up(url, "ann").await;
        let space = person
            .create_space("The bench", json!({"user_turn_debounce_ms": 0}))
            .await;
        let character = person.create_character("Mina", None).await;
        person.add_character(&space, &character).await;
        let address = format!("{}/ws", url.replacen("http", "ws", 1));
        let mut request = address.into_client_request().unwrap();
        request
            .headers_mut()
            .insert("cookie", person.cookie().parse().unwrap());
        request.headers_mut().insert("origin", url.parse().unwrap());
        let (socket, _) = connect_async(request).await.unwrap();
        let conversation = root_of(&space);
        let mut reader = Reader {
            person,
            conversation,
            socket,
        };
        let frame = json!({"id": 1, "op": "subscribe", "conversation_id": conversation});
        reader
            .socket
            .send(Message::text(frame.to_string()))
            .await
            .unwrap();
        reader.hear("{\"re\":1,\"ok\":true").await;
        reader
    }

    /// Says something and hears the reply; the delay of each piece.
    async fn hear_a_reply(&mut self, upstream: &FakeProvider, pieces: usize) -> Run {
        let gate = hold_a_reply(upstream, pieces);
        let n_before = upstream.n_requests();
        let (status, answer) = self
            .person
            .post_message(self.conversation, "Tick?", None)
            .await;
        assert_eq!(status, 201, "{answer}");
        upstream.wait_for_requests(n_before + 1).await;
        let mut run = Run::new();
        for _ in 0..pieces {
            sleep(PACE).await;
            let let_go_at = Instant::now();
            gate.step();
            run.push(self.hear("{\"type\":\"stream_chunk\"").await - let_go_at);
        }
        self.hear("{\"type\":\"typing_stop\"").await;
        run
    }

    /// The instant at which the next frame that begins like this came.
    async fn hear(&mut self, beginning: &str) -> Instant {
        loop {
            let frame = self.socket.next().await.unwrap().unwrap();
            let heard_at = Instant::now();
            let Message::Text(text) = frame else { continue };
            assert!(!text.starts_with("{\"type\":\"run_failed\""), "{text}");
            if text.starts_with(beginning) {
                return heard_at;
            }
        }
    }
}
