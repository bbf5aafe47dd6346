//! Measures how long a chunk of a reply takes from the model to a reader's socket, compared with a
//! plain relay. The real binary is between a scripted model and a WebSocket client, both in this
//! process; a second path uses a relay that only copies bytes. A chunk is sent, its arrival is
//! awaited, then the next one is sent. The paths alternate (ABBA), and the ratio is the median of
//! the ratios of the rounds. Nothing is asserted, and results on a machine with other load are not
//! valid.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/it/support/fake_provider/mod.rs"]
#[allow(dead_code)]
mod fake_provider;
#[path = "../tests/it/support/http_client.rs"]
#[allow(dead_code)]
mod http_client;
#[path = "stream_delay/machine.rs"]
#[allow(dead_code)]
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
use crate::machine::{LoadMeter, Process};

const ROUNDS: usize = 20;
/// No round starts after this time.
const MAX_DURATION: Duration = Duration::from_secs(40);
/// The chunks of one reply; fewer with slices, because each chunk waits for its slice.
const CHUNKS: usize = 9;
const CHUNKS_IN_SLICES: usize = 3;
/// The pause between two chunks.
const PACE: Duration = Duration::from_millis(8);
const STARTS: usize = 7;

/// The delay of each chunk of one reply.
type Run = Vec<Duration>;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if machine::relay_if_selected().await {
        return;
    }
    machine::calibrate();
    let upstream = FakeProvider::start().await;
    let at_once = Process::server(tempfile::tempdir().unwrap(), "0", &upstream.base_url());
    let in_slices = Process::server(tempfile::tempdir().unwrap(), "50", &upstream.base_url());
    let relay = Process::relay(&upstream.base_url());
    let mut load = LoadMeter::new([&at_once, &in_slices, &relay]);
    let mut reader = Reader::connect(&at_once.url).await;
    let mut slice_reader = Reader::connect(&in_slices.url).await;
    let address = format!("{}/v1/chat/completions", relay.url);

    let [mut troupe, mut sliced, mut bare] = [const { Vec::new() }; 3];
    let began = Instant::now();
    // The first round is a warm-up of every path and is not counted.
    while troupe.len() <= ROUNDS && began.elapsed() < MAX_DURATION {
        load.begin();
        let a = reader.measure_reply(&upstream, CHUNKS).await;
        let b = measure_relay(&address, &upstream).await;
        let c = slice_reader
            .measure_reply(&upstream, CHUNKS_IN_SLICES)
            .await;
        let d = measure_relay(&address, &upstream).await;
        let e = reader.measure_reply(&upstream, CHUNKS).await;
        load.end();
        troupe.push([a, e]);
        bare.push([b, d]);
        sliced.push([c, Run::new()]);
    }

    println!("\nfrom the model to the reader        n     median        p99   ÷ relay");
    for (what, path) in [
        ("troupe", &troupe),
        ("troupe, 50 ms slices", &sliced),
        ("bare relay", &bare),
    ] {
        print_line(what, "first delta", path, &bare, |run| run.iter().take(1));
        print_line(what, "later deltas", path, &bare, |run| run.iter().skip(1));
    }
    println!(
        "target: first delta ≤ 1 ms (median), also with slices\n{}",
        load.verdict()
    );
    println!(
        "\nresident after {} replies: {:.1} MiB",
        2 * troupe.len(),
        at_once.resident_mib()
    );
    drop(in_slices);
    print_starts(at_once, &upstream.base_url());
}

