//! Compares the diagram in `docs/run-lifecycle.md` with the transitions that the statements of
//! `runs/store/queue.rs` make and the triggers in `support/transitions.rs` accept.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sea_orm::{DbErr, EntityTrait};
use troupe::runs::store::queue::RunEnd;
use troupe::runs::store::run::RunStatus;
use troupe::runs::store::{queue, run};

use crate::support::backends::on_sqlite;
use crate::support::queue_fixture::{QueueFixture, run_error};

/// From state, to state, and the statement that makes the transition.
type Edge = (String, String, String);

const PAGE: &str = "docs/run-lifecycle.md";

/// Statements of the queue that change no status.
const READERS_AND_WRITERS_OF_THE_REST: [&str; 7] = [
    "set_waiting_for",
    "set_cutoff",
    "heartbeat",
    "request_cancel",
    "list_expired",
    "set_late_usage",
    "restore",
];

const EVERY_STATUS: [RunStatus; 6] = [
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Succeeded,
    RunStatus::Failed,
    RunStatus::Canceled,
    RunStatus::Skipped,
];

/// A statement that changes the status of a run, with the end it records.
#[derive(Clone, Copy, Debug)]
enum Move {
    Enqueue,
    Claim,
    Finish(Ending),
    Expire(Ending),
    HandBack,
    CancelQueued,
    Skip,
    FailQueued,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Succeeded,
    Failed,
    Canceled,
}

const EVERY_MOVE: [Move; 11] = [
    Move::Enqueue,
    Move::Claim,
    Move::Finish(Ending::Succeeded),
    Move::Finish(Ending::Failed),
    Move::Finish(Ending::Canceled),
    Move::Expire(Ending::Failed),
    Move::Expire(Ending::Canceled),
    Move::HandBack,
    Move::CancelQueued,
    Move::Skip,
    Move::FailQueued,
];

impl Move {
    fn verb(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Claim => "claim",
            Self::Finish(_) => "finish",
            Self::Expire(_) => "expire",
            Self::HandBack => "release",
            Self::CancelQueued => "cancel_queued",
            Self::Skip => "skip",
            Self::FailQueued => "fail_queued",
        }
    }
}

impl Ending {
    fn end(self) -> RunEnd {
        match self {
            Self::Succeeded => RunEnd::Succeeded,
            Self::Failed => RunEnd::Failed(run_error()),
            Self::Canceled => RunEnd::Canceled,
        }
    }
}

async fn moves(bench: &QueueFixture, it: Move, run: &run::Model) -> Result<bool, DbErr> {
    let (db, now, lease) = (bench.db(), bench.now(), run.lease);
    match it {
        Move::Enqueue => {
            let plan = bench.new_run();
            let queued = queue::enqueue(db, plan).await?;
            Ok(queued.id == run.id)
        }
        Move::Claim => queue::claim(db, run.id, "node-b", now, bench.dialect())
            .await
            .map(|it| it.is_some()),
        Move::Finish(ending) => queue::finish(db, run, lease, &ending.end(), now).await,
        Move::Expire(ending) => {
            queue::expire(db, run, lease, &ending.end(), now, &bench.stale()).await
        }
        Move::HandBack => queue::release(db, run, lease).await,
        Move::CancelQueued => queue::cancel_queued(db, run, now).await,
        Move::Skip => queue::skip(db, run, now).await,
        Move::FailQueued => queue::fail_queued(db, run, &run_error(), now).await,
    }
}

fn word(status: RunStatus) -> String {
    let value = serde_json::to_value(status).expect("a word");
    value.as_str().expect("a word").to_owned()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(path).expect("the page can be read")
}

/// The edges of the page's diagram: `queued --> running: claim`. Commas separate the verbs of one
/// edge; `[*]` is the start and the end of a run.
fn drawn() -> BTreeSet<Edge> {
    let page = read(PAGE);
    let diagram = page
        .split("```mermaid")
        .nth(1)
        .and_then(|it| it.split("```").next())
        .expect("the page has a diagram");
    let edges = diagram.lines().filter_map(|line| {
        let (from, rest) = line.trim().split_once(" --> ")?;
        let (to, verbs) = rest.split_once(": ")?;
        Some((from, to, verbs))
    });
    edges
        .flat_map(|(from, to, verbs)| {
            verbs
                .split(", ")
                .map(move |verb| (from.to_owned(), to.to_owned(), verb.to_owned()))
        })
        .collect()
}

/// The edges that the statements make; each statement is tried from every state.
async fn made(bench: &QueueFixture) -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    for it in EVERY_MOVE {
        for status in EVERY_STATUS {
            bench.clear().await;
            let run = bench.in_status(status);
            bench.insert(&run).await;
            let won = moves(bench, it, &run).await.expect("the database answers");
            let after = bench.row(run.id).await.status;
            assert!(won || after == status, "{it:?} moves and does not say so");
            if won {
                edges.insert((word(status), word(after), it.verb().to_owned()));
            }
        }
    }
    bench.clear().await;
    queue::enqueue(bench.db(), bench.new_run())
        .await
        .expect("a free place");
    let new = run::Entity::find().one(bench.db()).await;
    let new = new.expect("the database answers").expect("a row");
    edges.insert(("[*]".to_owned(), word(new.status), "enqueue".to_owned()));
    edges
}

on_sqlite! {
    async fn the_diagram_shows_every_move_and_no_other(backend) {
        let bench = QueueFixture::new(backend).await;

        assert_eq!(drawn(), made(&bench).await);
    }
}

#[test]
fn the_diagram_shows_only_legal_edges() {
    // Only a node that shuts down re-queues a run.
    let legal: BTreeSet<_> = [
        ("queued", "running"),
        ("queued", "canceled"),
        ("queued", "skipped"),
        ("queued", "failed"),
        ("running", "succeeded"),
        ("running", "failed"),
        ("running", "canceled"),
        ("running", "queued"),
    ]
    .into();

    let drawn = drawn();
    let moves = drawn.iter().filter(|it| it.0 != "[*]" && it.0 != it.1);
    let edges: BTreeSet<_> = moves.map(|it| (it.0.as_str(), it.1.as_str())).collect();

    assert_eq!(edges, legal);
}

#[test]
fn every_statement_of_the_queue_stands_in_the_table() {
    let (page, source) = (read(PAGE), read("src/runs/store/queue.rs"));
    let table: String = page.lines().filter(|it| it.starts_with('|')).collect();
    let public = source.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("pub async fn ")?.split_once('(')?;
        Some(name)
    });
    let public: BTreeSet<_> = public.collect();
    let known: BTreeSet<_> = EVERY_MOVE
        .into_iter()
        .map(Move::verb)
        .chain(READERS_AND_WRITERS_OF_THE_REST)
        .collect();

    assert_eq!(
        public, known,
        "a statement that no test of the diagram knows"
    );
    for verb in EVERY_MOVE.into_iter().map(Move::verb) {
        assert!(
            table.contains(&format!("`{verb}`")),
            "{verb} is not in the table of {PAGE}"
        );
    }
}
