//! Allows a run without a speaker, which the director chooses when the run begins:
//! `conversation_runs.speaker_space_membership_id` may be null. So may the member of a slot, which is
//! in the documents of the rounds.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{DbBackend, Statement};

const TABLE: &str = "conversation_runs";
const REQUIRED: &str = r#""speaker_space_membership_id" integer NOT NULL"#;
const OPTIONAL: &str = r#""speaker_space_membership_id" integer NULL"#;

/// The slots of a round that have a member, in their order.
const KEEP_CHOSEN_SQLITE: &str = "UPDATE conversation_rounds SET slots = ( \
    SELECT json_group_array(json(slot.value)) FROM json_each(conversation_rounds.slots) AS slot \
    WHERE json_extract(slot.value, '$.space_membership_id') IS NOT NULL \
) WHERE EXISTS ( \
    SELECT 1 FROM json_each(conversation_rounds.slots) AS slot \
    WHERE json_extract(slot.value, '$.space_membership_id') IS NULL \
)";
const KEEP_CHOSEN_POSTGRES: &str = "UPDATE conversation_rounds SET slots = COALESCE(( \
    SELECT jsonb_agg(slot.value ORDER BY slot.n) \
    FROM jsonb_array_elements(slots) WITH ORDINALITY AS slot(value, n) \
    WHERE slot.value ->> 'space_membership_id' IS NOT NULL \
), '[]'::jsonb) WHERE slots @> '[{\"space_membership_id\": null}]'";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DbBackend::Sqlite => replace_in_definition(manager, REQUIRED, OPTIONAL).await,
            _ => set_not_null(manager, "DROP").await,
        }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let connection = manager.get_connection();
        // Their round cannot continue, and no text has been written for them.
        let end_rounds = "UPDATE conversation_rounds \
            SET status = 'canceled', ended_reason = 'speaker_unavailable' \
            WHERE status = 'active' AND id IN ( \
                SELECT round_id FROM conversation_runs WHERE speaker_space_membership_id IS NULL)";
        let delete_runs = "DELETE FROM conversation_runs WHERE speaker_space_membership_id IS NULL";
        for statement in [end_rounds, delete_runs] {
            connection.execute_unprepared(statement).await?;
        }
        match manager.get_database_backend() {
            DbBackend::Sqlite => {
                connection.execute_unprepared(KEEP_CHOSEN_SQLITE).await?;
                replace_in_definition(manager, OPTIONAL, REQUIRED).await
            }
            _ => {
                connection.execute_unprepared(KEEP_CHOSEN_POSTGRES).await?;
                set_not_null(manager, "SET").await
            }
        }
    }
}

async fn set_not_null(manager: &SchemaManager<'_>, verb: &str) -> Result<(), DbErr> {
    let alter =
        format!("ALTER TABLE {TABLE} ALTER COLUMN speaker_space_membership_id {verb} NOT NULL");
    let connection = manager.get_connection();
    connection.execute_unprepared(&alter).await.map(|_| ())
}

/// Replaces a part of the table's definition. SQLite cannot change NOT NULL otherwise: to create the
/// table again, it would have to be dropped, and the rows that refer to its rows with it. Its manual
/// describes this way for changes that leave the content of the table as it is.
async fn replace_in_definition(
    manager: &SchemaManager<'_>,
    before: &str,
    after: &str,
) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    let version = "PRAGMA schema_version";
    let version = Statement::from_string(DbBackend::Sqlite, version);
    let version = connection.query_one_raw(version).await?;
    let version: i32 = match version {
        Some(row) => row.try_get_by_index(0)?,
        None => return Err(DbErr::Migration("no schema version".to_owned())),
    };
    connection
        .execute_unprepared("PRAGMA writable_schema = ON")
        .await?;
    let replace = "UPDATE sqlite_schema SET sql = replace(sql, ?, ?) \
        WHERE type = 'table' AND name = ? AND instr(sql, ?) > 0";
    let values = [before, after, TABLE, before].map(Value::from);
    let replace = Statement::from_sql_and_values(DbBackend::Sqlite, replace, values);
    let replaced = connection.execute_raw(replace).await?.rows_affected();
    // Every connection, this one included, reads the definition again.
    let reload = format!(
        "PRAGMA schema_version = {}; PRAGMA writable_schema = RESET",
        version + 1
    );
    connection.execute_unprepared(&reload).await?;
    match replaced {
        1 => Ok(()),
        _ => Err(DbErr::Migration(format!("{TABLE} has another definition"))),
    }
}
