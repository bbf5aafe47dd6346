//! Migrations keep the rows that exist, on both databases.

use std::collections::HashMap;

use base::ids::{MembershipId, SpaceId};
use migration::{Migrator, MigratorTrait};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, EntityTrait, QueryOrder};
use troupe::conversations::token_usage;
use troupe::rounds::round;
use troupe::rounds::round::RoundStatus;
use troupe::rounds::slot::{Slot, SlotStatus};

use super::schema::revert_from;
use crate::support::backends::{TestBackend, TestDatabase, fresh_database, on_both};
use crate::support::database_facts::DatabaseFacts;

on_both! {
    async fn a_migration_stores_the_newest_messages_of_existing_conversations(backend) {
        let database = fresh_database(&backend).await;
        let connection = migrated_before("m20261123_000054_store_newest_messages", &database).await;
        connection.execute_unprepared(EXISTING_MESSAGES).await.expect("the rows are inserted");

        Migrator::up(&connection, None).await.expect("the migrations are applied");

        let mut facts = DatabaseFacts::open(&database).await;
        let stored = "SELECT CAST(last_speaker_membership_id AS TEXT), CAST(last_assistant_seq AS TEXT), \
            CAST(last_user_seq AS TEXT) FROM conversations ORDER BY id";
        let stored = facts.rows(stored).await;
        let text = |it: &str| Some(it.to_owned());
        assert_eq!(stored, [vec![text("2"), text("3"), text("4")], vec![None, None, None]]);
    }

    async fn a_migration_moves_the_slots_of_existing_rounds_into_their_rows_and_back(backend) {
        let database = fresh_database(&backend).await;
        let moves_slots = "m20261126_000073_slots_of_rounds";
        let connection = migrated_before(moves_slots, &database).await;
        connection.execute_unprepared(EXISTING_MESSAGES).await.expect("the rows are inserted");
        let mut facts = DatabaseFacts::open(&database).await;
        let (one, two) = (uuid(backend, 1), uuid(backend, 2));
        facts.execute(&format!(
            "INSERT INTO conversation_rounds (id, conversation_id, status, seed, created_at) \
             VALUES ({one}, 1, 'finished', 1, 0), ({two}, 1, 'active', 2, 0)"
        )).await;
        facts.execute(&format!(
            "INSERT INTO round_slots (round_id, position, space_membership_id, status, skip_reason, chosen_because, forced) \
             VALUES ({one}, 1, 2, 'skipped', 'not_schedulable', 'named \"Ada\"', TRUE), ({one}, 0, 1, 'spoken', NULL, 'named \"Ada\"', FALSE)"
        )).await;
        let before = facts.rows(SLOTS_OF_ROUNDS).await;

        Migrator::up(&connection, None).await.expect("the migrations are applied");

        let of_rounds = round::Entity::find().order_by_asc(round::Column::Seed).all(&connection).await;
        let of_rounds: Vec<Vec<Slot>> = of_rounds.expect("the rounds are read").into_iter().map(|it| it.slots.0).collect();
        let slot = |position, member, status, skip_reason: Option<&str>, forced| Slot {
            position,
            space_membership_id: Some(MembershipId(member)),
            status,
            message_id: None,
            skip_reason: skip_reason.map(str::to_owned),
            chosen_because: "named \"Ada\"".to_owned(),
            forced,
        };
        let first = [
            slot(0, 1, SlotStatus::Spoken, None, false),
            slot(1, 2, SlotStatus::Skipped, Some("not_schedulable"), true),
        ];
        assert_eq!(of_rounds, [first.to_vec(), vec![]]);
        revert_from(moves_slots, &connection).await;
        assert_eq!(facts.rows(SLOTS_OF_ROUNDS).await, before);
    }

    async fn a_migration_allows_runs_without_a_speaker_and_its_reversal_removes_them_alone(backend) {
        let database = fresh_database(&backend).await;
        let allows_them = "m20261129_000112_runs_without_speaker";
        let connection = migrated_before(allows_them, &database).await;
        connection.execute_unprepared(EXISTING_MESSAGES).await.expect("the rows are inserted");
        let mut facts = DatabaseFacts::open(&database).await;
        let ids = [1, 2, 3, 4, 5].map(|n| uuid(backend, n));
        let [finished, active, spoken, undecided, waiting] = &ids;
        let slot = |position: i64, member: &str| format!(
            r#"{{"position":{position},"space_membership_id":{member},"status":"skipped","chosen_because":"named \"Ada\"","forced":false}}"#
        );
        facts.execute(&format!(
            "INSERT INTO conversation_rounds (id, conversation_id, status, seed, created_at, slots) \
             VALUES ({finished}, 1, 'finished', 1, 0, '[{},{}]'), ({active}, 1, 'active', 2, 0, '[{}]')",
            slot(0, "2"), slot(1, "3"), slot(0, "2")
        )).await;
        let run = |id: &str, round: &str, status: &str, speaker: &str, n: i64| format!(
            "INSERT INTO conversation_runs (id, conversation_id, space_id, run_seq, round_id, status, reason, speaker_space_membership_id, created_at, debug) \
             VALUES ({id}, 1, 1, {n}, {round}, '{status}', 'user_message', {speaker}, 0, '{{}}')"
        );
        facts.execute(&run(spoken, finished, "succeeded", "2", 1)).await;
        facts.execute(&format!("UPDATE messages SET conversation_run_id = {spoken} WHERE seq = 3")).await;
        let written = "SELECT CAST(seq AS TEXT) FROM messages WHERE conversation_run_id IS NOT NULL";

        Migrator::up(&connection, None).await.expect("the migrations are applied");
        facts.execute(&run(undecided, finished, "skipped", "NULL", 2)).await;
        facts.execute(&run(waiting, active, "queued", "NULL", 3)).await;
        let slots = format!("'[{},{}]'", slot(0, "null"), slot(1, "3"));
        facts.execute(&format!("UPDATE conversation_rounds SET slots = {slots} WHERE id = {finished}")).await;
        let before = facts.rows(written).await;
        revert_from(allows_them, &connection).await;

        let text = |it: &str| Some(it.to_owned());
        assert_eq!(before, [vec![text("3")]]);
        assert_eq!(facts.rows(written).await, before);
        let speakers = "SELECT CAST(run_seq AS TEXT), CAST(speaker_space_membership_id AS TEXT) FROM conversation_runs";
        assert_eq!(facts.rows(speakers).await, [vec![text("1"), text("2")]]);
        let rounds = round::Entity::find().order_by_asc(round::Column::Seed).all(&connection).await;
        let rounds = rounds.expect("the rounds are read");
        let left: Vec<_> = rounds.iter().map(|it| (it.status, it.slots.0.len())).collect();
        assert_eq!(left, [(RoundStatus::Finished, 1), (RoundStatus::Canceled, 1)]);
        let refused = connection.execute_unprepared(&run(waiting, finished, "skipped", "NULL", 4)).await;
        assert!(refused.is_err(), "a run without a speaker is allowed");
    }

    async fn a_migration_keeps_the_tokens_of_each_space_and_so_does_its_reversal(backend) {
        let database = fresh_database(&backend).await;
        let counts_in_conversations = "m20261127_000074_tokens_of_conversations";
        let connection = migrated_before(counts_in_conversations, &database).await;
        connection.execute_unprepared(EXISTING_MESSAGES).await.expect("the rows are inserted");
        let mut facts = DatabaseFacts::open(&database).await;
        facts.execute("INSERT INTO spaces (id, name, description, settings, created_at) VALUES (9, 'Empty', '', '{}', 0)").await;
        facts.execute("UPDATE spaces SET tokens_used = 2 * id").await;

        Migrator::up(&connection, None).await.expect("the migrations are applied");

        let used = token_usage::list_for_spaces(&connection, [SpaceId(1), SpaceId(9)]).await;
        assert_eq!(used.expect("the tokens are counted"), HashMap::from([(SpaceId(1), 2), (SpaceId(9), 18)]));
        facts.execute("UPDATE conversations SET tokens_used = 10 * id").await;
        let used = token_usage::list_for_spaces(&connection, [SpaceId(1), SpaceId(9)]).await;
        assert_eq!(used.expect("the tokens are counted"), HashMap::from([(SpaceId(1), 32), (SpaceId(9), 18)]));
        revert_from(counts_in_conversations, &connection).await;
        let reverted = facts.rows("SELECT CAST(tokens_used AS TEXT) FROM spaces ORDER BY id").await;
        assert_eq!(reverted, [[Some("32".to_owned())], [Some("18".to_owned())]]);
    }
}

