//! A long session: one user in two tabs talks with two characters, the model sometimes fails, and
//! the server is killed several times, each time at a different moment.
//!
//! At the end no acknowledged message is lost, duplicated or stuck, and both tabs show what the
//! database contains, without a reload. TROUPE_SLOW_TESTS=1 runs ten such sessions.

use std::collections::BTreeSet;
use std::env;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::support::backends::on_sqlite;
use crate::support::client_model::ClientModel;
use crate::support::database_facts::DatabaseFacts;
use crate::support::test_space::TestSpace;
use crate::support::timeline_model::Timeline;
use crate::support::{event_invariants, invariants, poll};

/// The stale time and one sweep with the short leases of the fixture, and a margin for a busy
/// machine.
const RECOVERY_TIME: Duration = Duration::from_millis(1500 + 300 + 5_000);

/// A call that hangs times out soon, so that the test ends.
const SHORT_TIMEOUTS: &[(&str, &str)] = &[
    ("LLM_FIRST_CHUNK_TIMEOUT_MS", "1000"),
    ("LLM_IDLE_TIMEOUT_MS", "1000"),
    ("RUN_TIMEOUT_MS", "4000"),
];

/// The seed of the faults: a broken connection early, a failure in the middle of a text later.
const SEED: u64 = 8;

/// The moment at which the server is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// A post is sent and not answered yet.
    BeforeTheAnswer,
    /// The post is acknowledged.
    AfterTheAnswer,
    /// The reply is being generated.
    InTheReply,
    /// The reply has just been shown.
    AfterTheReply,
    /// Nothing is running.
    InTheSilence,
}

/// Returns when the server is killed in this exchange of twenty, if it is.
fn moment_of(n: usize) -> Option<Moment> {
    match n % 20 {
        2 => Some(Moment::InTheReply),
        5 => Some(Moment::BeforeTheAnswer),
        8 => Some(Moment::AfterTheAnswer),
        13 => Some(Moment::AfterTheReply),
        19 => Some(Moment::InTheSilence),
        _ => None,
    }
}

/// Twenty posts and their replies are a conversation of forty messages.
fn n_posts() -> usize {
    let is_long = env::var("TROUPE_SLOW_TESTS").is_ok_and(|value| value == "1");
    if is_long { 200 } else { 20 }
}

on_sqlite! {
    async fn a_session_with_five_kills_loses_and_duplicates_nothing(backend) {
        let settings = json!({"reply_order": "list", "user_turn_debounce_ms": 20});
        let mut room = TestSpace::open_with(backend, settings, &["Ada", "Bob"], SHORT_TIMEOUTS).await;
        room.upstream.inject_faults(SEED, 5);
        let tabs = [ClientModel::open(&room.person, room.conversation).await, ClientModel::open(&room.person, room.conversation).await];
        let over = CancellationToken::new();
        let watch = tokio::spawn(watch_invariants(room.facts().await, over.clone()));

        for n in 1..=n_posts() {
            // One tab is disconnected during some exchanges, including kills, and catches up.
            if n % 4 == 3 {
                tabs[1].disconnect().await;
            }
            one_exchange(&mut room, &tabs, n, moment_of(n)).await;
            tabs[1].reconnect();
        }

        let mut facts = room.settle().await;
        over.cancel();
        let (broken, n_looks) = watch.await.expect("the watch ends by itself");
        assert!(broken.is_empty() && n_looks > 0, "broken on the way, in {n_looks} looks: {broken:?}");
        nothing_is_lost_or_doubled(&facts.timeline(room.conversation).await);
        for tab in &tabs {
            assert_shows_stored(&room, &mut facts, tab).await;
        }
        let n_kills = (1..=n_posts()).filter_map(moment_of).count();
        assert!(tabs.iter().all(|tab| tab.n_connections() > n_kills), "every kill was felt in both tabs");
        let failed_by_the_model = "SELECT CAST(count(*) AS TEXT) FROM conversation_runs WHERE status = 'failed' AND CAST(error AS TEXT) LIKE '%upstream%'";
        assert!(facts.number(failed_by_the_model).await > 0, "the model never failed: draw another seed");
    }
}

/// Returns the user's line; each is used only once in the session.
fn line(n: usize) -> String {
    format!("Line {n} of the evening.")
}

/// Runs one post and its reply, with a kill and a restart at the given moment.
async fn one_exchange(
    room: &mut TestSpace,
    tabs: &[ClientModel; 2],
    n: usize,
    moment: Option<Moment>,
) {
    let n_shown = tabs[0].timeline().lines().len();
    let gate = matches!(moment, Some(Moment::InTheReply)).then(|| room.hold_next_reply());
    if matches!(moment, Some(Moment::BeforeTheAnswer)) {
        post_into_a_kill(room, n).await;
    }
    post(room, n).await;
    match moment {
        Some(Moment::AfterTheAnswer) => kill_and_restart(room).await,
        Some(Moment::InTheReply) => {
            tabs[1]
                .wait_until("the first words", |shown| {
                    shown.stream().is_some_and(|stream| !stream.text.is_empty())
                })
                .await;
            kill_and_restart(room).await;
        }
        Some(Moment::AfterTheReply) => {
            wait_for_the_reply(room, &tabs[1], n_shown).await;
            kill_and_restart(room).await;
        }
        Some(Moment::BeforeTheAnswer | Moment::InTheSilence) | None => {}
    }
    drop(gate);
    wait_for_the_reply(room, &tabs[0], n_shown).await;
    if matches!(moment, Some(Moment::InTheSilence)) {
        kill_and_restart(room).await;
    }
}

