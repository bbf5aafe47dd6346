//! The command `troupe check`: tests settings, Redis, database, migrations and default provider,
//! and prints one line with the result of each test.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use base::clock::Clock;
use llm::model_list;
use llm::registry::ProviderRegistry;
use outbound_http::client::{OutboundClient, Resolver, SystemResolver};

use crate::config::Config;
use crate::db::connect::Db;
use crate::db::sqlite::file_lock;
use crate::providers::{builtin_providers, provider};
use crate::{app, cluster};

/// Runs all checks and prints one line for each to standard output.
///
/// # Errors
/// Returns an error when a check fails.
pub async fn check(config: &Config) -> anyhow::Result<()> {
    print_report(config, Arc::new(SystemResolver), &mut std::io::stdout()).await
}

/// As [`check`], with a given name resolver and output.
///
/// # Errors
/// Returns an error when a check fails or `out` cannot be written.
pub async fn print_report(
    config: &Config,
    resolver: Arc<dyn Resolver>,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let egress = OutboundClient::new(resolver, config.allow_private_providers)?;
    let mut print_result = |what, outcome| print_line(out, what, outcome);
    let mut all_ok = true;
    all_ok &= print_result("settings", check_settings(config, &egress))?;
    if let Some(url) = &config.redis_url {
        all_ok &= print_result("redis", cluster::ping_redis(url).await)?;
    }
    if let Some(file) = find_missing_file(config) {
        // The check must not create the file or its folder.
        let line = format!(
            "{} does not exist yet; the first start creates it",
            file.display()
        );
        print_result("database", Ok(line))?;
        anyhow::ensure!(all_ok, "not all checks passed");
        return Ok(());
    }
    let opened = Db::connect(&app::database_options(config)).await;
    let (line, db) = match opened {
        Ok(db) => (Ok(describe_database(config).to_owned()), Some(db)),
        Err(error) => (Err(error), None),
    };
    all_ok &= print_result("database", line)?;
    if let Some(db) = db {
        let is_up_to_date = print_result("migrations", check_migrations(&db).await)?;
        all_ok &= is_up_to_date;
        if is_up_to_date {
            all_ok &= print_result(
                "provider",
                check_default_provider(config, egress, &db).await,
            )?;
        }
        db.close().await;
    }
    anyhow::ensure!(all_ok, "not all checks passed");
    Ok(())
}

/// Returns the SQLite file of these settings if it does not exist.
fn find_missing_file(config: &Config) -> Option<PathBuf> {
    file_lock::sqlite_file(&config.database_url).filter(|it| !it.exists())
}

fn print_line(
    out: &mut impl Write,
    what: &str,
    outcome: anyhow::Result<String>,
) -> anyhow::Result<bool> {
    let is_ok = outcome.is_ok();
    let written = match outcome {
        Ok(detail) => writeln!(out, "ok    {what}: {detail}"),
        Err(error) => writeln!(out, "wrong {what}: {error:#}"),
    };
    written.context("the output is closed")?;
    Ok(is_ok)
}

fn check_settings(config: &Config, egress: &OutboundClient) -> anyhow::Result<String> {
    cluster::check_settings(config)?;
    app::check_environment_provider(config, egress)?;
    Ok(format!("would listen on {}", config.bind))
}

fn describe_database(config: &Config) -> &'static str {
    match config.database_url.starts_with("sqlite") {
        true => "SQLite answers",
        false => "PostgreSQL answers",
    }
}

async fn check_migrations(db: &Db) -> anyhow::Result<String> {
    let missing = db.missing_migrations().await?;
    anyhow::ensure!(
        missing == 0,
        "{missing} migrations are missing; `troupe migrate` or a start applies them"
    );
    Ok("all applied".to_owned())
}

async fn check_default_provider(
    config: &Config,
    egress: OutboundClient,
    db: &Db,
) -> anyhow::Result<String> {
    let sealer = app::build_sealer(config)?;
    builtin_providers::verify_encrypted_keys(db.reader(), &sealer).await?;
    let Some(provider) = provider::find_default(db.reader()).await? else {
        return Ok("none yet; the first start adds the demo model".to_owned());
    };
    let registry = ProviderRegistry::new(egress, Duration::ZERO, None);
    let model = registry.provider(&provider.spec(&sealer)?)?;
    let clock = Clock::system();
    let began = clock.now();
    model_list::probe(model.as_ref(), &provider.model)
        .await
        .with_context(|| format!("{:?} does not answer", provider.name))?;
    let ms = clock.now().ms_since(began);
    Ok(format!("{:?} answers within {ms} ms", provider.name))
}
