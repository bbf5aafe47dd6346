//! Measures whole exchanges: a message is posted, its run replies, and the committed reply arrives
//! at a WebSocket. 1, 16 and 64 conversations with histories of 142 messages each exchange messages
//! at the same time; the scripted model replies at once.
//!
//! Prints exchanges per second, also in relation to bare transactions of three statements on the
//! same database, the processor time of server and database for each exchange, and the median time
//! from the post to the model's request and to the reply. The two sides alternate (ABBA); a ratio
//! is the median of the ratios of the samples. Goals: at 16 and 64 conversations at least 0.30 of
//! pgbench on PostgreSQL and 0.50 of three commits on SQLite, and at most 2.5 ms of processor time.
//!
//! Runs on SQLite, and on PostgreSQL if `BENCH_POSTGRES_URL` is the URL of an empty database and
//! `pgbench` is installed. Nothing is asserted, and results on a machine with other load are not
//! valid.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "exchanges/bare_transactions.rs"]
mod bare_transactions;
#[path = "../tests/it/support/fake_provider/mod.rs"]
#[allow(dead_code)]
mod fake_provider;
#[path = "../tests/it/support/http_client.rs"]
#[allow(dead_code)]
mod http_client;
#[path = "stream_delay/machine.rs"]
#[allow(dead_code)]
mod machine;
#[path = "exchanges/member.rs"]
mod member;

use std::env;
use std::time::Instant;

use futures::future::join_all;

use crate::bare_transactions::BareTransactions;
use crate::fake_provider::script::ResponseScript;
use crate::fake_provider::server::FakeProvider;
use crate::http_client::HttpClient;
use crate::machine::{Process, median};
use crate::member::Member;

/// The numbers of conversations that exchange messages at the same time.
const CONVERSATIONS: [usize; 3] = [1, 16, 64];
const SAMPLES: usize = 5;
/// The exchanges of one sample: of all conversations, and at least of each.
const EXCHANGES: usize = 320;
const EXCHANGES_OF_EACH: usize = 8;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    machine::calibrate();
    let folder = tempfile::tempdir().unwrap();
    let bare = BareTransactions::sqlite(folder.path()).await;
    measure("SQLite", &bare, &[]).await;
    let url = env::var("BENCH_POSTGRES_URL").unwrap_or_default();
    let bare = match url.as_str() {
        "" => None,
        url => BareTransactions::pgbench(url).await,
    };
    match bare {
        Some(bare) => {
            let secret = "0".repeat(64);
            let env = [
                ("DATABASE_URL", url.as_str()),
                ("TROUPE_SECRET_KEY", secret.as_str()),
            ];
            measure("PostgreSQL", &bare, &env).await;
        }
        None => {
            println!("PostgreSQL: not measured without BENCH_POSTGRES_URL and pgbench");
        }
    }
}

async fn measure(name: &str, bare: &BareTransactions, env: &[(&str, &str)]) {
    let upstream = FakeProvider::start().await;
    upstream.always(ResponseScript::say("Another line of the reply."));
    let folder = tempfile::tempdir().unwrap();
    // One user opens a socket for each conversation.
    let sockets = ("LIMIT_SOCKETS_PER_USER", "200");
    let env: Vec<_> = env.iter().copied().chain([sockets]).collect();
    let server = Process::server_with(folder, "50", &upstream.base_url(), &env);
    let person = HttpClient::set_up(&server.url, "ann").await;
    let character = person.create_character("Ada", None).await;
    let n_members = CONVERSATIONS.into_iter().max().unwrap();
    let mut conversations = Vec::new();
    for n in 0..n_members {
        conversations.push(member::create_conversation(&person, &character, n).await);
    }
    println!(
        "\n{name:<11} conversations  exchanges/s   ÷ bare   server ms  database ms   model asked ms   reply ms"
    );
    for n in CONVERSATIONS {
        let each = (EXCHANGES / n).max(EXCHANGES_OF_EACH);
        // Not earlier: a socket that is not read is closed.
        let connecting = conversations[..n].iter();
        let connecting = connecting.map(|it| Member::connect(&person, *it));
        let mut members = join_all(connecting).await;
        // The first sample is a warm-up and is not counted.
        exchange_all(&mut members, 2, &upstream).await;
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            let before = bare.rate().await;
            let sample = Sample::measure((&server, bare), &mut members, each, &upstream).await;
            let after = bare.rate().await;
            samples.push((sample, f64::midpoint(before, after)));
        }
        let of = |figure: &dyn Fn(&(Sample, f64)) -> f64| median(samples.iter().map(figure));
        println!(
            "{:<11} {n:>13} {:>12.1} {:>8.3} {:>11.2} {:>12.2} {:>16.2} {:>10.2}",
            "",
            of(&|(sample, _)| sample.rate),
            of(&|(sample, bare)| sample.rate / bare),
            of(&|(sample, _)| sample.server_ms),
            of(&|(sample, _)| sample.database_ms),
            of(&|(sample, _)| sample.model_asked_ms),
            of(&|(sample, _)| sample.reply_ms),
        );
    }
    println!("resident at the end: {:.1} MiB", server.resident_mib());
}

/// The figures of one sample, for each exchange.
struct Sample {
    /// Exchanges per second.
    rate: f64,
    server_ms: f64,
    database_ms: f64,
    model_asked_ms: f64,
    reply_ms: f64,
}

impl Sample {
    async fn measure(
        (server, bare): (&Process, &BareTransactions),
        members: &mut [Member],
        each: usize,
        upstream: &FakeProvider,
    ) -> Sample {
        let (server_before, database_before) = (server.cpu_time(), bare.database_time());
        let began = Instant::now();
        let delays = exchange_all(members, each, upstream).await;
        let took = began.elapsed();
        let n = delays.len() as f64;
        Sample {
            rate: n / took.as_secs_f64(),
            server_ms: server.cpu_time().ms_since(&server_before) / n,
            database_ms: bare.database_time().ms_since(&database_before) / n,
            model_asked_ms: median(delays.iter().map(|it| it.model_asked_ms)),
            reply_ms: median(delays.iter().map(|it| it.reply_ms)),
        }
    }
}

/// Lets each member exchange messages, one after another, at the same time as the others.
async fn exchange_all(
    members: &mut [Member],
    each: usize,
    upstream: &FakeProvider,
) -> Vec<member::Delays> {
    let all = members.iter_mut().map(async |member| {
        let mut delays = Vec::with_capacity(each);
        for _ in 0..each {
            delays.push(member.exchange(upstream).await);
        }
        delays
    });
    join_all(all).await.concat()
}
