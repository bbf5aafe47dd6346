//! Adds `regex_allowed` to characters and presets: whether their regex scripts run. Adds `scripts_rev`
//! to spaces, and triggers that increment it when scripts that may run there change: those of a card or
//! preset that a member has, or of the preset of the space. It is 0 in a space that never had any, so
//! that pages of messages there need no query for scripts.

use sea_orm_migration::prelude::*;
use sea_orm_migration::schema::{big_integer, boolean};
use sea_orm_migration::sea_orm::DatabaseBackend;

const ALLOWED: &str = "regex_allowed";
const LIBRARY: [&str; 2] = ["characters", "presets"];
const SPACES: &str = "spaces";
const REVISION: &str = "scripts_rev";

#[derive(DeriveMigrationName)]
pub struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true) // SQLite too: a step is whole or not at all
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in LIBRARY {
            let column = boolean(ALLOWED).default(false).take();
            let table = Table::alter().table(table).add_column(column).to_owned();
            manager.alter_table(table).await?;
        }
        let column = big_integer(REVISION).default(0).take();
        let table = Table::alter().table(SPACES).add_column(column).to_owned();
        manager.alter_table(table).await?;
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
        let table = Table::alter()
            .table(SPACES)
            .drop_column(REVISION)
            .to_owned();
        manager.alter_table(table).await?;
        for table in LIBRARY {
            let table = Table::alter().table(table).drop_column(ALLOWED).to_owned();
            manager.alter_table(table).await?;
        }
        Ok(())
    }
}

async fn execute(manager: &SchemaManager<'_>, steps: &[&str]) -> Result<(), DbErr> {
    for sql in steps {
        manager.get_connection().execute_unprepared(sql).await?;
    }
    Ok(())
}

const SQLITE_UP: [&str; 6] = [
    "CREATE TRIGGER scripts_of_character AFTER UPDATE OF regex_allowed, content_hash ON characters \
        WHEN old.regex_allowed OR new.regex_allowed BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id IN \
        (SELECT space_id FROM space_memberships WHERE character_id = new.id); END",
    "CREATE TRIGGER scripts_of_preset AFTER UPDATE OF regex_allowed, origin ON presets \
        WHEN old.regex_allowed OR new.regex_allowed BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id IN \
        (SELECT space_id FROM space_memberships WHERE preset_id = new.id) \
        OR CAST(json_extract(settings, '$.preset.preset_id') AS TEXT) = CAST(new.id AS TEXT); END",
    "CREATE TRIGGER scripts_of_new_member AFTER INSERT ON space_memberships \
        WHEN EXISTS (SELECT 1 FROM characters WHERE id = new.character_id AND regex_allowed) \
        OR EXISTS (SELECT 1 FROM presets WHERE id = new.preset_id AND regex_allowed) BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id = new.space_id; END",
    "CREATE TRIGGER scripts_of_member AFTER UPDATE OF character_id, preset_id ON space_memberships \
        WHEN EXISTS (SELECT 1 FROM characters WHERE id = new.character_id AND regex_allowed) \
        OR EXISTS (SELECT 1 FROM presets WHERE id = new.preset_id AND regex_allowed) BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id = new.space_id; END",
    "CREATE TRIGGER scripts_of_new_space AFTER INSERT ON spaces \
        WHEN EXISTS (SELECT 1 FROM presets WHERE regex_allowed AND CAST(id AS TEXT) = \
        CAST(json_extract(new.settings, '$.preset.preset_id') AS TEXT)) BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id = new.id; END",
    "CREATE TRIGGER scripts_of_space AFTER UPDATE OF settings ON spaces \
        WHEN EXISTS (SELECT 1 FROM presets WHERE regex_allowed AND CAST(id AS TEXT) = \
        CAST(json_extract(new.settings, '$.preset.preset_id') AS TEXT)) BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id = new.id; END",
];

const SQLITE_DOWN: [&str; 6] = [
    "DROP TRIGGER scripts_of_space",
    "DROP TRIGGER scripts_of_new_space",
    "DROP TRIGGER scripts_of_member",
    "DROP TRIGGER scripts_of_new_member",
    "DROP TRIGGER scripts_of_preset",
    "DROP TRIGGER scripts_of_character",
];

const POSTGRES_UP: [&str; 10] = [
    "CREATE FUNCTION count_scripts_of_character() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id IN \
        (SELECT space_id FROM space_memberships WHERE character_id = NEW.id); \
        RETURN NULL; END $$",
    "CREATE FUNCTION count_scripts_of_preset() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id IN \
        (SELECT space_id FROM space_memberships WHERE preset_id = NEW.id) \
        OR settings #>> '{preset,preset_id}' = NEW.id::text; \
        RETURN NULL; END $$",
    "CREATE FUNCTION count_scripts_of_member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF EXISTS (SELECT 1 FROM characters WHERE id = NEW.character_id AND regex_allowed) \
        OR EXISTS (SELECT 1 FROM presets WHERE id = NEW.preset_id AND regex_allowed) THEN \
        UPDATE spaces SET scripts_rev = scripts_rev + 1 WHERE id = NEW.space_id; END IF; \
        RETURN NULL; END $$",
    "CREATE FUNCTION count_scripts_of_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF EXISTS (SELECT 1 FROM presets WHERE regex_allowed \
        AND id::text = NEW.settings #>> '{preset,preset_id}') THEN \
        NEW.scripts_rev = NEW.scripts_rev + 1; END IF; \
        RETURN NEW; END $$",
    "CREATE TRIGGER scripts_of_character AFTER UPDATE OF regex_allowed, content_hash ON characters \
        FOR EACH ROW WHEN (OLD.regex_allowed OR NEW.regex_allowed) \
        EXECUTE FUNCTION count_scripts_of_character()",
    "CREATE TRIGGER scripts_of_preset AFTER UPDATE OF regex_allowed, origin ON presets \
        FOR EACH ROW WHEN (OLD.regex_allowed OR NEW.regex_allowed) \
        EXECUTE FUNCTION count_scripts_of_preset()",
    "CREATE TRIGGER scripts_of_new_member AFTER INSERT ON space_memberships \
        FOR EACH ROW EXECUTE FUNCTION count_scripts_of_member()",
    "CREATE TRIGGER scripts_of_member AFTER UPDATE OF character_id, preset_id ON space_memberships \
        FOR EACH ROW EXECUTE FUNCTION count_scripts_of_member()",
    "CREATE TRIGGER scripts_of_new_space BEFORE INSERT ON spaces \
        FOR EACH ROW EXECUTE FUNCTION count_scripts_of_space()",
    "CREATE TRIGGER scripts_of_space BEFORE UPDATE OF settings ON spaces \
        FOR EACH ROW EXECUTE FUNCTION count_scripts_of_space()",
];

const POSTGRES_DOWN: [&str; 10] = [
    "DROP TRIGGER scripts_of_space ON spaces",
    "DROP TRIGGER scripts_of_new_space ON spaces",
    "DROP TRIGGER scripts_of_member ON space_memberships",
    "DROP TRIGGER scripts_of_new_member ON space_memberships",
    "DROP TRIGGER scripts_of_preset ON presets",
    "DROP TRIGGER scripts_of_character ON characters",
    "DROP FUNCTION count_scripts_of_space()",
    "DROP FUNCTION count_scripts_of_member()",
    "DROP FUNCTION count_scripts_of_preset()",
    "DROP FUNCTION count_scripts_of_character()",
];
