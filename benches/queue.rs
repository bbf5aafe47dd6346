//! Measures the queue of runs alone, without HTTP, prompts and models: 16 tasks enqueue runs of random
//! conversations, a dispatcher claims up to 32 due runs at a time, and each claimed run ends at
//! once. Each enqueued run, each claim and each end is a transaction, as in the server, and a
//! conversation has at most one queued and one running run.
//!
//! Prints ended runs per second, and the ratio of this rate to that of bare transactions of three
//! statements on the same database (on PostgreSQL by pgbench). The two measurements alternate (ABBA);
//! the ratio is the median of the samples. Goals: at least 2.0 on PostgreSQL and 4.0 on SQLite.
//!
//! Runs on SQLite, and on PostgreSQL if `BENCH_POSTGRES_URL` is the URL of an empty database and
//! `pgbench` is installed. Nothing is asserted, and results on a machine with other load are not
//! valid.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "exchanges/bare_transactions.rs"]
#[allow(dead_code)]
mod bare_transactions;
#[path = "stream_delay/machine.rs"]
#[allow(dead_code)]
mod machine;

use std::env;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::clock::{Clock, Timestamp};
use base::ids::{ConversationId, MembershipId, RunId, SpaceId};
use rand::RngExt;
use sea_orm::{ConnectionTrait, DbErr};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use troupe::conversations::conversation;
use troupe::db::connect::{Db, DbOptions};
use troupe::runs::store::{due_runs, new_run, queue, run};

use crate::bare_transactions::BareTransactions;

const CONVERSATIONS: i64 = 1_000;
const ENQUEUING_TASKS: usize = 16;
/// The maximum number of runs of a claim.
const CLAIM_LIMIT: u64 = 32;
const SAMPLES: usize = 5;
const DURATION: Duration = Duration::from_secs(3);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    machine::calibrate();
    let folder = tempfile::tempdir().unwrap();
    let bare = BareTransactions::sqlite(folder.path()).await;
    let url = format!(
        "sqlite://{}?mode=rwc",
        folder.path().join("queue.db").display()
    );
    measure("SQLite", &bare, url).await;
    let url = env::var("BENCH_POSTGRES_URL").unwrap_or_default();
    let bare = match url.as_str() {
        "" => None,
        url => BareTransactions::pgbench(url).await,
    };
    match bare {
        Some(bare) => measure("PostgreSQL", &bare, url).await,
        None => println!("PostgreSQL: not measured without BENCH_POSTGRES_URL and pgbench"),
    }
}

async fn measure(name: &str, bare: &BareTransactions, url: String) {
    let queue = Arc::new(Queue::create(url).await);
    queue.rate().await; // a warm-up
    let mut samples = Vec::new();
    for _ in 0..SAMPLES {
        let before = bare.rate().await;
        let rate = queue.rate().await;
        let after = bare.rate().await;
        samples.push((rate, rate / f64::midpoint(before, after)));
    }
    let rate = machine::median(samples.iter().map(|it| it.0));
    let ratio = machine::median(samples.iter().map(|it| it.1));
    println!("{name}: {rate:.0} runs per second, {ratio:.3} of the bare transactions");
}

/// The queue, and what its tasks share.
struct Queue {
    db: Db,
    clock: Clock,
    next_number: AtomicI64,
    n_ended: AtomicUsize,
    is_stopped: AtomicBool,
    /// Notified when a run may be due.
    due: Notify,
}

