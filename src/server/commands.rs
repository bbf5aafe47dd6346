//! What the binary does beside `check`: serve, migrate, reset a password.

use std::io::Write;

use anyhow::Context;

use crate::accounts::names::Password;
use crate::accounts::password::Passwords;
use crate::accounts::{secret_token, session, user};
use crate::app;
use crate::app::App;
use crate::clock::Clock;
use crate::config::Config;
use crate::db::connect::Db;
use crate::server::serve;

/// Serves until the system asks to end.
///
/// # Errors
/// What keeps the server from starting, or made it fail.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    let app = App::build(config, Clock::system()).await?;
    let node = app.engine.context().node.clone();
    let server = serve::listen(app).await?;
    // Runs carry the name of the node that holds them: this line tells whose it is.
    tracing::info!(node.id = %node, "listening on http://{}", server.address);
    server.run_until(serve::shutdown_signal()).await
}

/// Brings the database up to date.
///
/// # Errors
/// When it cannot be opened, or a step fails.
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
        "The database is up to date ({missing} steps were missing)."
    ))
}

/// Gives a user a new password, which is printed, and ends all their sessions.
///
/// # Errors
/// When nobody has that name, or the database fails.
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
        .with_context(|| format!("nobody is called {username:?}"))?;
    let password: String = secret_token::generate().chars().take(20).collect();
    let hash = Passwords::new().hash(Password::parse(&password)?).await?;
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

/// Says something to whoever ran the command.
///
/// # Errors
/// When nobody listens.
pub fn print_line(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("the output is closed")
}
