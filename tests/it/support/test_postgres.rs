//! A PostgreSQL server of one test, which can be stopped, killed or suspended while it is used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::ports::lasting_port;
use crate::support::small_disk::SmallDisk;

/// See the module. Dropping it stops the server and removes its data.
pub struct Postgres {
    bin: PathBuf,
    folder: TempDir,
    port: u16,
    /// The disk with the data, if it can be filled.
    pub disk: Option<SmallDisk>,
}

impl Postgres {
    /// Starts a server with a limit of 200 connections.
    pub fn start() -> Postgres {
        Postgres::start_with("max_connections = 200")
    }

    /// Starts a server with these additional settings.
    pub fn start_with(setting: &str) -> Postgres {
        Postgres::start_on(setting, None)
    }

    /// Starts a server with its data on a disk that can be filled.
    pub fn start_on(setting: &str, disk: Option<SmallDisk>) -> Postgres {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let server = Postgres {
            bin: find(),
            folder,
            port: lasting_port(),
            disk,
        };
        server.prepare(setting);
        server.control("start");
        server
    }

    /// The value of `DATABASE_URL`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Restarts with `-m immediate`: no checkpoint, so that it recovers at the start.
    pub fn restart_immediately(&self) {
        self.control("restart");
    }

    /// Stops it with `-m immediate`.
    pub fn stop(&self) {
        self.control("stop");
    }

    /// Starts it again.
    pub fn start_again(&self) {
        self.control("start");
    }

    /// Sends a signal, such as STOP or CONT, to all its processes.
    pub fn signal(&self, name: &str) {
        let main = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let Some(main) = main.lines().next().filter(|it| !it.is_empty()) else {
            return;
        };
        // The child processes are not a process group, so pgrep finds them.
        let children = Command::new("pgrep").args(["-P", main]).output();
        let children = children.map(|it| it.stdout).unwrap_or_default();
        let children = String::from_utf8_lossy(&children).into_owned();
        let pids = std::iter::once(main).chain(children.split_whitespace());
        let _ = Command::new("kill")
            .arg(format!("-{name}"))
            .args(pids)
            .stderr(Stdio::null())
            .status();
    }

    fn data(&self) -> PathBuf {
        let disk = self.disk.as_ref().map(SmallDisk::path);
        disk.unwrap_or(self.folder.path()).join("db")
    }

    /// Starts it if it has exited: it cannot recover while its disk is full.
    pub fn revive(&self) {
        let mut control = as_postgres(&self.bin.join("pg_ctl"));
        control.arg("--pgdata").arg(self.data()).arg("status");
        let is_alive = control.stdout(Stdio::null()).status();
        if !is_alive.is_ok_and(|it| it.success()) {
            self.control("start");
        }
    }

    fn prepare(&self, setting: &str) {
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(self.folder.path(), open.clone()).expect("the permissions can be set");
        if let Some(disk) = &self.disk {
            fs::set_permissions(disk.path(), open).expect("the permissions can be set");
        }
        let data = self.data();
        let mut initdb = as_postgres(&self.bin.join("initdb"));
        initdb.arg("--pgdata").arg(&data).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        let made = initdb.stdout(Stdio::null()).status();
        assert!(
            made.expect("initdb can be started").success(),
            "initdb failed"
        );
        // Commits reach the operating system, which a killed server survives; no test cuts the
        // power.
        let conf = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\n\
             fsync = off\nfull_page_writes = off\n{setting}\n",
            self.port,
            data.display()
        );
        let file = data.join("postgresql.conf");
        let all = fs::read_to_string(&file).expect("the file exists") + &conf;
        fs::write(&file, all).expect("the settings can be written");
    }

    fn control(&self, what: &str) {
        let mut control = as_postgres(&self.bin.join("pg_ctl"));
        control.arg("--pgdata").arg(self.data());
        control.arg("--log").arg(self.folder.path().join("log"));
        control.args(["--wait", "--silent", "--mode=immediate", what]);
        let done = control.stdout(Stdio::null()).status();
        let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(
            done.expect("pg_ctl can be started").success(),
            "pg_ctl {what} failed: {}",
            log()
        );
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.signal("CONT");
        let mut control = as_postgres(&self.bin.join("pg_ctl"));
        control.arg("--pgdata").arg(self.data());
        let _ = control
            .args(["--silent", "--mode=immediate", "stop"])
            .status();
    }
}

/// PostgreSQL refuses to run as root, so root runs it as the user of the package.
fn as_postgres(program: &Path) -> Command {
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0);
    let mut command = Command::new(if is_root {
        Path::new("runuser")
    } else {
        program
    });
    if is_root {
        command.args(["-u", "postgres", "--"]).arg(program);
    }
    command.current_dir("/");
    command
}

fn find() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut found: Vec<PathBuf> = installed
        .filter_map(|it| Some(it.ok()?.path().join("bin")))
        .filter(|it| it.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().expect("PostgreSQL is installed")
}
