//! Configures the log of the process on standard output: its format, its filter (`RUST_LOG`) and
//! the library targets that are silenced.
//!
//! Fields have the same dotted names everywhere: `request.id user.id space.id conversation.id
//! membership.id run.id run.kind run.status response.id response.status response.reason llm.provider
//! llm.model llm.tokens_in llm.tokens_out tool.name queue_wait_ms duration_ms node.id error`.
//!
//! **Invariant:** no line contains the text of a message, a prompt, a key or a cookie.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::LogFormat;

const DEFAULT_FILTER: &str = "info,sqlx=warn,sea_orm=warn";

/// Library targets that would log content, secrets or noise: html5ever logs each piece of text that
/// it parses, sea_orm the database URL with its password, and actix each malformed request as an
/// error.
const SILENCED_TARGETS: [&str; 4] = [
    "actix_http::h1::dispatcher=off",
    "html5ever=off",
    "sea_orm::database=info",
    "sea_orm::driver=info",
];

/// Writes the log of this process to standard output.
///
/// # Errors
/// Returns an error when `RUST_LOG` is not a valid filter.
pub fn init(format: LogFormat) -> anyhow::Result<()> {
    let env_filter = std::env::var("RUST_LOG")
        .ok()
        .filter(|it| !it.trim().is_empty());
    let filter = env_filter.as_deref().unwrap_or(DEFAULT_FILTER);
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("RUST_LOG is {filter:?}, but must be a filter such as {DEFAULT_FILTER:?}")
    })?;
    let filter = SILENCED_TARGETS.iter().try_fold(filter, |filter, it| {
        anyhow::Ok(filter.add_directive(it.parse().context("invalid built-in log filter")?))
    })?;
    let is_terminal = std::io::stdout().is_terminal();
    let log = fmt().with_env_filter(filter).with_ansi(is_terminal);
    match format {
        LogFormat::Pretty => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    }
    // Fails only on a second call in one process; the first subscriber stays.
    .or(Ok(()))
}
