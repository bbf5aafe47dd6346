//! Locks the SQLite file itself, so that only one process uses it, until that process ends. Creates
//! the file and its folder if they are missing.
//!
//! **Invariant:** the locked descriptor stays open while the process uses the database. It is the
//! only one except SQLite's own: closing any descriptor of a file drops the POSIX locks that SQLite
//! holds on it, while this lock (`flock`) is independent of those.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

/// A lock on the database file, held until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    /// Unlocked by the system when it is closed, also after a crash.
    _file: File,
    /// Whether the file system supports such locks. If not, the row `instance_lock` decides
    /// (`instance_lock.rs`).
    pub is_supported: bool,
    /// Whether the file existed before.
    pub existed: bool,
}

/// Returns the file of an SQLite URL; `None` for any other database, and for one in memory.
pub fn sqlite_file(url: &str) -> Option<PathBuf> {
    let path = url.strip_prefix("sqlite:")?;
    let path = path.strip_prefix("//").unwrap_or(path);
    let path = path.split('?').next().unwrap_or_default();
    (!path.is_empty() && path != ":memory:").then(|| PathBuf::from(path))
}

/// A killed process holds its lock until the system has cleaned up; an immediate restart waits this
/// long before it reports that another process uses the file.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Locks the file; creates a missing file and folder, readable only by this account. Waits for
/// `timeout` while another process holds the lock; blocks the thread, because the start cannot
/// continue without the file.
///
/// # Errors
/// Returns an error if another process keeps the lock, or the file cannot be written.
pub fn acquire(database: &Path, timeout: Duration) -> anyhow::Result<FileLock> {
    if let Some(folder) = database.parent().filter(|it| !it.as_os_str().is_empty()) {
        create_private_dir(folder)
            .with_context(|| format!("the folder {} cannot be created", folder.display()))?;
    }
    let existed = database.exists();
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options
        .open(database)
        .with_context(|| format!("{} cannot be written", database.display()))?;
    let began = Instant::now();
    let is_supported = loop {
        match file.try_lock() {
            Ok(()) => break true,
            Err(TryLockError::WouldBlock) if began.elapsed() < timeout => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => anyhow::bail!(in_use_message(database)),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
            Err(TryLockError::Error(_)) => break false,
        }
    };
    Ok(FileLock {
        _file: file,
        is_supported,
        existed,
    })
}

/// Returns the message of a second process that cannot start.
pub(super) fn in_use_message(database: &Path) -> String {
    format!(
        "{} is in use by another troupe process. Stop that one first; to run several, use PostgreSQL",
        database.display()
    )
}

/// Creates a missing folder, accessible only by this account because it contains conversations and
/// keys.
///
/// # Errors
/// Returns the I/O error if the folder cannot be created.
pub fn create_private_dir(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::{acquire, sqlite_file};

    #[test]
    fn a_lock_excludes_others_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/er/troupe.db");

        let ours = acquire(&file, Duration::ZERO).unwrap();

        let refusal = acquire(&file, Duration::ZERO).unwrap_err().to_string();
        assert!(
            refusal.contains("in use by another troupe process"),
            "{refusal}"
        );
        drop(ours);
        assert!(acquire(&file, Duration::ZERO).is_ok());
    }

    #[test]
    fn a_lock_released_before_the_timeout_is_acquired() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("troupe.db");
        let ours = acquire(&file, Duration::ZERO).unwrap();

        let waiting = std::thread::spawn(move || acquire(&file, Duration::from_secs(60)));
        drop(ours);

        assert!(waiting.join().unwrap().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_database_is_locked_under_every_name_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("troupe.db");
        let (hard, symbolic) = (dir.path().join("hard.db"), dir.path().join("symbolic.db"));

        let _ours = acquire(&file, Duration::ZERO).unwrap();
        std::fs::hard_link(&file, &hard).unwrap();
        std::os::unix::fs::symlink(&file, &symbolic).unwrap();

        assert!(acquire(&hard, Duration::ZERO).is_err());
        assert!(acquire(&symbolic, Duration::ZERO).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_created_folder_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");

        super::create_private_dir(&folder).unwrap();

        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
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
