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

/// The stale time and one recovery interval of the fixture, with a margin for a busy machine.
const RECOVERY_TIME: Duration = Duration::from_millis(1500 + 300 + 5_000);

/// A call that hangs times out soon, so that the test ends.
const SHORT_TIMEOUTS: &[(&str, &str)] = &[
    ("LLM_FIRST_CHUNK_TIMEOUT_MS", "1000"),
    ("LLM_IDLE_TIMEOUT_MS", "1000"),
    ("RUN_TIMEOUT_MS", "4000"),
];

/// The seed of the faults: an early broken connection and a later failure in the middle of a text.
const SEED: u64 = 8;

/// The moment at which the server is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// A post is sent and not yet acknowledged.
    BeforeTheResponse,
    /// The post is acknowledged.
    AfterTheResponse,
    /// The reply is being generated.
    DuringTheReply,
    /// The reply has just been shown.
    AfterTheReply,
    /// Nothing is running.
    WhileIdle,
}

/// Returns the moment at which the server is killed in exchange `n`, if it is.
fn moment_of(n: usize) -> Option<Moment> {
    match n % 20 {
        2 => Some(Moment::DuringTheReply),
        5 => Some(Moment::BeforeTheResponse),
        8 => Some(Moment::AfterTheResponse),
        13 => Some(Moment::AfterTheReply),
        19 => Some(Moment::WhileIdle),
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
        // Calls of the memory would take some of the faults, depending on when they are made.
        let memory = json!({"memory": {"learn": false, "summaries": {"enabled": false}}});
        let settings = json!({"reply_order": "list", "user_turn_debounce_ms": 20, "settings": memory});
        let mut space = TestSpace::open_with(backend, settings, &["Ada", "Bob"], SHORT_TIMEOUTS).await;
        space.upstream.inject_faults(SEED, 5);
        let tabs = [ClientModel::open(&space.person, space.conversation).await, ClientModel::open(&space.person, space.conversation).await];
        let done = CancellationToken::new();
        let watch = tokio::spawn(watch_invariants(space.facts().await, done.clone()));

        for n in 1..=n_posts() {
            // One tab is disconnected during some exchanges, including kills, and catches up.
            if n % 4 == 3 {
                tabs[1].disconnect().await;
            }
            one_exchange(&mut space, &tabs, n, moment_of(n)).await;
            tabs[1].reconnect();
        }

        let mut facts = space.settle().await;
        done.cancel();
        let (violations, n_checks) = watch.await.expect("the watch task does not panic");
        assert!(violations.is_empty() && n_checks > 0, "violations in {n_checks} checks: {violations:?}");
        assert_nothing_lost_or_duplicated(&facts.timeline(space.conversation).await);
        for tab in &tabs {
            assert_shows_stored(&space, &mut facts, tab).await;
        }
        let n_kills = (1..=n_posts()).filter_map(moment_of).count();
        assert!(tabs.iter().all(|tab| tab.n_connections() > n_kills), "a tab did not reconnect after each kill");
        let failed_by_the_model = "SELECT CAST(count(*) AS TEXT) FROM conversation_runs WHERE status = 'failed' AND CAST(error AS TEXT) LIKE '%upstream%'";
        assert!(facts.number(failed_by_the_model).await > 0, "the model never failed: choose another seed");
    }
}

/// Returns the user's line; each is used only once in the session.
fn line(n: usize) -> String {
    format!("Line {n} of the evening.")
}

/// Runs one post and its reply, with a kill and a restart at the given moment.
async fn one_exchange(
    space: &mut TestSpace,
    tabs: &[ClientModel; 2],
    n: usize,
    moment: Option<Moment>,
) {
    let n_shown = tabs[0].timeline().lines().len();
    let gate = matches!(moment, Some(Moment::DuringTheReply)).then(|| space.hold_next_reply());
    if matches!(moment, Some(Moment::BeforeTheResponse)) {
        post_and_kill(space, n).await;
    }
    post(space, n).await;
    match moment {
        Some(Moment::AfterTheResponse) => kill_and_restart(space).await,
        Some(Moment::DuringTheReply) => {
            tabs[1]
                .wait_until("the first words", |shown| {
                    shown.stream().is_some_and(|stream| !stream.text.is_empty())
                })
                .await;
            kill_and_restart(space).await;
        }
        Some(Moment::AfterTheReply) => {
            wait_for_the_reply(space, &tabs[1], n_shown).await;
            kill_and_restart(space).await;
        }
        Some(Moment::BeforeTheResponse | Moment::WhileIdle) | None => {}
    }
    drop(gate);
    wait_for_the_reply(space, &tabs[0], n_shown).await;
    if matches!(moment, Some(Moment::WhileIdle)) {
        kill_and_restart(space).await;
    }
}

