//! Measures the cost of frequent queries when the stored data grows: ended runs, messages, former
//! members, conversations of a space.
//!
//! Each query runs on a small and on a large database with the same live data. The ratio of the
//! medians should stay near 1. Also measures a branch of all messages of the large database in
//! relation to a plain copy of the rows (goal: at most 1.5). Nothing is asserted, because results on
//! a busy machine are not valid.
//! Runs on SQLite, and on PostgreSQL if `TROUPE_TEST_POSTGRES_URL` is the URL of a server.

// A benchmark prints its results and panics on errors.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/it/support"]
#[allow(dead_code, unused_imports, unused_macros)]
mod support {
    pub mod backends;
    pub mod database_facts;
}

use std::time::{Duration, Instant};

use base::clock::Timestamp;
use base::ids::{ConversationId, SpaceId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait};
use troupe::conversations::branching::NewBranch;
use troupe::conversations::{branching, conversation, newest_messages, timeline};
use troupe::db::connect::{Db, DbOptions};
use troupe::db::reading::page::PageQuery;
use troupe::runs::execution::recovery;
use troupe::runs::reading::history::RunQuery;
use troupe::runs::scheduling::command::Command;
use troupe::runs::scheduling::space_changes;
use troupe::runs::scheduling::state::state_cache::StateCache;
use troupe::runs::scheduling::state::state_loader;
use troupe::runs::store::run::RunStatus;
use troupe::spaces::needs_step;

use crate::support::backends::{TestBackend, TestDatabase, fresh_database};

/// The number of runs of each query.
const ROUNDS: usize = 31;
const SPACE: SpaceId = SpaceId(1);
const CONVERSATION: ConversationId = ConversationId(1);

/// The number of rows of each kind in a database.
#[derive(Clone, Copy)]
struct Size {
    runs: u32,
    messages: u32,
    removed: u32,
    conversations: u32,
}

const SMALL: Size = Size {
    runs: 500,
    messages: 200,
    removed: 20,
    conversations: 30,
};
const LARGE: Size = Size {
    runs: 500_000,
    messages: 200_000,
    removed: 20_000,
    conversations: 3_000,
};

/// A database of one size, which is removed on drop.
struct FilledDatabase {
    db: Db,
    _database: TestDatabase,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        for backend in TestBackend::all() {
            measure(backend).await;
        }
    });
}

async fn measure(backend: TestBackend) {
    let small = fill(backend, SMALL).await;
    let large = fill(backend, LARGE).await;
    println!(
        "{backend:?}: {} → {} runs, {} → {} messages, {} → {} removed members, {} → {} conversations",
        SMALL.runs,
        LARGE.runs,
        SMALL.messages,
        LARGE.messages,
        SMALL.removed,
        LARGE.removed,
        SMALL.conversations,
        LARGE.conversations
    );
    for query in FrequentQuery::ALL {
        let few = query.median(&small.db).await;
        let many = query.median(&large.db).await;
        let ratio = many.as_secs_f64() / few.as_secs_f64();
        println!("  {}: {few:?} → {many:?}, × {ratio:.2}", query.name());
    }
    let ratio = branch_ratio(&large.db).await;
    println!("  branch of all messages: × {ratio:.2} of a plain copy");
    for database in [small, large] {
        database.db.close().await;
    }
}

