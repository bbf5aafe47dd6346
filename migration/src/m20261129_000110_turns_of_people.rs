//! Adds turns of people: to spaces whether people take turns and how long one lasts, to memberships
//! whether a person is away, and to rounds the state `waiting` with the start and the end of the turn for
//! which they wait.

use crate::columns::{between, index, instant_null, word};
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::boolean;
use sea_orm_migration::sea_orm::DbBackend;

const SPACES: &str = "spaces";
const TAKE_TURNS: &str = "humans_take_turns";
const TIMEOUT: &str = "human_turn_timeout_s";
/// One day.
const MAX_TIMEOUT_S: i64 = 86_400;
const MEMBERSHIPS: &str = "space_memberships";
const AWAY: &str = "is_away";
const ROUNDS: &str = "conversation_rounds";
const STARTED: &str = "turn_started_at";
const DEADLINE: &str = "deadline_at";
const BY_DEADLINE: &str = "turns_by_deadline";
const STATE: &str = "state";
/// Holds the states of the rounds on SQLite, until it replaces the column.
const NEW_STATE: &str = "new_state";
const BEFORE: &[&str] = &["generating", "paused", "failed"];
const AFTER: &[&str] = &["generating", "waiting", "paused", "failed"];

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for (table, column) in [
            (SPACES, boolean(TAKE_TURNS).default(false).take()),
            (SPACES, between(TIMEOUT, 0, 0, MAX_TIMEOUT_S)),
            (MEMBERSHIPS, boolean(AWAY).default(false).take()),
            (ROUNDS, instant_null(STARTED)),
            (ROUNDS, instant_null(DEADLINE)),
        ] {
            let add = Table::alter().table(table).add_column(column).to_owned();
            manager.alter_table(add).await?;
        }
        set_states(manager, AFTER).await?;
        let by_deadline = index(BY_DEADLINE, ROUNDS, &[DEADLINE])
            .and_where(Expr::cust("status = 'active' AND deadline_at IS NOT NULL"))
            .take();
        manager.create_index(by_deadline).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let drop = Index::drop().name(BY_DEADLINE).table(ROUNDS).to_owned();
        manager.drop_index(drop).await?;
        // A person can resume it, which skips the turn of the person.
        let pause = "UPDATE conversation_rounds SET state = 'paused' WHERE state = 'waiting'";
        manager.get_connection().execute_unprepared(pause).await?;
        set_states(manager, BEFORE).await?;
        for (table, column) in [
            (ROUNDS, DEADLINE),
            (ROUNDS, STARTED),
            (MEMBERSHIPS, AWAY),
            (SPACES, TIMEOUT),
            (SPACES, TAKE_TURNS),
        ] {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// Replaces the CHECK of the states.
async fn set_states(manager: &SchemaManager<'_>, states: &[&'static str]) -> Result<(), DbErr> {
    let connection = manager.get_connection();
    if manager.get_database_backend() == DbBackend::Postgres {
        let words: Vec<String> = states.iter().map(|it| format!("'{it}'")).collect();
        let replace = format!(
            "ALTER TABLE {ROUNDS} DROP CONSTRAINT {ROUNDS}_state_check, \
            ADD CONSTRAINT {ROUNDS}_state_check CHECK ({STATE} IN ({}))",
            words.join(", ")
        );
        return connection.execute_unprepared(&replace).await.map(|_| ());
    }
    // SQLite cannot change a CHECK, but it drops that of a column together with the column.
    let column = word(NEW_STATE, "generating", states);
    let add = Table::alter().table(ROUNDS).add_column(column).to_owned();
    manager.alter_table(add).await?;
    let copy = format!("UPDATE {ROUNDS} SET {NEW_STATE} = {STATE}");
    connection.execute_unprepared(&copy).await?;
    let drop = Table::alter().table(ROUNDS).drop_column(STATE).to_owned();
    manager.alter_table(drop).await?;
    let rename = Table::alter()
        .table(ROUNDS)
        .rename_column(NEW_STATE, STATE)
        .to_owned();
    manager.alter_table(rename).await
}
