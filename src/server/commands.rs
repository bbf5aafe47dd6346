//! Implements the commands `serve`, `migrate` and `reset-password` of the binary.

use std::io::Write;

use anyhow::Context;
use base::clock::Clock;

use crate::accounts::password::Passwords;
use crate::accounts::username_password::Password;
use crate::accounts::{secret_token, session, user};
use crate::app;
use crate::app::App;
use crate::config::Config;
use crate::db::connect::Db;
use crate::server::serve;

/// Serves until the system requests termination.
///
/// # Errors
/// Returns an error when the server cannot start or fails.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    let app = App::build(config, Clock::system()).await?;
    let node = app.engine.context().node.clone();
    let server = serve::listen(app).await?;
    // Runs store the id of the node that executes them; this line relates it to the address.
    tracing::info!(node.id = %node, "listening on http://{}", server.address);
    server.run_until(serve::shutdown_signal()).await
}

/// Applies the missing migrations.
///
/// # Errors
/// Returns an error when the database cannot be opened or a migration fails.
pub async fn migrate(config: &Config) -> anyhow::Result<()> {
    let _ownership = app::acquire_database_file(config, &Clock::system()).await?;
    let db = Db::connect(&app::database_options(config))
        .await
        .context("the database cannot be opened")?;
    let missing = db.missing_migrations().await?;
    db.mark_in_use().await?;
    db.migrate().await?;
    db.close_cleanly().await;
    print_line(&format!(
        "The database is up to date ({missing} migrations were missing)."
    ))
}

/// Sets a new random password for a user, prints it, and revokes all sessions of the user.
///
/// # Errors
/// Returns an error when no user has that name or the database fails.
pub async fn reset_password(config: &Config, username: &str) -> anyhow::Result<()> {
    let db = Db::connect(&app::database_options(config))
        .await
        .context("the database cannot be opened")?;
    anyhow::ensure!(
        db.missing_migrations().await? == 0,
        "the database is not up to date: run `troupe migrate` first"
    );
    let user = user::find_by_username(db.reader(), username)
        .await?
        .with_context(|| format!("no user is called {username:?}"))?;
    let password: String = secret_token::generate().chars().take(20).collect();
    let passwords = Passwords::new(config.password_hash_kib)?;
    let hash = passwords.hash(Password::parse(&password)?).await?;
    let change = user::ProfileChange {
        password_hash: Some(hash),
        ..Default::default()
    };
    db.write(move |tx| {
        Box::pin(async move {
            user::update(tx, user.id, change).await?;
            session::revoke_all(tx, user.id).await?;
            Ok::<_, user::UserError>(())
        })
    })
    .await?;
    print_line(&format!(
        "The new password of {}: {password}",
        user.username
    ))
}

/// Writes a line to standard output.
///
/// # Errors
/// Returns an error when the output is closed.
pub fn print_line(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("the output is closed")
}
