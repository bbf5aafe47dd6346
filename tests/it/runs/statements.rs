//! Tests how many SQL statements a message and a run need, against fixed limits. The length of the
//! text makes no difference.
#![allow(clippy::print_stdout)] // the figures are for readers of the test output

use troupe::runs::store::run;

use crate::support::backends::TestBackend;
use crate::support::engine_test::EngineTest;
use crate::support::fake_provider::script::ResponseScript;
use crate::support::statements::Statements;

/// The allowed number of statements without BEGIN and COMMIT; more is a regression.
const A_POST: usize = 10;
const A_RUN: usize = 27;

async fn measure(backend: TestBackend, take: impl Fn(&EngineTest) -> Vec<String>) {
    let room = EngineTest::builder(backend)
        .rules(|it| it.user_turn_debounce_ms = 500)
        .with_postgres_proxy()
        .open()
        .await;
    let mut costs = Vec::new();
    // The first iteration warms up: it opens connections and prepares statements.
    for (n_evening, n_deltas) in [10, 10, 1_000].into_iter().enumerate() {
        let script = (0..n_deltas).fold(ResponseScript::stream().role(), |it, n| {
            it.text(&format!("{n} "))
        });
        room.upstream
            .always(script.finish("stop").usage(7, n_deltas).done());
        take(&room);

        room.user.post("Count.").await;
        let post = take(&room);
        room.clock.advance_ms(500);
        room.events
            .wait_for_events("typing_stop", n_evening + 1)
            .await;
        room.wait_until_idle().await;
        let run = take(&room);

        if n_evening > 0 {
            println!("{backend:?}, {n_deltas} deltas:");
            costs.push((tell("a post", &post), tell("a run", &run)));
        }
    }

    let only = room.runs().await;
    assert!(only.iter().all(|it| it.status == run::RunStatus::Succeeded));
    assert_eq!(
        costs[0], costs[1],
        "a long text costs what a short one costs"
    );
    assert_eq!(costs[0], (A_POST, A_RUN));
    room.close().await;
}

/// Prints the statements and returns their number.
fn tell(what: &str, all: &[String]) -> usize {
    let is_read = |sql: &&&String| sql.starts_with("SELECT");
    let (frames, statements): (Vec<&String>, Vec<&String>) = all
        .iter()
        .filter(|it| !is_aside(it))
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
fn is_aside(sql: &str) -> bool {
    let beside = ["statement_timestamp()", "NOT IN (SELECT", "PRAGMA"];
    sql.is_empty() || beside.iter().any(|it| sql.contains(it))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_each_message_and_each_run_cost_what_they_cost() {
    let name = "runs::statements::on_sqlite_each_message_and_each_run_cost_what_they_cost";
    let Some(statements) = Statements::alone(name) else {
        return;
    };
    measure(TestBackend::Sqlite, |_| statements.take()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_each_message_and_each_run_cost_what_they_cost() {
    if !TestBackend::Postgres.is_available() {
        return;
    }
    measure(TestBackend::Postgres, |room| {
        room.postgres_proxy
            .as_ref()
            .expect("a wired room")
            .take_statements()
    })
    .await;
}
