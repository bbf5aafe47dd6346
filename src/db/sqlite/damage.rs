//! Checks an SQLite file for damage before it is used if the last process did not stop cleanly, and
//! writes the mark of a clean stop.
//!
//! **Invariant:** the header of a file has a mark if its last process stopped cleanly (`PRAGMA
//! user_version` is [`CLEAN_STOP_MARK`]). A file without the mark is read completely before it is
//! used, on a read-only connection, so a damaged file stays unchanged. There is one exception: if
//! the first process was killed before it set WAL mode, the file may have a rollback journal, which
//! SQLite must apply before it can read. Only for such a file may the connection write.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use sea_orm::{ConnectionTrait, DbErr};
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::db::backend::Backend;
use crate::db::connect::Db;
use crate::db::health::WriteState;

/// `SQLITE_READONLY_ROLLBACK`: a transaction must be rolled back before the file can be read.
const READONLY_ROLLBACK: &str = "776";

/// The clean-stop mark.
const CLEAN_STOP_MARK: i64 = 1;

/// Reads the whole file unless it has the clean-stop mark.
///
/// # Errors
/// Returns a sentence for the operator if a page is damaged or the file cannot be read.
pub async fn require_undamaged(file: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut checked = check_for_damage(file, true).await;
    if checked.as_ref().is_err_and(needs_rollback) {
        checked = check_for_damage(file, false).await;
    }
    match checked {
        Ok(DamageCheck::Clean) => Ok(()),
        Ok(DamageCheck::Sound) => {
            tracing::info!(
                duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                "the last process did not stop cleanly; the database file was checked and is intact"
            );
            Ok(())
        }
        Ok(DamageCheck::Damaged(first)) => {
            Err(anyhow::anyhow!(first).context(damage_message(file)))
        }
        Err(error) if is_damage_error(&error) => {
            Err(anyhow::Error::new(error).context(damage_message(file)))
        }
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}

enum DamageCheck {
    Clean,
    Sound,
    Damaged(String),
}

async fn check_for_damage(file: &Path, read_only: bool) -> Result<DamageCheck, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(read_only)
        .busy_timeout(Duration::from_secs(10));
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let mark: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut connection)
        .await?;
    if mark == CLEAN_STOP_MARK {
        return Ok(DamageCheck::Clean);
    }
    let found: Vec<String> = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_all(&mut connection)
        .await?;
    connection.close().await?;
    match found.into_iter().next() {
        Some(first) if first != "ok" => Ok(DamageCheck::Damaged(first)),
        _ => Ok(DamageCheck::Sound),
    }
}

fn needs_rollback(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|it| it.code());
    code.is_some_and(|it| it == READONLY_ROLLBACK)
}

fn is_damage_error(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|it| it.code());
    // If the text of the schema is damaged, SQLite cannot parse it and returns SQLITE_ERROR.
    code.is_some_and(|it| {
        let kind = it.parse::<u32>().map_or(0, |it| it & 0xff);
        matches!(kind, 1 | 11 | 26)
    })
}

fn damage_message(file: &Path) -> String {
    format!(
        "the database file {} is damaged. It was left as it is: restore a backup, or save what can \
         still be read with `sqlite3 {0} .recover | sqlite3 saved.db`",
        file.display()
    )
}

impl Db {
    /// Removes the clean-stop mark from an SQLite file, until [`Db::close_cleanly`].
    ///
    /// # Errors
    /// Returns `DbErr` if this cannot be stored.
    pub async fn mark_in_use(&self) -> Result<(), DbErr> {
        self.write_stop_mark(0).await
    }

    /// Closes every connection, after writing the clean-stop mark to an SQLite file. Without the
    /// mark (the disk accepts no writes) the next start only takes longer: it reads the whole file.
    pub async fn close_cleanly(self) {
        if self.health().state() != WriteState::Damaged
            && let Err(error) = self.write_stop_mark(CLEAN_STOP_MARK).await
        {
            tracing::warn!(%error, "failed to mark the database file as cleanly closed: {error}");
        }
        self.close().await;
    }

    async fn write_stop_mark(&self, mark: i64) -> Result<(), DbErr> {
        if self.backend() == Backend::Postgres {
            return Ok(());
        }
        self.write(move |tx| {
            Box::pin(async move {
                let statement = format!("PRAGMA user_version = {mark}");
                tx.execute_unprepared(&statement).await.map(drop)
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
    use sqlx::{Connection, Executor};

    use super::require_undamaged;
    use crate::db::connect::{Db, DbOptions};

    async fn open(file: &Path) -> Db {
        let options = DbOptions {
            url: format!("sqlite://{}?mode=rwc", file.display()),
            synchronous_full: true,
        };
        Db::connect(&options).await.unwrap()
    }

    /// Creates a file with an overwritten page in use; only a complete read finds the damage.
    async fn create_damaged(file: &Path, is_clean: bool) -> Vec<u8> {
        let db = open(file).await;
        db.migrate().await.unwrap();
        db.mark_in_use().await.unwrap();
        match is_clean {
            true => db.close_cleanly().await,
            false => db.close().await,
        }
        let mut bytes = fs::read(file).unwrap();
        let page = bytes.len() / 4096 / 2 * 4096;
        bytes[page..page + 4096]
            .iter_mut()
            .for_each(|it| *it ^= 0xff);
        fs::write(file, &bytes).unwrap();
        bytes
    }

    #[tokio::test]
    async fn a_damaged_file_is_rejected_after_an_unclean_stop_and_stays_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        let bytes = create_damaged(&file, false).await;

        let refusal = require_undamaged(&file).await.unwrap_err().to_string();

        assert!(refusal.contains("is damaged"), "{refusal}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }

    #[tokio::test]
    async fn a_file_with_the_clean_stop_mark_is_not_read_completely() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        create_damaged(&file, true).await;

        assert!(require_undamaged(&file).await.is_ok());
    }

    /// Creates `file` with a rollback journal, as if a process without WAL mode had been killed
    /// in a transaction.
    async fn create_interrupted(file: &Path) {
        let original = file.with_extension("original");
        let options = SqliteConnectOptions::new()
            .filename(&original)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Delete)
            // A cache of one page makes SQLite write pages and the journal before the commit.
            .pragma("cache_size", "1");
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let setup = "CREATE TABLE texts (text TEXT); BEGIN; \
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) \
            INSERT INTO texts SELECT printf('%0500d', i) FROM n";
        connection.execute(setup).await.unwrap();
        let journal = |file: &Path| format!("{}-journal", file.display());
        fs::copy(&original, file).unwrap();
        fs::copy(journal(&original), journal(file)).unwrap();
    }

    #[tokio::test]
    async fn a_file_with_an_interrupted_first_transaction_is_rolled_back_and_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        create_interrupted(&file).await;

        require_undamaged(&file).await.unwrap();

        assert!(!folder.path().join("troupe.db-journal").exists());
    }
}