/// Posts a line with its `client_id` until it is acknowledged, as the client does.
async fn post(space: &TestSpace, n: usize) {
    let path = format!("/api/conversations/{}/messages", space.conversation);
    let body = json!({"content": line(n), "client_id": format!("line-{n}")});
    poll::until("the line is acknowledged", async || {
        let (status, answer) = space
            .person
            .attempt(Method::POST, &path, Some(&body))
            .await
            .ok()?;
        assert!(status == 201 || status == 200, "{status} {answer}");
        Some(())
    })
    .await;
}

/// Sends a post and kills the server before the response; the post may or may not be stored.
async fn post_and_kill(space: &mut TestSpace, n: usize) {
    let person = space.person.clone();
    let path = format!("/api/conversations/{}/messages", space.conversation);
    let body = json!({"content": line(n), "client_id": format!("line-{n}")});
    let posting =
        tokio::spawn(async move { person.attempt(Method::POST, &path, Some(&body)).await });
    tokio::task::yield_now().await;
    space.server.kill9();
    // The result, a response or a broken connection, is irrelevant.
    let _ = posting.await;
    restart_and_wait_for_recovery(space).await;
}

async fn kill_and_restart(space: &mut TestSpace) {
    space.server.kill9();
    restart_and_wait_for_recovery(space).await;
}

/// Restarts the server; runs of the killed process must end within their stale time.
async fn restart_and_wait_for_recovery(space: &mut TestSpace) {
    let mut facts = space.facts().await;
    let running = facts.hex("id");
    let left: Vec<Option<String>> = facts
        .rows(&format!(
            "SELECT {running} FROM conversation_runs WHERE status = 'running'"
        ))
        .await
        .into_iter()
        .flatten()
        .collect();
    space.server.restart().await;
    for run in left.into_iter().flatten() {
        let still = format!(
            "SELECT CAST(count(*) AS TEXT) FROM conversation_runs WHERE {running} = '{run}' AND status = 'running'"
        );
        poll::until_within(
            RECOVERY_TIME,
            "the run of the killed server ends",
            async || (facts.number(&still).await == 0).then_some(()),
        )
        .await;
    }
}

/// Waits for one more reply; if a reply failed, the user retries.
async fn wait_for_the_reply(space: &TestSpace, tab: &ClientModel, n_shown: usize) {
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
        let (status, answer) = space.person.retry(space.conversation).await;
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
    done: CancellationToken,
) -> (BTreeSet<String>, usize) {
    let mut violations = BTreeSet::new();
    let mut n_checks = 0;
    while !done.is_cancelled() {
        violations.extend(invariants::at_any_instant(&mut facts).await);
        n_checks += 1;
        let _ = timeout(Duration::from_millis(25), done.cancelled()).await;
    }
    (violations, n_checks)
}

fn assert_nothing_lost_or_duplicated(timeline: &[(i64, String, String)]) {
    let posted: Vec<&str> = timeline
        .iter()
        .filter(|(_, role, _)| role == "user")
        .map(|(_, _, content)| content.as_str())
        .collect();
    let expected: Vec<String> = (1..=n_posts()).map(line).collect();
    assert_eq!(
        posted, expected,
        "acknowledged lines are missing, duplicated or out of order"
    );
    let roles: Vec<&str> = timeline.iter().map(|(_, role, _)| role.as_str()).collect();
    assert_eq!(
        roles,
        ["user", "assistant"].repeat(n_posts()),
        "a line does not have exactly one reply"
    );
    let replies: BTreeSet<&str> = timeline
        .iter()
        .filter(|(_, role, _)| role == "assistant")
        .map(|(_, _, content)| content.as_str())
        .collect();
    assert_eq!(replies.len(), n_posts(), "a reply is stored twice");
}

/// Asserts that the tab, which was never reloaded, shows the messages of the database and of the
/// message list.
async fn assert_shows_stored(space: &TestSpace, facts: &mut DatabaseFacts, tab: &ClientModel) {
    let stored = facts.timeline(space.conversation).await;
    let shown = tab
        .wait_until("the stored timeline", |shown| {
            shown.lines() == stored && shown.state() == "idle" && shown.stream().is_none()
        })
        .await;
    let listed: Vec<Value> = space.person.messages(space.conversation).await;
    let newest = shown
        .messages()
        .split_off(shown.messages().len() - listed.len());
    for (in_the_tab, in_the_list) in newest.iter().zip(&listed) {
        assert_eq!(
            in_the_tab, in_the_list,
            "the document of the tab differs from the list"
        );
    }
    assert_eq!(shown.complaints(), Vec::<String>::new());
    assert_eq!(
        event_invariants::violations(&tab.log()),
        Vec::<String>::new()
    );
}