impl Queue {
    /// Creates the tables, and a space with a character and its conversations.
    async fn create(url: String) -> Queue {
        let options = DbOptions {
            url,
            synchronous_full: true,
        };
        let db = Db::connect(&options).await.unwrap();
        db.migrate().await.unwrap();
        for sql in [
            "INSERT INTO spaces (id, name, description, settings, created_at) VALUES (1, 'Inn', '', '{}', 0)".to_owned(),
            "INSERT INTO space_memberships (id, space_id, kind, position, cached_display_name, aliases, settings, created_at) \
             VALUES (1, 1, 'character', 0, 'Ada', '[]', '{}', 0)".to_owned(),
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {CONVERSATIONS}) \
                 INSERT INTO conversations (id, space_id, title, settings, variables, created_at) \
                 SELECT i, 1, 'Conversation', '{{}}', '{{}}', 0 FROM n"
            ),
        ] {
            db.heartbeat_connection().execute_unprepared(&sql).await.unwrap();
        }
        Queue {
            db,
            clock: Clock::system(),
            next_number: AtomicI64::new(1),
            n_ended: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            due: Notify::new(),
        }
    }

    /// Returns how many runs end per second.
    async fn rate(self: &Arc<Self>) -> f64 {
        self.n_ended.store(0, Ordering::SeqCst);
        self.is_stopped.store(false, Ordering::SeqCst);
        let mut tasks = JoinSet::new();
        for _ in 0..ENQUEUING_TASKS {
            let queue = self.clone();
            tasks.spawn(async move {
                while !queue.is_stopped() {
                    queue.enqueue().await.unwrap();
                    queue.due.notify_one();
                }
            });
        }
        let queue = self.clone();
        tasks.spawn(async move { queue.dispatch().await });
        let began = Instant::now();
        tokio::time::sleep(DURATION).await;
        let n_ended = self.n_ended.load(Ordering::SeqCst);
        let took = began.elapsed();
        self.is_stopped.store(true, Ordering::SeqCst);
        self.due.notify_one();
        tasks.join_all().await;
        n_ended as f64 / took.as_secs_f64()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    async fn enqueue(&self) -> Result<(), DbErr> {
        let conversation = ConversationId(rand::rng().random_range(1..=CONVERSATIONS));
        let mut run = new_run::new_model(
            RunId::new(),
            (SpaceId(1), conversation),
            Some(MembershipId(1)),
            run::RunKind::UserTurn,
            run::RunReason::UserMessage,
            self.clock.now(),
        );
        run.run_seq = self.next_number.fetch_add(1, Ordering::SeqCst);
        self.db
            .write(move |tx| Box::pin(async move { queue::enqueue(tx, run).await.map(drop) }))
            .await
    }

    /// Claims due runs and ends them, until it is stopped.
    async fn dispatch(self: &Arc<Self>) {
        let mut ending = JoinSet::new();
        while !self.is_stopped() {
            let due = due_runs::list_next_due(self.db.reader(), &[], CLAIM_LIMIT)
                .await
                .unwrap();
            if due.is_empty() {
                self.due.notified().await;
                continue;
            }
            for claimed in self.claim(due).await.unwrap() {
                let queue = self.clone();
                ending.spawn(async move { queue.end(claimed).await.unwrap() });
            }
        }
        ending.join_all().await;
    }

    async fn claim(&self, due: Vec<due_runs::DueRun>) -> Result<Vec<run::Model>, DbErr> {
        let (now, dialect) = (self.clock.now(), self.db.backend());
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let conversations = due.iter().map(|it| it.conversation_id);
                    conversation::lock_available(tx, conversations).await?;
                    let ids: Vec<RunId> = due.iter().map(|it| it.id).collect();
                    queue::claim_all(tx, &ids, "bench", now, dialect).await
                })
            })
            .await
    }

    async fn end(&self, claimed: run::Model) -> Result<(), DbErr> {
        let now: Timestamp = self.clock.now();
        self.db
            .write(move |tx| {
                Box::pin(async move {
                    let end = queue::RunEnd::Succeeded;
                    queue::finish(tx, &claimed, claimed.lease, &end, now).await
                })
            })
            .await
            .map(|ended: Option<run::Model>| drop(ended.unwrap()))?;
        self.n_ended.fetch_add(1, Ordering::SeqCst);
        self.due.notify_one();
        Ok(())
    }
}
