//! Adds the slow mode of spaces: `slow_mode_s`, the least time between two posts of a member, and
//! `last_post_at` of memberships. A change of `last_post_at` alone is no change of the roster, so the
//! trigger that counts those ignores it.

use crate::columns::between;
use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::big_integer_null;
use sea_orm_migration::sea_orm::DatabaseBackend;

const SPACES: &str = "spaces";
const MEMBERSHIPS: &str = "space_memberships";
const INTERVAL: &str = "slow_mode_s";
const LAST_POST: &str = "last_post_at";
/// Six hours.
const MAX_SECONDS: i64 = 21_600;

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let columns = [
            (SPACES, between(INTERVAL, 0, 0, MAX_SECONDS)),
            (MEMBERSHIPS, big_integer_null(LAST_POST)),
        ];
        for (table, column) in columns {
            let add = Table::alter().table(table).add_column(column).to_owned();
            manager.alter_table(add).await?;
        }
        replace_trigger(manager, true).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        replace_trigger(manager, false).await?;
        for (table, column) in [(SPACES, INTERVAL), (MEMBERSHIPS, LAST_POST)] {
            let drop = Table::alter().table(table).drop_column(column).to_owned();
            manager.alter_table(drop).await?;
        }
        Ok(())
    }
}

/// Creates the trigger of migration 72 again, with or without the exception for posts.
async fn replace_trigger(manager: &SchemaManager<'_>, ignores_posts: bool) -> Result<(), DbErr> {
    let is_roster_change = "(old.status = 'active' OR new.status = 'active') \
        AND (old.copilot_mode = 'none' OR old.status <> new.status)";
    let (drop, create) = match manager.get_database_backend() {
        DatabaseBackend::Postgres => {
            let posts = match ignores_posts {
                true => "AND old.last_post_at IS NOT DISTINCT FROM new.last_post_at",
                false => "",
            };
            (
                "DROP TRIGGER roster_update ON space_memberships",
                format!(
                    "CREATE TRIGGER roster_update AFTER UPDATE ON space_memberships \
                     FOR EACH ROW WHEN ({is_roster_change} {posts}) \
                     EXECUTE FUNCTION count_roster_change()"
                ),
            )
        }
        _ => {
            let posts = match ignores_posts {
                true => "AND old.last_post_at IS new.last_post_at",
                false => "",
            };
            (
                "DROP TRIGGER roster_update",
                format!(
                    "CREATE TRIGGER roster_update AFTER UPDATE ON space_memberships \
                     WHEN {is_roster_change} {posts} BEGIN \
                     UPDATE spaces SET roster_rev = roster_rev + 1 WHERE id = new.space_id; END"
                ),
            )
        }
    };
    let connection = manager.get_connection();
    connection.execute_unprepared(drop).await?;
    connection.execute_unprepared(&create).await?;
    Ok(())
}
