//! The binary: reads the settings and runs one command.

use clap::Parser;
use clap::Subcommand;
use std::process::ExitCode;
use troupe::config::Config;
use troupe::server::check;
use troupe::server::commands;
use troupe::telemetry::log;

/// A conversation server in which people and AI characters share a room.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the web client and the API (the default).
    Serve,
    /// Bring the database up to date and end.
    Migrate,
    /// Try settings, database and provider, and say what works and what does not.
    Check,
    /// Give a user a new password, print it, and end all their sessions.
    ResetPassword {
        /// Whose.
        username: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command.unwrap_or(Command::Serve)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("troupe: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<()> {
    match dotenvy::dotenv() {
        Err(error) if !error.not_found() => anyhow::bail!(".env cannot be read: {error}"),
        _ => {}
    }
    let config = Config::from_environment()?;
    match command {
        Command::Serve => {
            log::start(config.log_format)?;
            #[cfg(feature = "failpoints")]
            troupe::fail_point::armed::listen();
            commands::serve(config).await
        }
        Command::Migrate => commands::migrate(&config).await,
        Command::Check => check::check(&config).await,
        Command::ResetPassword { username } => commands::reset_password(&config, &username).await,
    }
}