/// Prints one line: some of the chunks of a path, compared with the same chunks of the relay.
fn print_line<'a, I: Iterator<Item = &'a Duration>>(
    what: &str,
    chunks: &str,
    path: &'a [[Run; 2]],
    relay: &'a [[Run; 2]],
    some: impl Fn(&'a Run) -> I + Copy,
) {
    let round = |runs: &'a [Run; 2]| sorted(runs.iter().flat_map(some).map(ms).collect());
    let all = sorted(path[1..].iter().flat_map(round).collect());
    let rounds = path[1..].iter().zip(&relay[1..]);
    let ratios = sorted(
        rounds
            .map(|(one, other)| quantile(&round(one), 0.5) / quantile(&round(other), 0.5))
            .collect(),
    );
    let (n, median, p99) = (all.len(), quantile(&all, 0.5), quantile(&all, 0.99));
    println!(
        "{what:<21} {chunks:<12} {n:>4} {median:>7.2} ms {p99:>7.2} ms   {:>7.2}",
        quantile(&ratios, 0.5)
    );
}

/// Restarts the binary several times on the database with the replies.
fn print_starts(mut server: Process, base_url: &str) {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        server = Process::server(server.stop(), "0", base_url);
        times.push(ms(&server.ready_after));
    }
    let times = sorted(times);
    println!(
        "start to /readyz on an existing database: median {:.0} ms, longest {:.0} ms (target ≤ 200 ms)",
        quantile(&times, 0.5),
        quantile(&times, 1.0)
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

/// The quantile of sorted figures.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * q).round() as usize]
}

/// Sets the next response of the model: chunks that wait at the hold point.
fn hold_next_reply(upstream: &FakeProvider, chunks: usize) -> HoldPoint {
    let hold_point = HoldPoint::closed();
    let script = (0..chunks).fold(ResponseScript::stream(), |script, _| {
        script.text("tick tock ")
    });
    upstream.next(
        script
            .finish("stop")
            .usage(7, 9)
            .done()
            .held_at(&hold_point),
    );
    hold_point
}

/// Calls the model through the relay; returns the delay of each chunk.
async fn measure_relay(address: &str, upstream: &FakeProvider) -> Run {
    let hold_point = hold_next_reply(upstream, CHUNKS);
    let request = http_client().post(address).json(&json!({"stream": true}));
    let mut answer = request.send().await.unwrap();
    let mut run = Run::new();
    for _ in 0..CHUNKS {
        sleep(PACE).await;
        let released_at = Instant::now();
        hold_point.step();
        answer.chunk().await.unwrap().unwrap();
        run.push(released_at.elapsed());
    }
    run
}

/// A user with a WebSocket that is subscribed to a conversation.
struct Reader {
    person: HttpClient,
    conversation: i64,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
}

impl Reader {
    /// Creates the account and a space with one character, and subscribes.
    async fn connect(url: &str) -> Reader {
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
        reader.wait_for_frame("{\"re\":1,\"ok\":true").await;
        reader
    }

    /// Posts a message and receives the reply; returns the delay of each chunk.
    async fn measure_reply(&mut self, upstream: &FakeProvider, chunks: usize) -> Run {
        let hold_point = hold_next_reply(upstream, chunks);
        let n_before = upstream.n_requests();
        let (status, answer) = self
            .person
            .post_message(self.conversation, "Tick?", None)
            .await;
        assert_eq!(status, 201, "{answer}");
        upstream.wait_for_requests(n_before + 1).await;
        let mut run = Run::new();
        for _ in 0..chunks {
            sleep(PACE).await;
            let released_at = Instant::now();
            hold_point.step();
            run.push(self.wait_for_frame("{\"type\":\"stream_chunk\"").await - released_at);
        }
        self.wait_for_frame("{\"type\":\"typing_stop\"").await;
        run
    }

    /// Waits for the next frame with this prefix; returns the instant of its arrival.
    async fn wait_for_frame(&mut self, prefix: &str) -> Instant {
        loop {
            let frame = self.socket.next().await.unwrap().unwrap();
            let received_at = Instant::now();
            let Message::Text(text) = frame else { continue };
            assert!(!text.starts_with("{\"type\":\"run_failed\""), "{text}");
            if text.starts_with(prefix) {
                return received_at;
            }
        }
    }
}
