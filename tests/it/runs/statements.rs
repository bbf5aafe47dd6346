//! Tests how many SQL statements a message and a run need, against fixed limits. The length of the
//! text makes no difference.
#![allow(clippy::print_stdout)] // the figures are read in the test output

use troupe::runs::scheduling::messages::new_post::NewPost;
use troupe::runs::scheduling::scheduler;
use troupe::runs::store::{due_runs, run};
use troupe::spaces::membership;

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::poll;
use crate::support::statements::Statements;

/// The allowed number of statements without BEGIN and COMMIT; more is a regression.
const A_POST: usize = 6;
const A_RUN: usize = 13;
/// The number of runs in a claim of conversations without messages that this node does not know,
/// and the allowed number of statements: five that lock the conversations and load their state, and
/// two that write.
const CLAIMED: usize = 32;
const A_CLAIM: usize = 5 + 2;

async fn measure(backend: TestBackend, take: impl Fn(&EngineTest) -> Vec<String>) {
    let app = EngineTest::builder(backend)
        .rules(|it| it.user_turn_debounce_ms = 500)
        .with_postgres_proxy()
        .open()
        .await;
    wait_for_recovery(|| take(&app)).await;
    let author = membership::find(app.db.reader(), app.user.membership).await;
    let author = author.expect("the database answers");
    let author = author.expect("the user is a member");
    let mut costs = Vec::new();
    // The first iteration warms up: it opens connections and prepares statements.
    for (iteration, n_deltas) in [10, 10, 1_000].into_iter().enumerate() {
        let script = (0..n_deltas).fold(ResponseScript::stream().role(), |it, n| {
            it.text(&format!("{n} "))
        });
        app.upstream
            .always(script.finish("stop").usage(7, n_deltas).done());
        take(&app);

        let post = NewPost::new(author.id, "Count.".to_owned());
        let posted = app.engine.post(app.conversation, &author, post).await;
        posted.expect("the message is accepted");
        let post = take(&app);
        app.clock.advance_ms(500);
        app.events
            .wait_for_events("typing_stop", iteration + 1)
            .await;
        app.wait_until_idle().await;
        let run = take(&app);

        if iteration > 0 {
            println!("{backend:?}, {n_deltas} deltas:");
            costs.push((
                print_statements("a post", &post),
                print_statements("a run", &run),
            ));
        }
    }

    let only = app.runs().await;
    assert!(only.iter().all(|it| it.status == run::RunStatus::Succeeded));
    assert_eq!(
        costs[0], costs[1],
        "a long text needs other statements than a short one"
    );
    assert_eq!(costs[0], (A_POST, A_RUN));
    app.close().await;
}

/// Waits until the recovery has run twice: at the start of the engine and in the first tick of the
/// recovery loop, which is concurrent with the first requests. The last query of each recovery reads
/// `jobs`.
async fn wait_for_recovery(take: impl Fn() -> Vec<String>) {
    let mut n_recoveries = 0;
    poll::until("the recovery has run twice", async || {
        let is_last = |sql: &&String| sql.starts_with("SELECT") && sql.contains("FROM \"jobs\"");
        n_recoveries += take().iter().filter(is_last).count();
        (n_recoveries >= 2).then_some(())
    })
    .await;
}

async fn measure_claim(backend: TestBackend, take: impl Fn(&EngineTest) -> Vec<String>) {
    let app = EngineTest::builder(backend)
        .not_started()
        .with_postgres_proxy()
        .open()
        .await;
    let due_at = app.clock.now().plus_ms(-60_000);
    app.insert_due_runs(app.load_fixture().await, CLAIMED, due_at)
        .await;
    let due = due_runs::list_next_due(app.db.reader(), &[], CLAIMED as u64).await;
    let due = due.expect("the database answers");
    take(&app);

    let claimed = scheduler::claim(app.engine.context(), due).await;

    let claim = take(&app);
    println!("{backend:?}, {CLAIMED} due runs:");
    assert_eq!(claimed.expect("the claim ended").runs.len(), CLAIMED);
    assert_eq!(print_statements("a claim", &claim), A_CLAIM);
    app.close_without_events().await;
}

/// Prints the statements and returns their number.
fn print_statements(what: &str, all: &[String]) -> usize {
    let is_read = |sql: &&&String| sql.starts_with("SELECT");
    let (frames, statements): (Vec<&String>, Vec<&String>) = all
        .iter()
        .filter(|it| !is_excluded(it))
        .partition(|it| it.starts_with("BEGIN") || it.starts_with("COMMIT"));
    let n_reads = statements.iter().filter(is_read).count();
    let n_writes = statements.len() - n_reads;
    println!(
        "  {what}: {n_reads} reads, {n_writes} writes, {} frames",
        frames.len()
    );
    for sql in &statements {
        println!("    {}", sql.chars().take(150).collect::<String>());
    }
    statements.len()
}

/// Statements that are not part of the work: opening and checking connections, and the dispatcher's
/// query for due runs, whose number depends on its wake-ups.
fn is_excluded(sql: &str) -> bool {
    let excluded = ["NOT IN (SELECT", "PRAGMA"];
    sql.is_empty() || excluded.iter().any(|it| sql.contains(it))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_message_and_a_run_need_a_fixed_number_of_statements() {
    let name = "runs::statements::on_sqlite_a_message_and_a_run_need_a_fixed_number_of_statements";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    measure(TestBackend::Sqlite, |_| statements.take_statements()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_message_and_a_run_need_a_fixed_number_of_statements() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    measure(TestBackend::Postgres, take_from_proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_claim_of_many_runs_loads_their_conversations_together() {
    let name =
        "runs::statements::on_sqlite_a_claim_of_many_runs_loads_their_conversations_together";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    measure_claim(TestBackend::Sqlite, |_| statements.take_statements()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_claim_of_many_runs_loads_their_conversations_together() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    measure_claim(TestBackend::Postgres, take_from_proxy).await;
}

fn take_from_proxy(app: &EngineTest) -> Vec<String> {
    app.postgres_proxy
        .as_ref()
        .expect("the proxy was not started")
        .take_statements()
}
