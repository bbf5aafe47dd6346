//! One process per SQLite file: a lock beside it, which ends with the process that holds it.

use anyhow::Context;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

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

/// A process that was killed holds its lock until the system has cleared it away; a restart that
/// comes at once waits so long before it believes that somebody else lives.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Makes the file ours; its folder is made when it is missing. Waits for `patience` while another
/// process has it; blocks the thread meanwhile, as nothing can go on without the file.
///
/// # Errors
/// When another process keeps it, or nothing can be written there.
pub fn lock(database: &Path, patience: Duration) -> anyhow::Result<FileLock> {
    if let Some(folder) = database.parent().filter(|it| !it.as_os_str().is_empty()) {
        private_folder(folder)
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
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(FileLock { _file: file }),
            Err(TryLockError::WouldBlock) if began.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "{} is in use by another troupe process. Stop that one first; to run several, use PostgreSQL",
                database.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
    }
}

/// Makes a folder that is missing, for this account alone: conversations and keys lie in it.
///
/// # Errors
/// When it cannot be made.
pub fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::lock;
    use super::sqlite_file;
    use std::path::PathBuf;
    use std::time::Duration;

    #[test]
    fn a_database_is_ours_until_we_let_go() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("deep/er/troupe.db");

        let ours = lock(&file, Duration::ZERO).unwrap();

        let refusal = lock(&file, Duration::ZERO).unwrap_err().to_string();
        assert!(
            refusal.contains("in use by another troupe process"),
            "{refusal}"
        );
        drop(ours);
        assert!(lock(&file, Duration::ZERO).is_ok());
    }

    #[test]
    fn a_lock_that_is_let_go_in_time_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("troupe.db");
        let ours = lock(&file, Duration::ZERO).unwrap();

        let waiting = std::thread::spawn(move || lock(&file, Duration::from_secs(60)));
        drop(ours);

        assert!(waiting.join().unwrap().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_look_into_the_folder_we_make() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("data");

        super::private_folder(&folder).unwrap();

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
