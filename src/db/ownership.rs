//! Makes an SQLite file this process's own, and refuses one that must not be used.

use std::path::Path;

use crate::clock::Timestamp;
use crate::db::file_lock::FileLock;
use crate::db::instance_lock::InstanceLock;
use crate::db::{damage, file_lock, file_permissions, instance_lock};

/// Held as long as the process uses the file.
#[derive(Debug)]
pub struct Ownership {
    _lock: FileLock,
    /// Where the file system has no locks: its heartbeat must be kept.
    pub instance_lock: Option<InstanceLock>,
}

/// Takes the file before it is opened. `secret` is the file with the key to what it holds.
///
/// # Errors
/// When another process has the file, when it is damaged, or when it is empty though the secret
/// shows that it once held something.
pub async fn acquire(file: &Path, secret: &Path, now: Timestamp) -> anyhow::Result<Ownership> {
    let lock = file_lock::acquire(file, file_lock::LOCK_TIMEOUT)?;
    file_permissions::restrict_database(file);
    let is_empty = std::fs::metadata(file)?.len() == 0;
    anyhow::ensure!(
        !(is_empty && lock.existed && secret.exists()),
        "the database file {} is empty, but {} shows that this is not a new installation. Restore \
         a backup; to begin anew, remove both files",
        file.display(),
        secret.display()
    );
    if !is_empty {
        damage::require_undamaged(file).await?;
    }
    let row = match lock.is_supported {
        true => None,
        false => Some(instance_lock::acquire(file, now).await?),
    };
    Ok(Ownership {
        _lock: lock,
        instance_lock: row,
    })
}
