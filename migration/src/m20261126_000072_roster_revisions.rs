//! Adds `roster_rev` to spaces and triggers that increment it with each change of an active
//! membership, so that a node can keep the members of a space in memory until the number changes.
//!
//! A change of a member whose copilot is on does not count, unless the member is added or removed:
//! steps make such changes while they hold other locks, and a roster with a copilot is not kept.
//! Other transactions lock the spaces before they write their memberships.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer;
use sea_orm_migration::sea_orm::DatabaseBackend;

const TABLE: &str = "spaces";
const COLUMN: &str = "roster_rev";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let column = big_integer(COLUMN).default(0).take();
        let add = Table::alter().table(TABLE).add_column(column).to_owned();
        manager.alter_table(add).await?;
        match manager.get_database_backend() {
            DatabaseBackend::Postgres => execute(manager, &POSTGRES_UP).await,
            _ => execute(manager, &SQLITE_UP).await,
        }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DatabaseBackend::Postgres => execute(manager, &POSTGRES_DOWN).await?,
            _ => execute(manager, &SQLITE_DOWN).await?,
        }
        let drop = Table::alter().table(TABLE).drop_column(COLUMN).to_owned();
        manager.alter_table(drop).await
    }
}

async fn execute(manager: &SchemaManager<'_>, steps: &[&str]) -> Result<(), DbErr> {
    for sql in steps {
        manager.get_connection().execute_unprepared(sql).await?;
    }
    Ok(())
}

const SQLITE_UP: [&str; 3] = [
    "CREATE TRIGGER roster_insert AFTER INSERT ON space_memberships \
        WHEN new.status = 'active' BEGIN \
        UPDATE spaces SET roster_rev = roster_rev + 1 WHERE id = new.space_id; END",
    "CREATE TRIGGER roster_update AFTER UPDATE ON space_memberships \
        WHEN (old.status = 'active' OR new.status = 'active') \
        AND (old.copilot_mode = 'none' OR old.status <> new.status) BEGIN \
        UPDATE spaces SET roster_rev = roster_rev + 1 WHERE id = new.space_id; END",
    "CREATE TRIGGER roster_delete AFTER DELETE ON space_memberships \
        WHEN old.status = 'active' BEGIN \
        UPDATE spaces SET roster_rev = roster_rev + 1 WHERE id = old.space_id; END",
];

const SQLITE_DOWN: [&str; 3] = [
    "DROP TRIGGER roster_delete",
    "DROP TRIGGER roster_update",
    "DROP TRIGGER roster_insert",
];

const POSTGRES_UP: [&str; 4] = [
    "CREATE FUNCTION count_roster_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        UPDATE spaces SET roster_rev = roster_rev + 1 \
        WHERE id = CASE TG_OP WHEN 'DELETE' THEN OLD.space_id ELSE NEW.space_id END; \
        RETURN NULL; END $$",
    "CREATE TRIGGER roster_insert AFTER INSERT ON space_memberships \
        FOR EACH ROW WHEN (NEW.status = 'active') EXECUTE FUNCTION count_roster_change()",
    "CREATE TRIGGER roster_update AFTER UPDATE ON space_memberships \
        FOR EACH ROW WHEN ((OLD.status = 'active' OR NEW.status = 'active') \
        AND (OLD.copilot_mode = 'none' OR OLD.status <> NEW.status)) \
        EXECUTE FUNCTION count_roster_change()",
    "CREATE TRIGGER roster_delete AFTER DELETE ON space_memberships \
        FOR EACH ROW WHEN (OLD.status = 'active') EXECUTE FUNCTION count_roster_change()",
];

const POSTGRES_DOWN: [&str; 4] = [
    "DROP TRIGGER roster_delete ON space_memberships",
    "DROP TRIGGER roster_update ON space_memberships",
    "DROP TRIGGER roster_insert ON space_memberships",
    "DROP FUNCTION count_roster_change()",
];
