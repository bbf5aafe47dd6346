//! The settings of a chaos run (duration, load, random seed), read from the environment.

use std::env;
use std::str::FromStr;
use std::time::Duration;

use crate::support::http_client::CHEAP_HASH_KIB;

/// The settings of one run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long faults are injected (`CHAOS_SECONDS`, 600).
    pub lasts: Duration,
    /// The same seed draws the same faults (`CHAOS_SEED`, random).
    pub seed: u64,
    /// The number of users (`CHAOS_CLIENTS`, 50).
    pub n_clients: usize,
    /// The average pause of a user between two messages (`CHAOS_THINK_MS`, 1200).
    pub think: Duration,
    /// The average pause of a node between two faults (`CHAOS_PEACE_MS`, 1000).
    pub peace: Duration,
    /// Whether the nodes use a Redis (`CHAOS_REDIS`, 1); without one they poll the database for the
    /// changes of other nodes.
    pub has_redis: bool,
    /// No faults are injected; one node after another is replaced.
    pub only_replaces: bool,
    /// The time without a heartbeat after which a run is recovered.
    pub stale_after: Duration,
}

/// The size of the disk that is filled.
pub const DISK_MIB: u32 = 512;
/// The number of nodes.
pub const N_NODES: usize = 3;

pub const HEARTBEAT: Duration = Duration::from_millis(250);
pub const STALE_AFTER: Duration = Duration::from_millis(1_500);
pub const REAPER_INTERVAL: Duration = Duration::from_millis(250);
pub const FIRST_CHUNK: Duration = Duration::from_millis(1_500);
pub const IDLE: Duration = Duration::from_millis(1_000);
pub const RUN_TIMEOUT: Duration = Duration::from_millis(8_000);
pub const GRACE: Duration = Duration::from_millis(400);

impl Settings {
    /// Reads the settings from the environment.
    pub fn read() -> Settings {
        Settings {
            lasts: Duration::from_secs(number("CHAOS_SECONDS", 600)),
            seed: number("CHAOS_SEED", rand::random()),
            n_clients: number("CHAOS_CLIENTS", 50),
            think: Duration::from_millis(number("CHAOS_THINK_MS", 1_200)),
            peace: Duration::from_millis(number("CHAOS_PEACE_MS", 1_000)),
            has_redis: number("CHAOS_REDIS", 1) == 1,
            only_replaces: false,
            stale_after: STALE_AFTER,
        }
    }

    /// Settings of an upgrade under load: a tenth of `CHAOS_SECONDS`, at least a minute.
    pub fn of_an_upgrade() -> Settings {
        let all = Settings::read();
        Settings {
            lasts: (all.lasts / 10).max(Duration::from_secs(60)),
            only_replaces: true,
            // A stopping node releases its runs, so none may be recovered, even on a busy machine.
            stale_after: STALE_AFTER * 20,
            ..all
        }
    }
}

fn number<T: FromStr>(name: &str, default: T) -> T {
    let Ok(text) = env::var(name) else {
        return default;
    };
    let parsed = text.parse().ok();
    parsed.unwrap_or_else(|| panic!("{name} is {text:?}, but must be a number"))
}

/// Returns the environment variables of every node.
pub fn of_a_node(settings: &Settings) -> Vec<(String, String)> {
    let ms = |it: Duration| it.as_millis().to_string();
    let all = [
        ("RUN_HEARTBEAT_MS", ms(HEARTBEAT)),
        ("RUN_STALE_AFTER_MS", ms(settings.stale_after)),
        ("REAPER_INTERVAL_MS", ms(REAPER_INTERVAL)),
        ("LLM_FIRST_CHUNK_TIMEOUT_MS", ms(FIRST_CHUNK)),
        ("LLM_IDLE_TIMEOUT_MS", ms(IDLE)),
        ("RUN_TIMEOUT_MS", ms(RUN_TIMEOUT)),
        ("SHUTDOWN_GRACE_MS", ms(GRACE)),
        ("TROUPE_SECRET_KEY", "5e".repeat(32)),
        ("TROUPE_ALLOW_PRIVATE_PROVIDERS", "true".to_owned()),
        ("TROUPE_OPEN_REGISTRATION", "true".to_owned()),
        ("LIMIT_POSTS_PER_MINUTE", "0".to_owned()),
        ("LIMIT_LOGIN_FAILURES", "0".to_owned()),
        ("LIMIT_REGISTRATIONS_PER_HOUR", "0".to_owned()),
        ("LIMIT_SOCKETS_PER_USER", "0".to_owned()),
        ("LIMIT_SOCKETS_PER_ADDRESS", "0".to_owned()),
        ("RUST_LOG", "info,sqlx=warn,sea_orm=warn".to_owned()),
        ("PASSWORD_HASH_KIB", CHEAP_HASH_KIB.to_owned()),
    ];
    all.map(|(name, value)| (name.to_owned(), value)).to_vec()
}