/// Returns the time to create a branch with all messages, divided by the time to copy their rows: the
/// median of three measurements.
async fn branch_ratio(db: &Db) -> f64 {
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let plain = measure_copy(db, true).await;
        let branch = measure_copy(db, false).await;
        ratios.push(branch.as_secs_f64() / plain.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    ratios[1]
}

/// Returns the duration of a branch with all messages, or of a plain copy of their rows.
async fn measure_copy(db: &Db, is_plain: bool) -> Duration {
    let began = Instant::now();
    let copied: Result<(), DbErr> = db
        .write(move |tx| {
            Box::pin(async move {
                let parent = conversation::lock(tx, CONVERSATION).await?.unwrap();
                let fork = timeline::list_tails(tx, [&parent]).await?.pop().unwrap();
                let new = NewBranch {
                    title: String::new(),
                    text_bytes: 0,
                    is_hidden: false,
                    now: Timestamp(0),
                };
                if !is_plain {
                    branching::create_branch(tx, &parent, &fork, new).await?;
                    return Ok(());
                }
                let branch = branching::insert_branch(tx, &parent, &fork, new).await?;
                tx.execute_unprepared(&plain_copy(branch.id)).await?;
                Ok(())
            })
        })
        .await;
    copied.unwrap();
    began.elapsed()
}

fn plain_copy(branch: ConversationId) -> String {
    let same = "seq, space_membership_id, role, content, visibility, conversation_run_id, \
        active_swipe, client_id, created_at, edited_at, token_count, metadata";
    format!(
        "INSERT INTO messages (conversation_id, {same}, origin_message_id, rev) \
         SELECT {branch}, {same}, id, 1 FROM messages WHERE conversation_id = {CONVERSATION} ORDER BY seq"
    )
}

/// A frequent query.
#[derive(Clone, Copy)]
enum FrequentQuery {
    RunList(RunStatus),
    RunListOfConversation,
    StalledRounds,
    StepState,
    NewestMessages,
    Tail,
    SpeakersSinceUserMessage,
    LiveConversations,
    Marks,
}

impl FrequentQuery {
    const ALL: [Self; 11] = [
        Self::RunList(RunStatus::Queued),
        Self::RunList(RunStatus::Running),
        Self::RunList(RunStatus::Failed),
        Self::RunListOfConversation,
        Self::StalledRounds,
        Self::StepState,
        Self::NewestMessages,
        Self::Tail,
        Self::SpeakersSinceUserMessage,
        Self::LiveConversations,
        Self::Marks,
    ];

    fn name(self) -> String {
        match self {
            Self::RunList(status) => format!("admin list of {} runs", status.word()),
            Self::RunListOfConversation => "failed runs of a conversation".to_owned(),
            Self::StalledRounds => "rounds without a run (reaper)".to_owned(),
            Self::StepState => "a step loads its state".to_owned(),
            Self::NewestMessages => "newest message of each role".to_owned(),
            Self::Tail => "newest visible message".to_owned(),
            Self::SpeakersSinceUserMessage => "speakers since the last user message".to_owned(),
            Self::LiveConversations => "conversations that a change steps immediately".to_owned(),
            Self::Marks => "a change marks all conversations (grows with them)".to_owned(),
        }
    }

    async fn median(self, db: &Db) -> Duration {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            if matches!(self, Self::Marks) {
                unmark(db).await;
            }
            let began = Instant::now();
            self.run(db).await.unwrap();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        times[ROUNDS / 2]
    }

    async fn run(self, db: &Db) -> Result<(), DbErr> {
        let reader = db.reader();
        match self {
            Self::RunList(status) => {
                let run_query = RunQuery {
                    status: Some(status),
                    ..RunQuery::default()
                };
                list(db, run_query).await?;
            }
            Self::RunListOfConversation => {
                let run_query = RunQuery {
                    status: Some(RunStatus::Failed),
                    conversation: Some(CONVERSATION),
                    ..RunQuery::default()
                };
                list(db, run_query).await?;
            }
            Self::StalledRounds => _ = recovery::list_stalled_rounds(reader).await?,
            Self::StepState => {
                let loaded: Result<_, DbErr> = db
                    .write(|tx| {
                        Box::pin(async move {
                            state_loader::load(
                                tx,
                                &StateCache::default(),
                                CONVERSATION,
                                &Command::ApplyChanges,
                            )
                            .await
                        })
                    })
                    .await;
                loaded?.unwrap();
            }
            Self::NewestMessages => _ = newest_messages::find(reader, CONVERSATION).await?,
            Self::Tail => {
                let row = conversation::Entity::find_by_id(CONVERSATION);
                let row = row.one(reader).await?.unwrap();
                timeline::list_tails(reader, [&row]).await?;
            }
            Self::SpeakersSinceUserMessage => {
                let row = conversation::Entity::find_by_id(CONVERSATION);
                let row = row.one(reader).await?.unwrap();
                timeline::speakers_since_last_user_message(reader, &row).await?;
            }
            Self::LiveConversations => _ = space_changes::list_live(reader, SPACE).await?,
            Self::Marks => {
                let marked: Result<(), DbErr> = db
                    .write(|tx| Box::pin(async move { needs_step::mark_all(tx, SPACE).await }))
                    .await;
                marked?;
            }
        }
        Ok(())
    }
}

async fn list(db: &Db, run_query: RunQuery) -> Result<(), DbErr> {
    let page = PageQuery {
        limit: 50,
        after: None,
        before: None,
    };
    let newest = run_query.list(db.reader(), db.backend(), page);
    newest.await.map(drop)
}

async fn unmark(db: &Db) {
    let unmark = "UPDATE conversations SET needs_step = FALSE WHERE needs_step";
    db.heartbeat_connection()
        .execute_unprepared(unmark)
        .await
        .unwrap();
}

async fn fill(backend: TestBackend, size: Size) -> FilledDatabase {
    let database = fresh_database(&backend).await;
    let options = DbOptions {
        url: database.url().to_owned(),
        synchronous_full: false,
    };
    let db = Db::connect(&options).await.unwrap();
    db.migrate().await.unwrap();
    for sql in rows(backend, size) {
        db.heartbeat_connection()
            .execute_unprepared(&sql)
            .await
            .unwrap();
    }
    newest_messages::refresh(db.heartbeat_connection(), CONVERSATION)
        .await
        .unwrap();
    FilledDatabase {
        db,
        _database: database,
    }
}

fn rows(backend: TestBackend, size: Size) -> Vec<String> {
    let (uuid, analyze) = match backend {
        TestBackend::Sqlite => ("randomblob(16)", "SELECT 1"),
        TestBackend::Postgres => ("gen_random_uuid()", "ANALYZE"),
    };
    let series = |n: u32| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n})")
    };
    let Size {
        runs,
        messages,
        removed,
        conversations,
    } = size;
    vec![
        "INSERT INTO spaces (id, name, description, settings, created_at) VALUES (1, 'Inn', '', '{}', 0)".to_owned(),
        "INSERT INTO space_memberships (id, space_id, kind, position, cached_display_name, aliases, settings, created_at) \
         VALUES (1, 1, 'human', 0, 'Eve', '[]', '{}', 0), (2, 1, 'character', 1, 'Ada', '[]', '{}', 0)".to_owned(),
        format!(
            "{} INSERT INTO space_memberships (id, space_id, kind, role, status, position, cached_display_name, aliases, settings, created_at) \
             SELECT 2 + i, 1, 'human', 'guest', 'removed', 1 + i, 'Guest ' || i, '[]', '{{}}', 0 FROM n",
            series(removed)
        ),
        format!(
            "{} INSERT INTO conversations (id, space_id, title, settings, variables, created_at) \
             SELECT i, 1, 'Conversation ' || i, '{{}}', '{{}}', 0 FROM n",
            series(conversations)
        ),
        // Half of the messages, and all of the newer half, are from users: none of those got a
        // reply.
        format!(
            "{} INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, created_at, rev, metadata) \
             SELECT 1, i, CASE WHEN i < {messages} / 2 AND i % 2 = 0 THEN 2 ELSE 1 END, \
               CASE WHEN i < {messages} / 2 AND i % 2 = 0 THEN 'assistant' ELSE 'user' END, 'Hello.', i, i, '{{}}' FROM n",
            series(messages)
        ),
        format!("UPDATE conversations SET last_seq = {messages}, rev = {messages} WHERE id = 1"),
        format!(
            "{} INSERT INTO conversation_runs (id, conversation_id, run_seq, space_id, kind, status, reason, speaker_space_membership_id, created_at, finished_at, debug) \
             SELECT {uuid}, 1 + i % 10, i, 1, 'user_turn', CASE WHEN i % 50 = 0 THEN 'failed' ELSE 'succeeded' END, \
               'user_message', 2, i, i, '{{}}' FROM n",
            series(runs)
        ),
        format!("UPDATE conversations SET last_run_seq = {runs}"),
        format!(
            "{} INSERT INTO conversation_rounds (id, conversation_id, status, seed, created_at) \
             SELECT {uuid}, 1 + i % 10, 'finished', i, i FROM n",
            series(runs)
        ),
        analyze.to_owned(),
    ]
}
