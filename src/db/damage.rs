//! Refuses an SQLite file that is damaged, before anything is written to it.
//!
//! **Invariant:** the header of a file says whether its last process ended in order
//! (`PRAGMA user_version` is [`CLEAN`]). Any other file is read whole before it is used, on a
//! connection that cannot write: a damaged file stays as it was found.

use crate::db::connect::Db;
use crate::db::connect::Dialect;
use crate::db::health::WriteState;
use anyhow::Context;
use sea_orm::ConnectionTrait;
use sea_orm::DbErr;
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::sqlite::SqliteConnection;
use std::path::Path;
use std::time::Duration;
use std::time::Instant;

/// The clean-stop mark.
const CLEAN: i64 = 1;

/// Reads a file whole unless it bears the clean-stop mark.
///
/// # Errors
/// A sentence for the operator when a page is damaged, or the file cannot be read.
pub async fn refuse_damaged(file: &Path) -> anyhow::Result<()> {
    let began = Instant::now();
    match find_damage(file).await {
        Ok(Found::Clean) => Ok(()),
        Ok(Found::Sound) => {
            tracing::info!(
                duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                "the last process did not end in order; the database file was checked and is sound"
            );
            Ok(())
        }
        Ok(Found::Damaged(first)) => Err(anyhow::anyhow!(first).context(refusal(file))),
        Err(error) if is_damage(&error) => Err(anyhow::Error::new(error).context(refusal(file))),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
    }
}

enum Found {
    Clean,
    Sound,
    Damaged(String),
}

async fn find_damage(file: &Path) -> Result<Found, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .busy_timeout(Duration::from_secs(10));
    let mut connection = SqliteConnection::connect_with(&options).await?;
    let mark: i64 = sqlx::query_scalar("PRAGMA user_version")
        .fetch_one(&mut connection)
        .await?;
    if mark == CLEAN {
        return Ok(Found::Clean);
    }
    let found: Vec<String> = sqlx::query_scalar("PRAGMA quick_check(1)")
        .fetch_all(&mut connection)
        .await?;
    connection.close().await?;
    match found.into_iter().next() {
        Some(first) if first != "ok" => Ok(Found::Damaged(first)),
        _ => Ok(Found::Sound),
    }
}

fn is_damage(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|it| it.code());
    // A schema that cannot be parsed is SQLITE_ERROR when its text was hit.
    code.is_some_and(|it| {
        let kind = it.parse::<u32>().map_or(0, |it| it & 0xff);
        matches!(kind, 1 | 11 | 26)
    })
}

fn refusal(file: &Path) -> String {
    format!(
        "the database file {} is damaged. It was left as it is: restore a backup, or save what can \
         still be read with `sqlite3 {0} .recover | sqlite3 saved.db`",
        file.display()
    )
}

impl Db {
    /// Takes the clean-stop mark from an SQLite file: from now on its process may end anyhow.
    ///
    /// # Errors
    /// When that cannot be stored.
    pub async fn begin_use(&self) -> Result<(), DbErr> {
        self.mark(0).await
    }

    /// Closes every connection; an SQLite file gets the clean-stop mark before. Without it (the disk
    /// takes no writes) the next start reads the file whole, nothing else.
    pub async fn close_in_order(self) {
        if self.health().state() != WriteState::Damaged
            && let Err(error) = self.mark(CLEAN).await
        {
            tracing::warn!(%error, "the database file could not be marked as closed in order: {error}");
        }
        self.close().await;
    }

    async fn mark(&self, mark: i64) -> Result<(), DbErr> {
        if self.dialect() == Dialect::Postgres {
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
    use super::refuse_damaged;
    use crate::db::connect::Db;
    use crate::db::connect::Options;
    use std::fs;
    use std::path::Path;

    async fn open(file: &Path) -> Db {
        let options = Options {
            url: format!("sqlite://{}?mode=rwc", file.display()),
            synchronous_full: true,
        };
        Db::connect(&options).await.unwrap()
    }

    /// A file in which a page in use is overwritten; only a whole read can find it.
    async fn damaged(file: &Path, in_order: bool) -> Vec<u8> {
        let db = open(file).await;
        db.migrate().await.unwrap();
        db.begin_use().await.unwrap();
        match in_order {
            true => db.close_in_order().await,
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
    async fn a_damaged_file_is_refused_after_an_unclean_end_and_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        let bytes = damaged(&file, false).await;

        let refusal = refuse_damaged(&file).await.unwrap_err().to_string();

        assert!(refusal.contains("is damaged"), "{refusal}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }

    #[tokio::test]
    async fn a_file_with_the_clean_stop_mark_is_not_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("troupe.db");
        damaged(&file, true).await;

        assert!(refuse_damaged(&file).await.is_ok());
    }
}
