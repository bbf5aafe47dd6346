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

/// Statements of the queue that change no status, and the claim of many runs.
const OTHER_STATEMENTS: [&str; 9] = [
    "claim_all",
    "set_speaker",
    "set_waiting_for",
    "heartbeat",
    "request_cancel",
    "list_expired",
    "set_late_usage",
    "restore",
    "set_expected_tail",
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
enum Transition {
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

const EVERY_TRANSITION: [Transition; 11] = [
    Transition::Enqueue,
    Transition::Claim,
    Transition::Finish(Ending::Succeeded),
    Transition::Finish(Ending::Failed),
    Transition::Finish(Ending::Canceled),
    Transition::Expire(Ending::Failed),
    Transition::Expire(Ending::Canceled),
    Transition::HandBack,
    Transition::CancelQueued,
    Transition::Skip,
    Transition::FailQueued,
];

impl Transition {
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

async fn apply(fixture: &QueueFixture, it: Transition, run: &run::Model) -> Result<bool, DbErr> {
    let (db, now, lease) = (fixture.db(), fixture.now(), run.lease);
    match it {
        Transition::Enqueue => {
            let plan = fixture.new_run();
            let queued = queue::enqueue(db, plan).await?;
            Ok(queued.id == run.id)
        }
        Transition::Claim => queue::claim(db, run.id, "node-b", now, fixture.backend())
            .await
            .map(|it| it.is_some()),
        Transition::Finish(ending) => queue::finish(db, run, lease, &ending.end(), now)
            .await
            .map(|it| it.is_some()),
        Transition::Expire(ending) => {
            queue::expire(db, run, lease, &ending.end(), now, &fixture.stale()).await
        }
        Transition::HandBack => queue::release(db, run, lease).await,
        Transition::CancelQueued => queue::cancel_queued(db, run, now).await,
        Transition::Skip => queue::skip(db, run, now).await,
        Transition::FailQueued => queue::fail_queued(db, run, &run_error(), now).await,
    }
}

fn word(status: RunStatus) -> String {
    let value = serde_json::to_value(status).expect("the status is a string");
    value.as_str().expect("the status is a string").to_owned()
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(path).expect("the file can be read")
}

/// Returns the edges of the page's diagram: `queued --> running: claim`. Commas separate the verbs
/// of one edge; `[*]` is the start and the end of a run.
fn diagram_edges() -> BTreeSet<Edge> {
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

/// Returns the transitions that the statements make; each is tried from every state.
async fn statement_edges(fixture: &QueueFixture) -> BTreeSet<Edge> {
    let mut edges = BTreeSet::new();
    for it in EVERY_TRANSITION {
        for status in EVERY_STATUS {
            fixture.clear().await;
            let run = fixture.in_status(status);
            fixture.insert(&run).await;
            let changed = apply(fixture, it, &run)
                .await
                .expect("the database answers");
            let after = fixture.row(run.id).await.status;
            assert!(
                changed || after == status,
                "{it:?} changed the row and returned false"
            );
            if changed {
                edges.insert((word(status), word(after), it.verb().to_owned()));
            }
        }
    }
    fixture.clear().await;
    queue::enqueue(fixture.db(), fixture.new_run())
        .await
        .expect("the run is enqueued");
    let new = run::Entity::find().one(fixture.db()).await;
    let new = new.expect("the database answers").expect("the run exists");
    edges.insert(("[*]".to_owned(), word(new.status), "enqueue".to_owned()));
    edges
}

on_sqlite! {
    async fn the_diagram_shows_every_transition_and_no_other(backend) {
        let fixture = QueueFixture::new(backend).await;

        assert_eq!(diagram_edges(), statement_edges(&fixture).await);
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

    let diagram_edges = diagram_edges();
    let edges = diagram_edges
        .iter()
        .filter(|it| it.0 != "[*]" && it.0 != it.1);
    let edges: BTreeSet<_> = edges.map(|it| (it.0.as_str(), it.1.as_str())).collect();

    assert_eq!(edges, legal);
}

#[test]
fn every_statement_of_the_queue_is_in_the_table() {
    let (page, source) = (read(PAGE), read("src/runs/store/queue.rs"));
    let table: String = page.lines().filter(|it| it.starts_with('|')).collect();
    let public = source.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("pub async fn ")?.split_once('(')?;
        Some(name)
    });
    let public: BTreeSet<_> = public.collect();
    let known: BTreeSet<_> = EVERY_TRANSITION
        .into_iter()
        .map(Transition::verb)
        .chain(OTHER_STATEMENTS)
        .collect();

    assert_eq!(
        public, known,
        "the tests do not cover exactly the public statements"
    );
    for verb in EVERY_TRANSITION.into_iter().map(Transition::verb) {
        assert!(
            table.contains(&format!("`{verb}`")),
            "{verb} is not in the table of {PAGE}"
        );
    }
}
