//! `troupe check`: what works and what does not, line by line.

use crate::app;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Db;
use crate::db::lock;
use crate::llm::catalog;
use crate::llm::egress;
use crate::llm::registry::Registry;
use crate::providers::provider;
use crate::providers::stock;
use crate::server::commands::say;
use anyhow::Context;
use std::path::PathBuf;
use std::time::Duration;

/// Tries one thing after the other and says how it went.
///
/// # Errors
/// When something does not work.
pub async fn check(config: &Config) -> anyhow::Result<()> {
    let mut all_well = true;
    all_well &= tell("settings", settings(config))?;
    if let Some(file) = missing_file(config) {
        // Looking must not make it: a folder stays as empty as it was.
        let line = format!(
            "{} is not there yet; the first start makes it",
            file.display()
        );
        tell("database", Ok(line))?;
        anyhow::ensure!(all_well, "not everything works");
        return Ok(());
    }
    let opened = Db::connect(&app::database_options(config)).await;
    let (line, db) = match opened {
        Ok(db) => (Ok(kind_of_database(config).to_owned()), Some(db)),
        Err(error) => (Err(error), None),
    };
    all_well &= tell("database", line)?;
    if let Some(db) = db {
        let is_up_to_date = tell("migrations", migrations(&db).await)?;
        all_well &= is_up_to_date;
        if is_up_to_date {
            all_well &= tell("provider", default_provider(config, &db).await)?;
        }
        db.close().await;
    }
    anyhow::ensure!(all_well, "not everything works");
    Ok(())
}

/// The SQLite file of these settings, while nobody has made it.
fn missing_file(config: &Config) -> Option<PathBuf> {
    lock::sqlite_file(&config.database_url).filter(|it| !it.exists())
}

fn tell(what: &str, outcome: anyhow::Result<String>) -> anyhow::Result<bool> {
    let is_well = outcome.is_ok();
    match outcome {
        Ok(detail) => say(&format!("ok    {what}: {detail}"))?,
        Err(error) => say(&format!("wrong {what}: {error:#}"))?,
    }
    Ok(is_well)
}

fn settings(config: &Config) -> anyhow::Result<String> {
    anyhow::ensure!(
        config.redis_url.is_none(),
        "REDIS_URL is set, but running several nodes over Redis is not in this version yet"
    );
    Ok(format!("would listen on {}", config.bind))
}

fn kind_of_database(config: &Config) -> &'static str {
    match config.database_url.starts_with("sqlite") {
        true => "SQLite answers",
        false => "PostgreSQL answers",
    }
}

async fn migrations(db: &Db) -> anyhow::Result<String> {
    let missing = db.missing_migrations().await?;
    anyhow::ensure!(
        missing == 0,
        "{missing} steps are missing; `troupe migrate` or a start applies them"
    );
    Ok("all applied".to_owned())
}

async fn default_provider(config: &Config, db: &Db) -> anyhow::Result<String> {
    let sealer = app::sealer(config)?;
    stock::check_seals(db.reader(), &sealer).await?;
    let Some(provider) = provider::default(db.reader()).await? else {
        return Ok("none yet; the first start puts the demo model there".to_owned());
    };
    let registry = Registry::new(
        egress::client()?,
        config.allow_private_providers,
        Duration::ZERO,
    );
    let model = registry.provider(&provider.spec(&sealer)?)?;
    let clock = Clock::System;
    let began = clock.now();
    catalog::probe(model.as_ref(), &provider.model)
        .await
        .with_context(|| format!("{:?} does not answer", provider.name))?;
    let ms = clock.now().ms_since(began);
    Ok(format!("{:?} answers within {ms} ms", provider.name))
}
