//! Restricts the permissions of the database files (0600) and of the data folder (0700) to the
//! account that runs the server.

use std::io;
use std::path::{Path, PathBuf};

/// The files of SQLite next to a database file.
const FILE_SUFFIXES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Restricts the database file and the files next to it. A failure is logged.
pub fn restrict_database(file: &Path) {
    for end in FILE_SUFFIXES {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        restrict(&PathBuf::from(name), 0o600);
    }
}

/// Restricts the data folder and the files in it. A failure is logged.
pub fn restrict_folder(folder: &Path) {
    if is_shared(folder) {
        tracing::warn!(
            "TROUPE_DATA_DIR {} is a shared folder: other accounts of this machine may see its \
             content",
            folder.display()
        );
        return;
    }
    restrict(folder, 0o700);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|it| it.is_file()) {
            restrict(&entry.path(), 0o600);
        }
    }
}

/// Removes every right on a path that `mode` does not have; a missing path is skipped.
fn restrict(path: &Path, mode: u32) {
    match try_narrow(path, mode) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(
            %error,
            "{} can be read by other accounts of this machine and cannot be restricted: {error}",
            path.display()
        ),
    }
}

#[cfg(unix)]
fn try_narrow(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let now = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if now & !mode == 0 {
        return Ok(());
    }
    let narrowed = std::fs::Permissions::from_mode(now & mode);
    std::fs::set_permissions(path, narrowed)
}

#[cfg(not(unix))]
fn try_narrow(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Returns whether this is a folder such as `/tmp`, in which each account has its own files.
#[cfg(unix)]
fn is_shared(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(folder).is_ok_and(|it| it.permissions().mode() & 0o1000 != 0)
}

#[cfg(not(unix))]
fn is_shared(_: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::{restrict_database, restrict_folder};

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("the test owns the file");
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path)
            .expect("the file exists")
            .permissions()
            .mode()
            & 0o7777
    }

    #[test]
    fn files_readable_by_others_are_restricted() {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        let names = ["troupe.db", "troupe.db-wal", "troupe.db-shm", "secret.key"];
        let files = names.map(|name| folder.path().join(name));
        for file in &files {
            fs::write(file, "x").unwrap();
            set_mode(file, 0o644);
        }

        restrict_database(&files[0]);
        assert_eq!(
            files[..3].iter().map(|it| mode(it)).collect::<Vec<_>>(),
            [0o600; 3]
        );
        restrict_folder(folder.path());

        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&files[3]), 0o600);
    }

    #[test]
    fn a_shared_folder_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o1777);

        restrict_folder(folder.path());

        assert_eq!(mode(folder.path()), 0o1777);
    }
}
