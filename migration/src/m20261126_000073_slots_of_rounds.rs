//! Moves the slots of a round from a table of their own into its row, because they are read and
//! written together.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::*;
use sea_orm_migration::sea_orm::DatabaseBackend;

use crate::columns::*;

const ROUNDS: &str = "conversation_rounds";
const SLOTS: &str = "round_slots";
const COLUMN: &str = "slots";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = json_binary(COLUMN).default("[]").take();
        let add = Table::alter().table(ROUNDS).add_column(column).to_owned();
        manager.alter_table(add).await?;
        let move_slots = match manager.get_database_backend() {
            DatabaseBackend::Postgres => POSTGRES_UP,
            _ => SQLITE_UP,
        };
        let connection = manager.get_connection();
        connection.execute_unprepared(move_slots).await?;
        drop_all(manager, &[SLOTS]).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.create_table(slots()).await?;
        for index in indexes() {
            manager.create_index(index).await?;
        }
        let move_slots = match manager.get_database_backend() {
            DatabaseBackend::Postgres => POSTGRES_DOWN,
            _ => SQLITE_DOWN,
        };
        let connection = manager.get_connection();
        connection.execute_unprepared(move_slots).await?;
        let drop = Table::alter().table(ROUNDS).drop_column(COLUMN).to_owned();
        manager.alter_table(drop).await
    }
}

fn slots() -> TableCreateStatement {
    let refers = |column, table| refers(SLOTS, column, table, ForeignKeyAction::Cascade);
    Table::create()
        .table(SLOTS)
        .col(id())
        .col(uuid("round_id"))
        .col(big_integer("position"))
        .col(big_integer("space_membership_id"))
        .col(word("status", "pending", &["pending", "spoken", "skipped"]))
        .col(string_len_null("skip_reason", 64))
        .col(text("chosen_because"))
        .col(boolean("forced").default(false))
        .foreign_key(&mut refers("round_id", ROUNDS))
        .foreign_key(&mut refers("space_membership_id", "space_memberships"))
        .take()
}

fn indexes() -> [IndexCreateStatement; 2] {
    [
        unique("one_slot_per_position", SLOTS, &["round_id", "position"]),
        index("slots_of_a_seat", SLOTS, &["space_membership_id"]).take(),
    ]
}

const SQLITE_UP: &str = "UPDATE conversation_rounds SET slots = (\
    SELECT json_group_array(json_object('position', s.position, \
      'space_membership_id', s.space_membership_id, 'status', s.status, \
      'skip_reason', s.skip_reason, 'chosen_because', s.chosen_because, \
      'forced', json(iif(s.forced, 'true', 'false')))) \
    FROM (SELECT * FROM round_slots WHERE round_id = conversation_rounds.id ORDER BY position) s)";

const POSTGRES_UP: &str = "UPDATE conversation_rounds SET slots = s.slots FROM (\
    SELECT round_id, jsonb_agg(jsonb_build_object('position', position, \
      'space_membership_id', space_membership_id, 'status', status, \
      'skip_reason', skip_reason, 'chosen_because', chosen_because, 'forced', forced) \
      ORDER BY position) AS slots \
    FROM round_slots GROUP BY round_id) s WHERE s.round_id = conversation_rounds.id";

/// Slots of deleted memberships are left out.
const SQLITE_DOWN: &str = "INSERT INTO round_slots (round_id, position, space_membership_id, \
      status, skip_reason, chosen_because, forced) \
    SELECT r.id, s.value ->> 'position', m.id, s.value ->> 'status', s.value ->> 'skip_reason', \
      s.value ->> 'chosen_because', s.value ->> 'forced' \
    FROM conversation_rounds r, json_each(r.slots) s \
    JOIN space_memberships m ON m.id = s.value ->> 'space_membership_id'";

const POSTGRES_DOWN: &str = "INSERT INTO round_slots (round_id, position, space_membership_id, \
      status, skip_reason, chosen_because, forced) \
    SELECT r.id, (s ->> 'position')::bigint, m.id, s ->> 'status', s ->> 'skip_reason', \
      s ->> 'chosen_because', (s ->> 'forced')::boolean \
    FROM conversation_rounds r CROSS JOIN jsonb_array_elements(r.slots) s \
    JOIN space_memberships m ON m.id = (s ->> 'space_membership_id')::bigint";
