//! Reads the settings of the server from environment variables into [`Config`]. An invalid setting
//! is returned as an error, and the server does not start.
//!
//! `.env.example` lists the same settings with the same defaults; `tests/it/config.rs` checks this.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use ipnet::IpNet;

use crate::cors_origins::{CORS_FORMAT, CorsOrigins};
use crate::host_settings::{
    ADDRESS_FORMAT, HOST_FORMAT, NETWORK_FORMAT, parse_address, parse_host, parse_network,
};
use crate::limit_settings::LimitSettings;
use crate::secret_text::SecretText;

/// The settings of one process. Durations come from variables that end in `_MS`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub bind: SocketAddr,
    /// The address that clients use, without a trailing slash, if it differs from the bound one.
    pub public_url: Option<String>,
    /// Further host names and addresses that requests may use; in lower case.
    pub allowed_hosts: Vec<String>,
    /// Pages of other sites that may call `/v1`.
    pub cors_origins: CorsOrigins,
    /// Networks whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: Vec<IpNet>,
    pub data_dir: PathBuf,
    /// May contain a password.
    pub database_url: SecretText,
    pub redis_url: Option<SecretText>,
    /// Encrypts provider keys; if absent, one is created and kept in the data directory.
    pub secret_key: Option<SecretText>,
    pub open_registration: bool,
    pub password_hash_kib: u32,
    pub workers: usize,
    pub max_running_runs: usize,
    /// The same for each provider, so that one that does not respond cannot use all permits.
    pub max_running_per_provider: usize,
    pub run_heartbeat: Duration,
    pub run_stale_after: Duration,
    pub reaper_interval: Duration,
    pub shutdown_grace: Duration,
    pub max_space_mib: u64,
    pub stream_slice: Duration,
    pub sqlite_synchronous_full: bool,
    pub llm_first_chunk_timeout: Duration,
    pub llm_idle_timeout: Duration,
    pub run_timeout: Duration,
    pub allow_private_providers: bool,
    /// Hosts in private networks that addresses given by members may lead to.
    pub allowed_private_hosts: Vec<String>,
    pub llm: Option<EnvironmentProvider>,
    pub limits: LimitSettings,
    /// `/v1` responses with a waiting client that run at the same time on this node.
    pub responses_max_running: usize,
    /// The same for responses in the background.
    pub responses_max_background: usize,
    /// Model calls of `/v1` that run at the same time on this node, for each provider.
    pub responses_max_calls_per_provider: usize,
    /// How many more responses with a waiting client than such calls there may be; a further one is
    /// rejected.
    pub responses_max_waiting_per_provider: usize,
    /// Days for which `/v1` responses are kept; 0: forever.
    pub responses_retention_days: u64,
    /// Whether models may read web pages.
    pub web_fetch: bool,
    /// The address of the SearXNG server with which models search the web.
    pub search_url: Option<String>,
    pub log_format: LogFormat,
}

/// A provider described by the environment; becomes the default one at start.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentProvider {
    /// Including its `/v1`.
    pub base_url: String,
    pub api_key: Option<SecretText>,
    pub model: String,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Pretty,
    Json,
}

/// An invalid setting: its name, its value, and what is allowed.
#[derive(Debug, thiserror::Error, PartialEq)]
#[error("{name} is {got:?}, but must be {takes}")]
pub struct ConfigError {
    pub name: &'static str,
    pub got: String,
    pub takes: String,
}

