//! `troupe check`: what works and what does not, line by line.

use crate::app;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Db;
use crate::db::lock;
use crate::llm::catalog;
use crate::llm::egress::Egress;
use crate::llm::egress::Names;
use crate::llm::egress::SystemNames;
use crate::llm::registry::Registry;
use crate::nodes;
use crate::providers::provider;
use crate::providers::stock;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Tries one thing after the other and says how it went.
///
/// # Errors
/// When something does not work.
pub async fn check(config: &Config) -> anyhow::Result<()> {
    report(config, Arc::new(SystemNames), &mut std::io::stdout()).await
}

/// The same, with whoever knows the addresses behind names, and whoever reads.
///
/// # Errors
/// When something does not work.
pub async fn report(
    config: &Config,
    names: Arc<dyn Names>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let egress = Egress::new(names, config.allow_private_providers)?;
    let mut tell = |what, outcome| tell(out, what, outcome);
    let mut all_well = true;
    all_well &= tell("settings", settings(config, &egress))?;
    if let Some(url) = &config.redis_url {
        all_well &= tell("redis", nodes::try_redis(url).await)?;
    }
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
            all_well &= tell("provider", default_provider(config, egress, &db).await)?;
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

fn tell(out: &mut impl Write, what: &str, outcome: anyhow::Result<String>) -> anyhow::Result<bool> {
    let is_well = outcome.is_ok();
    let told = match outcome {
        Ok(detail) => writeln!(out, "ok    {what}: {detail}"),
        Err(error) => writeln!(out, "wrong {what}: {error:#}"),
    };
    told.context("the output is closed")?;
    Ok(is_well)
}

fn settings(config: &Config, egress: &Egress) -> anyhow::Result<String> {
    nodes::check_settings(config)?;
    app::check_environment(config, egress)?;
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

async fn default_provider(config: &Config, egress: Egress, db: &Db) -> anyhow::Result<String> {
    let sealer = app::sealer(config)?;
    stock::check_seals(db.reader(), &sealer).await?;
    let Some(provider) = provider::default(db.reader()).await? else {
        return Ok("none yet; the first start puts the demo model there".to_owned());
    };
    let registry = Registry::new(egress, Duration::ZERO);
    let model = registry.provider(&provider.spec(&sealer)?)?;
    let clock = Clock::system();
    let began = clock.now();
    catalog::probe(model.as_ref(), &provider.model)
        .await
        .with_context(|| format!("{:?} does not answer", provider.name))?;
    let ms = clock.now().ms_since(began);
    Ok(format!("{:?} answers within {ms} ms", provider.name))
}
