//! One process per SQLite file: a lock beside it, which ends with the process that holds it.

use anyhow::Context;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::path::Path;
use std::path::PathBuf;

/// Held as long as the file is ours.
#[derive(Debug)]
pub struct FileLock {
    /// Unlocked by the system when it is closed, also after a crash.
    _file: File,
}

/// The file of an SQLite address; `None` for any other database, and for one in memory.
pub fn sqlite_file(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    let path = path.split('?').next().unwrap_or_default();
    (!path.is_empty() && path != ":memory:").then(|| PathBuf::from(path))
}

/// Makes the file ours; its folder is made when it is missing.
///
/// # Errors
/// When another process has it, or nothing can be written there.
pub fn lock(database: &Path) -> anyhow::Result<FileLock> {
    if let Some(folder) = database.parent().filter(|it| !it.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    }
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(FileLock { _file: file }),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "{} is in use by another troupe process. Stop that one first; to run several, use PostgreSQL",
            database.display()
        ),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("{} cannot be locked", path.display()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::lock;
    use super::sqlite_file;
    use std::path::PathBuf;

    #[test]
    fn a_database_is_ours_until_we_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/er/troupe.db");

        let ours = lock(&file).unwrap();

        let refusal = lock(&file).unwrap_err().to_string();
        assert!(
            refusal.contains("in use by another troupe process"),
            "{refusal}"
        );
        drop(ours);
        assert!(lock(&file).is_ok());
    }

    #[test]
    fn the_file_of_an_address_is_found() {
        let file = |url| sqlite_file(url);
        assert_eq!(
            file("sqlite:///a/b.db?mode=rwc"),
            Some(PathBuf::from("/a/b.db"))
        );
        assert_eq!(
            file("sqlite://./data/troupe.db"),
            Some(PathBuf::from("./data/troupe.db"))
        );
        assert_eq!(file("sqlite:x.db"), Some(PathBuf::from("x.db")));
        assert_eq!(file("sqlite::memory:"), None);
        assert_eq!(file("postgres://host/db"), None);
    }
}