impl Config {
    /// Reads the settings of this process.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn from_environment() -> Result<Self, ConfigError> {
        Self::read(|name| std::env::var(name).ok())
    }

    /// Reads the settings from `get`; an empty value counts as absent.
    ///
    /// # Errors
    /// Returns the first invalid setting.
    pub fn read(get: impl Fn(&'static str) -> Option<String>) -> Result<Self, ConfigError> {
        let reader = Reader { get: &get };
        let bind = reader.address("TROUPE_BIND", "127.0.0.1:8080")?;
        let data_dir = PathBuf::from(reader.text("TROUPE_DATA_DIR").unwrap_or("./data".into()));
        let run_heartbeat = reader.ms("RUN_HEARTBEAT_MS", 5_000, 50)?;
        let config = Self {
            bind,
            public_url: reader.server_address("TROUPE_PUBLIC_URL")?,
            allowed_hosts: reader.list("TROUPE_ALLOWED_HOSTS", HOST_FORMAT, parse_host)?,
            cors_origins: reader.cors_origins("TROUPE_CORS_ORIGINS")?,
            trusted_proxies: reader.list(
                "TROUPE_TRUSTED_PROXIES",
                NETWORK_FORMAT,
                parse_network,
            )?,
            database_url: SecretText(reader.database_url("DATABASE_URL", &data_dir)?),
            data_dir,
            redis_url: reader.text("REDIS_URL").map(SecretText),
            secret_key: reader.secret("TROUPE_SECRET_KEY")?,
            open_registration: reader.flag("TROUPE_OPEN_REGISTRATION", false)?,
            password_hash_kib: reader.number("PASSWORD_HASH_KIB", 19_456, 8, 1 << 20)?,
            workers: reader.number("TROUPE_WORKERS", 1, 0, 1)?,
            max_running_runs: reader.number("TROUPE_MAX_RUNNING_RUNS", 64, 1, 10_000)?,
            max_running_per_provider: reader.number(
                "TROUPE_MAX_RUNNING_PER_PROVIDER",
                48,
                1,
                10_000,
            )?,
            run_heartbeat,
            run_stale_after: reader.ms("RUN_STALE_AFTER_MS", 30_000, 100)?,
            reaper_interval: reader.ms("REAPER_INTERVAL_MS", 5_000, 50)?,
            shutdown_grace: reader.ms("SHUTDOWN_GRACE_MS", 25_000, 0)?,
            max_space_mib: reader.number("TROUPE_MAX_SPACE_MIB", 100, 1, 1_048_576)?,
            stream_slice: reader.ms("STREAM_SLICE_MS", 50, 0)?,
            sqlite_synchronous_full: reader.word("SQLITE_SYNCHRONOUS", &["full", "normal"])?
                == "full",
            llm_first_chunk_timeout: reader.ms("LLM_FIRST_CHUNK_TIMEOUT_MS", 120_000, 1)?,
            llm_idle_timeout: reader.ms("LLM_IDLE_TIMEOUT_MS", 30_000, 1)?,
            run_timeout: reader.ms("RUN_TIMEOUT_MS", 600_000, 1)?,
            allow_private_providers: reader
                .flag("TROUPE_ALLOW_PRIVATE_PROVIDERS", bind.ip().is_loopback())?,
            allowed_private_hosts: reader.list(
                "TROUPE_ALLOWED_PRIVATE_HOSTS",
                HOST_FORMAT,
                parse_host,
            )?,
            llm: reader.llm()?,
            limits: LimitSettings::read(|name, default| {
                reader.number(name, default, 0, 1_000_000)
            })?,
            responses_max_running: reader.number("RESPONSES_MAX_RUNNING", 500, 1, 100_000)?,
            responses_max_background: reader.number("RESPONSES_MAX_BACKGROUND", 50, 1, 100_000)?,
            responses_max_calls_per_provider: reader.number(
                "RESPONSES_MAX_CALLS_PER_PROVIDER",
                256,
                1,
                100_000,
            )?,
            responses_max_waiting_per_provider: reader.number(
                "RESPONSES_MAX_WAITING_PER_PROVIDER",
                128,
                0,
                100_000,
            )?,
            responses_retention_days: reader.number("RESPONSES_RETENTION_DAYS", 30, 0, 36_500)?,
            web_fetch: reader.flag("TROUPE_WEB_FETCH", false)?,
            search_url: reader.server_address("TROUPE_SEARCH_URL")?,
            log_format: match reader.word("LOG_FORMAT", &["pretty", "json"])?.as_str() {
                "json" => LogFormat::Json,
                _ => LogFormat::Pretty,
            },
        };
        config.check_consistency()?;
        Ok(config)
    }

    /// Returns the name of every setting that [`Config::read`] reads, and `RUST_LOG`, which logging
    /// reads.
    pub fn names() -> Vec<&'static str> {
        let names = std::cell::RefCell::new(vec!["RUST_LOG"]);
        // Whether the defaults are consistent does not matter here.
        let _ = Self::read(|name| {
            names.borrow_mut().push(name);
            None
        });
        names.into_inner()
    }

    fn check_consistency(&self) -> Result<(), ConfigError> {
        if self.run_stale_after < self.run_heartbeat * 2 {
            let got = self.run_stale_after.as_millis().to_string();
            let takes = "at least twice RUN_HEARTBEAT_MS, or live runs would be recovered";
            return Err(config_error("RUN_STALE_AFTER_MS", got, takes));
        }
        if self.database_url.starts_with("postgres") && self.secret_key.is_none() {
            let takes = "a secret of at least 16 characters, the same on every node, when DATABASE_URL is PostgreSQL";
            return Err(config_error("TROUPE_SECRET_KEY", String::new(), takes));
        }
        Ok(())
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&'static str) -> Option<String>,
}

