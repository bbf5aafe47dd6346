//! Prepares an SQLite file before it is opened: locks it for this process, restricts its
//! permissions, and refuses a damaged file, or an empty one that should have content.

use std::path::Path;

use base::clock::Timestamp;

use crate::db::sqlite::file_lock::FileLock;
use crate::db::sqlite::instance_lock::InstanceLock;
use crate::db::sqlite::{damage, file_lock, file_permissions, instance_lock};

/// Held while the process uses the file.
#[derive(Debug)]
pub struct Ownership {
    _lock: FileLock,
    /// Set if the file system has no locks: its heartbeat must be kept up.
    pub instance_lock: Option<InstanceLock>,
}

/// Locks the file before it is opened. `secret` is the file with the encryption key.
///
/// # Errors
/// Returns an error if another process holds the file, if it is damaged, or if it is empty although
/// the existing secret shows that it had content.
pub async fn acquire(file: &Path, secret: &Path, now: Timestamp) -> anyhow::Result<Ownership> {
    let lock = file_lock::acquire(file, file_lock::LOCK_TIMEOUT)?;
    file_permissions::restrict_database(file);
    let is_empty = std::fs::metadata(file)?.len() == 0;
    anyhow::ensure!(
        !(is_empty && lock.existed && secret.exists()),
        "the database file {} is empty, but {} shows that this is not a new installation. Restore \
         a backup; to start over, remove both files",
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