/// Returns a connection to a database in the state before this migration.
async fn migrated_before(step: &str, database: &TestDatabase) -> DatabaseConnection {
    let connection = Database::connect(database.url()).await;
    let connection = connection.expect("the test database is reachable");
    let applied = Migrator::up(&connection, None).await;
    applied.expect("all migrations are applied");
    revert_from(step, &connection).await;
    connection
}

/// Returns the SQL literal of the id of a round.
fn uuid(backend: TestBackend, n: u128) -> String {
    match backend {
        TestBackend::Sqlite => format!("X'{n:032x}'"),
        TestBackend::Postgres => format!("'{n:032x}'"),
    }
}

/// Two conversations: one with visible and hidden messages of each role, and one without messages.
const EXISTING_MESSAGES: &str = "\
    INSERT INTO spaces (id, name, description, settings, created_at) VALUES (1, 'Inn', '', '{}', 0); \
    INSERT INTO space_memberships (id, space_id, kind, cached_display_name, aliases, settings, created_at) \
      VALUES (1, 1, 'human', 'Eve', '[]', '{}', 0), (2, 1, 'character', 'Ada', '[]', '{}', 0), \
        (3, 1, 'character', 'Bob', '[]', '{}', 0); \
    INSERT INTO conversations (id, space_id, title, settings, variables, created_at) \
      VALUES (1, 1, 'On stage', '{}', '{}', 0), (2, 1, 'Empty', '{}', '{}', 0); \
    INSERT INTO messages (conversation_id, seq, space_membership_id, role, content, visibility, created_at, rev, metadata) \
      VALUES (1, 1, 1, 'user', 'a', 'normal', 0, 1, '{}'), (1, 2, 3, 'assistant', 'b', 'normal', 0, 1, '{}'), \
        (1, 3, 2, 'assistant', 'c', 'excluded', 0, 1, '{}'), (1, 4, 1, 'user', 'd', 'normal', 0, 1, '{}'), \
        (1, 5, 3, 'assistant', 'e', 'hidden', 0, 1, '{}'), (1, 6, 1, 'user', 'f', 'hidden', 0, 1, '{}'), \
        (1, 7, 1, 'system', 'g', 'normal', 0, 1, '{}')";

/// The slots without their ids.
const SLOTS_OF_ROUNDS: &str = "\
    SELECT CAST(r.seed AS TEXT), CAST(s.position AS TEXT), CAST(s.space_membership_id AS TEXT), \
      s.status, s.skip_reason, s.chosen_because, CAST(s.forced AS TEXT) \
    FROM round_slots s JOIN conversation_rounds r ON r.id = s.round_id ORDER BY 1, 2";
