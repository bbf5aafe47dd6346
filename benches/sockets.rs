//! Measures what open WebSockets cost. First 9,000 subscribed sockets without events: memory of each,
//! processor time of all, and the time until 10,000 have connected, authenticated and subscribed. Then
//! one reply is delivered to 400 sockets in deltas, 100 per second, each a frame of about 105 bytes: the
//! processor time of a delta at one socket, without and with the default slices, in relation to a
//! program that only writes a frame for each delta to as many sockets. The bare writes are measured
//! before and after the server; a ratio is the median of the ratios of the samples. Goals: at most
//! 16 KiB and 0.5 % of a core, 10,000 connected within 3 s; at most 1.5 × the bare writes without
//! slices, and 1.0 × with them.
//!
//! A server that uses its whole core merges deltas, which makes them cheaper; so the frames of each
//! delta and the cores in use are printed, too.
//!
//! Needs 10,100 open files, for which `bin/bench` raises the limit if it may. Nothing is asserted, and
//! results on a machine with other load are not valid.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "sockets/bare_writes.rs"]
mod bare_writes;
#[path = "../tests/it/support/fake_provider/mod.rs"]
#[allow(dead_code)]
mod fake_provider;
#[path = "sockets/frames.rs"]
mod frames;
#[path = "../tests/it/support/http_client.rs"]
#[allow(dead_code)]
mod http_client;
#[path = "stream_delay/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "sockets/viewer.rs"]
mod viewer;

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::fake_provider::script::ResponseScript;
use crate::fake_provider::server::FakeProvider;
use crate::http_client::{HttpClient, expect, root_of};
use crate::machine::{LoadMeter, Process, median};
use crate::viewer::{ANSWER_TIMEOUT, DELTA_MARK, Viewer};

const IDLE_SOCKETS: usize = 9_000;
const ALL_SOCKETS: usize = 10_000;
const MAX_CONCURRENT_CONNECTS: usize = 64;
/// Two pings of each socket.
const IDLE_DURATION: Duration = Duration::from_secs(41);
/// Few enough that neither program uses its whole core.
const VIEWERS: usize = 400;
const PACE: Duration = Duration::from_millis(10);
/// With the rest of its frame about 105 bytes. Contains the mark once.
const DELTA: &str =
    "and the keeper of the light counts every ship that passes the rocks before dawn ~";
const DELTAS: usize = 440;
/// The first and the last deltas of a reply are not measured, because other events are sent then.
const MEASURED_FROM: usize = 40;
const MEASURED_TO: usize = 400;
const SAMPLES: usize = 5;

fn main() {
    bare_writes::run_if_selected(PACE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        machine::calibrate();
        measure_idle_sockets().await;
        measure_deliveries().await;
    });
}

/// A server with one conversation.
struct BenchServer {
    server: Process,
    person: HttpClient,
    conversation: i64,
}

impl BenchServer {
    async fn start(upstream: &FakeProvider, slice_ms: &str) -> BenchServer {
        let limits = [
            ("LIMIT_SOCKETS_PER_USER", "20000"),
            ("LIMIT_SOCKETS_PER_ADDRESS", "20000"),
        ];
        let folder = tempfile::tempdir().unwrap();
        let server = Process::server_with(folder, slice_ms, &upstream.base_url(), &limits);
        let person = HttpClient::set_up(&server.url, "ann").await;
        let character = person.create_character("Ada", None).await;
        let space = person
            .create_space("Bench", json!({"user_turn_debounce_ms": 0}))
            .await;
        person.add_character(&space, &character).await;
        BenchServer {
            server,
            person,
            conversation: root_of(&space),
        }
    }

    /// Opens this many sockets.
    async fn connect(&self, n_sockets: usize) -> Vec<Viewer> {
        let subscribe = |_| Viewer::subscribe(&self.person, self.conversation);
        let connecting = stream::iter(0..n_sockets).map(subscribe);
        let connecting = connecting.buffer_unordered(MAX_CONCURRENT_CONNECTS);
        connecting.collect().await
    }

    /// Posts a message, and returns the cost of its reply after all viewers have received it.
    async fn reply_to_all(&self, viewers: &[Viewer]) -> DeliveryCost {
        let n_replies = viewers[0].n_replies() + 1;
        let n_deltas = viewers[0].n_deltas();
        let posted = self.person.post_message(self.conversation, "Go on.", None);
        expect(201, posted.await);
        let cost = DeliveryCost::measure(&self.server, viewers, n_deltas).await;
        let has_whole_reply = |it: &Viewer| it.n_deltas() > n_deltas + DELTAS;
        assert!(
            !viewers.iter().any(has_whole_reply),
            "the reply ended too early"
        );
        wait_for_all(viewers, |it| it.n_replies() == n_replies).await;
        cost
    }
}