impl Reader<'_> {
    fn text(&self, name: &'static str) -> Option<String> {
        (self.get)(name)
            .map(|it| it.trim().to_owned())
            .filter(|it| !it.is_empty())
    }

    fn number<T>(&self, name: &'static str, default: T, least: T, most: T) -> Result<T, ConfigError>
    where
        T: FromStr + PartialOrd + fmt::Display + Copy,
    {
        let Some(got) = self.text(name) else {
            return Ok(default);
        };
        let takes = format!("an integer from {least} to {most}");
        match got.parse() {
            Ok(value) if least <= value && value <= most => Ok(value),
            _ => Err(config_error(name, got, &takes)),
        }
    }

    fn ms(&self, name: &'static str, default: u64, least: u64) -> Result<Duration, ConfigError> {
        let ms = self.number(name, default, least, 86_400_000)?;
        Ok(Duration::from_millis(ms))
    }

    fn flag(&self, name: &'static str, default: bool) -> Result<bool, ConfigError> {
        match self.text(name).as_deref() {
            None => Ok(default),
            Some("true" | "1" | "yes") => Ok(true),
            Some("false" | "0" | "no") => Ok(false),
            Some(got) => Err(config_error(name, got.to_owned(), "true or false")),
        }
    }

    /// Reads one of `words`; the first is the default.
    fn word(&self, name: &'static str, words: &[&str]) -> Result<String, ConfigError> {
        let got = self.text(name).unwrap_or(words[0].to_owned());
        if words.contains(&got.as_str()) {
            return Ok(got);
        }
        Err(config_error(name, got, &words.join(" or ")))
    }

    fn address(&self, name: &'static str, default: &str) -> Result<SocketAddr, ConfigError> {
        let got = self.text(name).unwrap_or(default.to_owned());
        // Names are resolved too: `localhost:8080` is a usual value.
        let found = got.to_socket_addrs().ok().and_then(|mut all| all.next());
        found
            .ok_or_else(|| config_error(name, got, "an address and a port, such as 127.0.0.1:8080"))
    }

    fn server_address(&self, name: &'static str) -> Result<Option<String>, ConfigError> {
        let fail = |it: String| config_error(name, it, ADDRESS_FORMAT);
        let got = self.text(name);
        got.map(|it| parse_address(&it).ok_or_else(|| fail(it)))
            .transpose()
    }

    fn cors_origins(&self, name: &'static str) -> Result<CorsOrigins, ConfigError> {
        let got = self.text(name).unwrap_or("*".to_owned());
        let parsed = got.parse();
        parsed.map_err(|_| config_error(name, got, CORS_FORMAT))
    }

    /// Splits at commas and reads each part with `read`.
    fn list<T>(
        &self,
        name: &'static str,
        takes: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, ConfigError> {
        let got = self.text(name).unwrap_or_default();
        let each = got.split(',').map(str::trim).filter(|it| !it.is_empty());
        each.map(|it| read(it).ok_or_else(|| config_error(name, it.to_owned(), takes)))
            .collect()
    }

    fn database_url(&self, name: &'static str, data_dir: &Path) -> Result<String, ConfigError> {
        let Some(got) = self.text(name) else {
            let file = data_dir.join("troupe.db");
            return Ok(format!("sqlite://{}?mode=rwc", file.display()));
        };
        let known = ["sqlite://", "postgres://", "postgresql://"];
        // The text may contain a password: only its beginning is shown.
        match known.iter().any(|it| got.starts_with(it)) {
            true => Ok(got),
            false => Err(config_error(
                name,
                got.split(':').next().unwrap_or_default().to_owned(),
                "sqlite://path?mode=rwc or postgres://user:password@host/database",
            )),
        }
    }

    fn secret(&self, name: &'static str) -> Result<Option<SecretText>, ConfigError> {
        match self.text(name) {
            Some(got) if got.len() < 16 => {
                let got = format!("{} characters", got.len());
                Err(config_error(name, got, "at least 16 characters"))
            }
            other => Ok(other.map(SecretText)),
        }
    }

    fn llm(&self) -> Result<Option<EnvironmentProvider>, ConfigError> {
        let base_url = self.text("TROUPE_LLM_BASE_URL");
        let api_key = self.text("TROUPE_LLM_API_KEY").map(SecretText);
        let model = self.text("TROUPE_LLM_MODEL");
        // It is sent in a header, which allows only visible ASCII.
        if let Some(SecretText(key)) = &api_key
            && !key.chars().all(|it| it.is_ascii_graphic())
        {
            let got = format!("{} characters", key.chars().count());
            let takes = "visible ASCII characters without spaces";
            return Err(config_error("TROUPE_LLM_API_KEY", got, takes));
        }
        if let Some(model) = model.as_ref().filter(|it| it.contains(char::is_control)) {
            let takes = "a name without line breaks or other control characters";
            return Err(config_error("TROUPE_LLM_MODEL", model.clone(), takes));
        }
        match (base_url, model) {
            (Some(base_url), Some(model)) => Ok(Some(EnvironmentProvider {
                base_url,
                api_key,
                model,
            })),
            (None, None) => Ok(None),
            (Some(_), None) => {
                let takes = "the model's name, as TROUPE_LLM_BASE_URL is set";
                Err(config_error("TROUPE_LLM_MODEL", String::new(), takes))
            }
            (None, Some(_)) => {
                let takes = "the endpoint with its /v1, as TROUPE_LLM_MODEL is set";
                Err(config_error("TROUPE_LLM_BASE_URL", String::new(), takes))
            }
        }
    }
}

fn config_error(name: &'static str, got: String, takes: &str) -> ConfigError {
    ConfigError {
        name,
        got,
        takes: takes.to_owned(),
    }
}