/// Posts a line under its key until it is acknowledged, as the client does.
async fn post(room: &TestSpace, n: usize) {
    let path = format!("/api/conversations/{}/messages", room.conversation);
    let body = json!({"content": line(n), "client_id": format!("line-{n}")});
    poll::until("the line is acknowledged", async || {
        let (status, answer) = room
            .person
            .attempt(Method::POST, &path, Some(&body))
            .await
            .ok()?;
        assert!(status == 201 || status == 200, "{status} {answer}");
        Some(())
    })
    .await;
}

/// Sends a post and kills the server meanwhile: whether it was stored is unknown.
async fn post_into_a_kill(room: &mut TestSpace, n: usize) {
    let person = room.person.clone();
    let path = format!("/api/conversations/{}/messages", room.conversation);
    let body = json!({"content": line(n), "client_id": format!("line-{n}")});
    let posting =
        tokio::spawn(async move { person.attempt(Method::POST, &path, Some(&body)).await });
    tokio::task::yield_now().await;
    room.server.kill9();
    // The result, an answer or a broken connection, is what the user cannot rely on.
    let _ = posting.await;
    restart_unstuck(room).await;
}

async fn kill_and_restart(room: &mut TestSpace) {
    room.server.kill9();
    restart_unstuck(room).await;
}

/// Restarts the server; runs of the killed process must end within their stale time.
async fn restart_unstuck(room: &mut TestSpace) {
    let mut facts = room.facts().await;
    let running = facts.hex("id");
    let left: Vec<Option<String>> = facts
        .rows(&format!(
            "SELECT {running} FROM conversation_runs WHERE status = 'running'"
        ))
        .await
        .into_iter()
        .flatten()
        .collect();
    room.server.restart().await;
    for run in left.into_iter().flatten() {
        let still = format!(
            "SELECT CAST(count(*) AS TEXT) FROM conversation_runs WHERE {running} = '{run}' AND status = 'running'"
        );
        poll::until_within(
            RECOVERY_TIME,
            "the run of the dead server ends",
            async || (facts.number(&still).await == 0).then_some(()),
        )
        .await;
    }
}

/// Waits for one more reply; if a reply failed, the user retries.
async fn wait_for_the_reply(room: &TestSpace, tab: &ClientModel, n_shown: usize) {
    let is_answered = |shown: &Timeline| {
        let lines = shown.lines();
        lines.len() >= n_shown + 2 && lines.last().is_some_and(|(_, role, _)| role == "assistant")
    };
    poll::until("the line is answered", async || {
        let shown = tab
            .wait_until("a reply or a failure", |shown| {
                is_answered(shown) || shown.state() == "failed"
            })
            .await;
        if is_answered(&shown) {
            return Some(());
        }
        let (status, answer) = room.person.retry(room.conversation).await;
        // 409: the failed run has been retried in the meantime.
        assert!(status == 202 || status == 409, "{status} {answer}");
        None
    })
    .await;
}

/// Checks the invariants of the database until the session is over; returns the violations and the
/// number of checks.
async fn watch_invariants(
    mut facts: DatabaseFacts,
    over: CancellationToken,
) -> (BTreeSet<String>, usize) {
    let mut broken = BTreeSet::new();
    let mut n_looks = 0;
    while !over.is_cancelled() {
        broken.extend(invariants::at_any_instant(&mut facts).await);
        n_looks += 1;
        let _ = timeout(Duration::from_millis(25), over.cancelled()).await;
    }
    (broken, n_looks)
}

fn nothing_is_lost_or_doubled(timeline: &[(i64, String, String)]) {
    let said: Vec<&str> = timeline
        .iter()
        .filter(|(_, role, _)| role == "user")
        .map(|(_, _, content)| content.as_str())
        .collect();
    let expected: Vec<String> = (1..=n_posts()).map(line).collect();
    assert_eq!(
        said, expected,
        "every acknowledged line is there once, in order"
    );
    let roles: Vec<&str> = timeline.iter().map(|(_, role, _)| role.as_str()).collect();
    assert_eq!(
        roles,
        ["user", "assistant"].repeat(n_posts()),
        "every line has exactly one reply"
    );
    let replies: BTreeSet<&str> = timeline
        .iter()
        .filter(|(_, role, _)| role == "assistant")
        .map(|(_, _, content)| content.as_str())
        .collect();
    assert_eq!(replies.len(), n_posts(), "no reply is stored twice");
}

/// Asserts that the tab, which was never reloaded, shows what the database and the message list
/// hold.
async fn assert_shows_stored(room: &TestSpace, facts: &mut DatabaseFacts, tab: &ClientModel) {
    let truth = facts.timeline(room.conversation).await;
    let shown = tab
        .wait_until("the truth", |shown| {
            shown.lines() == truth && shown.state() == "idle" && shown.stream().is_none()
        })
        .await;
    let listed: Vec<Value> = room.person.messages(room.conversation).await;
    let newest = shown
        .messages()
        .split_off(shown.messages().len() - listed.len());
    for (in_the_tab, in_the_list) in newest.iter().zip(&listed) {
        assert_eq!(
            in_the_tab, in_the_list,
            "events, snapshots and the list carry the same documents"
        );
    }
    assert_eq!(shown.complaints(), Vec::<String>::new());
    assert_eq!(
        event_invariants::violations(&tab.log()),
        Vec::<String>::new()
    );
}
