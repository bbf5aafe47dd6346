//! The comparison: a job inserted, claimed and finished by three statements, each committed alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement};

use crate::machine;
use crate::machine::CpuTime;

/// The duration of one measurement.
const DURATION: Duration = Duration::from_secs(2);
const TABLE: &str = "create table if not exists bare_jobs \
    (id bigint primary key, conversation bigint not null, status text not null, attempt integer not null)";
const INSERT: &str = "insert into bare_jobs values (:id, cast(:id as bigint) % 1000, 'queued', 0)";
const CLAIM: &str = "update bare_jobs set status = 'running', attempt = 1 where id = :id";
const FINISH: &str = "update bare_jobs set status = 'succeeded' where id = :id";

/// Transactions without a server.
pub enum BareTransactions {
    /// One connection; each commit is on the disk before it is acknowledged.
    Sqlite(DatabaseConnection),
    /// `pgbench` with 16 connections.
    Pgbench {
        program: PathBuf,
        url: String,
        /// The process that starts one for each connection.
        postmaster: u32,
    },
}

impl BareTransactions {
    pub async fn sqlite(folder: &Path) -> BareTransactions {
        let url = format!("sqlite://{}?mode=rwc", folder.join("bare.db").display());
        let mut options = ConnectOptions::new(url);
        options
            .max_connections(1)
            .sqlx_logging(false)
            .map_sqlx_sqlite_opts(|it| {
                it.pragma("journal_mode", "WAL")
                    .pragma("synchronous", "FULL")
            });
        let db = Database::connect(options).await.unwrap();
        db.execute_unprepared(TABLE).await.unwrap();
        BareTransactions::Sqlite(db)
    }

    /// Returns `None` if `pgbench` is not installed. PostgreSQL must run on this machine.
    pub async fn pgbench(url: &str) -> Option<BareTransactions> {
        let in_path = env::split_paths(&env::var_os("PATH")?).collect::<Vec<_>>();
        let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let debian = debian.map(|version| version.unwrap().path().join("bin"));
        let folders = in_path.into_iter().chain(debian);
        let program = folders
            .map(|it| it.join("pgbench"))
            .find(|it| it.exists())?;
        let db = Database::connect(url).await.unwrap();
        let row = db.query_one_raw(Statement::from_string(
            db.get_database_backend(),
            "select pg_backend_pid()",
        ));
        let pid: i32 = row.await.unwrap().unwrap().try_get_by_index(0).unwrap();
        Some(BareTransactions::Pgbench {
            program,
            url: url.to_owned(),
            postmaster: machine::parent_of(pid.unsigned_abs()).unwrap(),
        })
    }

    /// Returns the jobs per second.
    pub async fn rate(&self) -> f64 {
        match self {
            BareTransactions::Sqlite(db) => sqlite_rate(db).await,
            BareTransactions::Pgbench { program, url, .. } => pgbench_rate(program, url).await,
        }
    }

    /// The processor time of the database's own processes.
    pub fn database_time(&self) -> CpuTime {
        match self {
            BareTransactions::Sqlite(_) => CpuTime::default(),
            BareTransactions::Pgbench { postmaster, .. } => CpuTime::of_children(*postmaster),
        }
    }
}

async fn sqlite_rate(db: &DatabaseConnection) -> f64 {
    db.execute_unprepared("delete from bare_jobs")
        .await
        .unwrap();
    let began = Instant::now();
    let mut n = 0;
    while began.elapsed() < DURATION {
        n += 1;
        for sql in [INSERT, CLAIM, FINISH] {
            let sql = sql.replace(":id", "?1");
            let statement =
                sea_orm::Statement::from_sql_and_values(db.get_database_backend(), sql, [n.into()]);
            db.execute_raw(statement).await.unwrap();
        }
    }
    n as f64 / began.elapsed().as_secs_f64()
}

async fn pgbench_rate(program: &Path, url: &str) -> f64 {
    let db = Database::connect(url).await.unwrap();
    db.execute_unprepared(&format!("{TABLE}; truncate bare_jobs"))
        .await
        .unwrap();
    let script = tempfile::NamedTempFile::new().unwrap();
    let draw = "\\set id random(1, 9000000000000000000)";
    fs::write(
        script.path(),
        format!("{draw}\n{INSERT};\n{CLAIM};\n{FINISH};\n"),
    )
    .unwrap();
    let seconds = DURATION.as_secs().to_string();
    let options = [
        "-n", "-c", "16", "-j", "2", "-M", "prepared", "-T", &seconds, "-f",
    ];
    let output = Command::new(program)
        .args(options)
        .arg(script.path())
        .arg(url)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|it| it.starts_with("tps = "));
    let line = line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}
