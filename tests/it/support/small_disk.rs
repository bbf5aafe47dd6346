//! A small disk in memory that a test fills and empties. Mounting one requires root.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A mounted disk, unmounted on drop.
pub struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a disk of this size. Prints a line and returns `None` if that is not possible; the
    /// tests with a file size limit run everywhere.
    pub fn mount(mib: u32) -> Option<SmallDisk> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(folder.path())
            .output();
        if mounted.is_ok_and(|it| it.status.success()) {
            return Some(SmallDisk { folder });
        }
        eprintln!("not run with a full disk: mounting a tmpfs failed (it requires root)");
        None
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn filler_file(&self) -> PathBuf {
        self.path().join("filler_file")
    }

    /// Fills the disk completely.
    pub fn fill(&self) {
        let mut filler_file =
            fs::File::create(self.filler_file()).expect("the file can be created");
        for size in [1 << 20, 4096, 1] {
            while filler_file.write_all(&vec![1; size]).is_ok() {}
        }
    }

    /// Frees the disk again.
    pub fn empty(&self) {
        fs::remove_file(self.filler_file()).expect("the file can be removed");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazy, because a killed process may still have a file open there.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