async fn measure_idle_sockets() {
    let upstream = FakeProvider::start().await;
    let bench = BenchServer::start(&upstream, "50").await;
    // Loads what the first sockets need.
    drop(bench.connect(MAX_CONCURRENT_CONNECTS).await);
    let mut load = LoadMeter::new([&bench.server]);
    load.begin();
    let before_kib = bench.server.resident_mib() * 1_024.0;
    let began = Instant::now();
    let mut viewers = bench.connect(IDLE_SOCKETS).await;
    let connected = began.elapsed();
    let each_kib = (bench.server.resident_mib() * 1_024.0 - before_kib) / IDLE_SOCKETS as f64;

    let (began, before) = (Instant::now(), bench.server.cpu_time());
    sleep(IDLE_DURATION).await;
    let used_ms = bench.server.cpu_time().ms_since(&before);
    let cores = used_ms / began.elapsed().as_secs_f64() / 1_000.0;
    assert!(viewers.iter().all(|it| it.n_pings() > 0), "no ping came");

    let began = Instant::now();
    viewers.extend(bench.connect(ALL_SOCKETS - IDLE_SOCKETS).await);
    let connected = connected + began.elapsed();
    load.end();
    assert!(viewers.iter().all(Viewer::is_open), "a socket was closed");
    println!(
        "\n{IDLE_SOCKETS} idle sockets: {each_kib:.1} KiB each (goal 16), {:.2} % of a core (goal 0.5)\n\
         {ALL_SOCKETS} sockets connected after {:.1} s (goal 3)\n{}",
        cores * 100.0,
        connected.as_secs_f64(),
        load.verdict()
    );
}

async fn measure_deliveries() {
    let upstream = FakeProvider::start().await;
    assert_eq!(DELTA.bytes().filter(|it| *it == DELTA_MARK).count(), 1);
    let reply = (0..DELTAS).fold(ResponseScript::stream().role(), |it, _| {
        it.text(DELTA).pause(PACE)
    });
    upstream.always(reply.finish("stop").usage(7, 7).done());
    let at_once = BenchServer::start(&upstream, "0").await;
    let in_slices = BenchServer::start(&upstream, "50").await;
    let mut load = LoadMeter::new([&at_once.server, &in_slices.server]);
    let viewers_at_once = at_once.connect(VIEWERS).await;
    let viewers_in_slices = in_slices.connect(VIEWERS).await;
    let mut samples = Vec::new();
    // The first sample is a warm-up and is not counted.
    for _ in 0..=SAMPLES {
        let before = measure_bare_writes().await;
        load.begin();
        let direct = at_once.reply_to_all(&viewers_at_once).await;
        let sliced = in_slices.reply_to_all(&viewers_in_slices).await;
        load.end();
        let after = measure_bare_writes().await;
        samples.push([before, after, direct, sliced]);
    }
    samples.remove(0);
    println!("\n{VIEWERS} viewers, for each delta and viewer");
    for (name, at) in [
        ("bare writes", 1),
        ("without slices (goal 1.5)", 2),
        ("with default slices (goal 1.0)", 3),
    ] {
        let of =
            |figure: fn(&DeliveryCost) -> f64| median(samples.iter().map(|it| figure(&it[at])));
        let bare = |it: &[DeliveryCost; 4]| f64::midpoint(it[0].delta_us, it[1].delta_us);
        let ratio = median(samples.iter().map(|it| it[at].delta_us / bare(it)));
        println!(
            "{name:<31} {:>6.2} µs {ratio:>6.2} × {:>6.2} frames; {:.2} cores in use",
            of(|it| it.delta_us),
            of(|it| it.n_frames),
            of(|it| it.cores),
        );
    }
    println!("server: {}", load.verdict());
}

async fn measure_bare_writes() -> DeliveryCost {
    let process = Process::start_self(bare_writes::SOCKETS, &VIEWERS.to_string());
    let host = process.url.trim_start_matches("http://");
    let mut viewers = Vec::new();
    for _ in 0..VIEWERS {
        viewers.push(Viewer::connect_bare(host).await);
    }
    DeliveryCost::measure(&process, &viewers, 0).await
}

/// The cost of delivering a delta to one viewer.
struct DeliveryCost {
    /// Processor time in µs.
    delta_us: f64,
    n_frames: f64,
    /// The processor time of all deliveries in relation to the elapsed time.
    cores: f64,
}

impl DeliveryCost {
    /// Measures the middle of a reply that this process is delivering. `n_before` is the number of
    /// deltas that each viewer had received before.
    async fn measure(process: &Process, viewers: &[Viewer], n_before: usize) -> DeliveryCost {
        let sum = |figure: fn(&Viewer) -> usize| viewers.iter().map(figure).sum::<usize>() as f64;
        wait_for_all(viewers, |it| it.n_deltas() >= n_before + MEASURED_FROM).await;
        let (began, cpu_before) = (Instant::now(), process.cpu_time());
        let (deltas_before, frames_before) = (sum(Viewer::n_deltas), sum(Viewer::n_frames));
        wait_for_all(viewers, |it| it.n_deltas() >= n_before + MEASURED_TO).await;
        let (elapsed, cpu_ms) = (began.elapsed(), process.cpu_time().ms_since(&cpu_before));
        let n_deltas = sum(Viewer::n_deltas) - deltas_before;
        DeliveryCost {
            delta_us: cpu_ms * 1_000.0 / n_deltas,
            n_frames: (sum(Viewer::n_frames) - frames_before) / n_deltas,
            cores: cpu_ms / elapsed.as_secs_f64() / 1_000.0,
        }
    }
}

async fn wait_for_all(viewers: &[Viewer], is_reached: impl Fn(&Viewer) -> bool) {
    let waiting = async {
        while !viewers.iter().all(&is_reached) {
            sleep(PACE).await;
        }
    };
    timeout(ANSWER_TIMEOUT, waiting).await.unwrap();
}
