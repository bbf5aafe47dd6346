//! The `troupe` binary: parses the command line, reads the settings (also from `.env`), and runs
//! one command: serve (the default), migrate, check, or reset a password.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use troupe::config::Config;
use troupe::server::{check, commands};
use troupe::telemetry::logging;

/// A conversation server for people and AI characters.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Serve the web client and the API (the default).
    Serve,
    /// Migrate the database and exit.
    Migrate,
    /// Test the settings, Redis, the database and the default provider, and print the results.
    Check,
    /// Give a user a new password, print it, and end all their sessions.
    ResetPassword {
        /// The name with which the user signs in.
        username: String,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli.command.unwrap_or(CliCommand::Serve)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("troupe: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: CliCommand) -> anyhow::Result<()> {
    match dotenvy::dotenv() {
        Err(error) if !error.not_found() => anyhow::bail!(".env cannot be read: {error}"),
        _ => {}
    }
    let config = Config::from_environment()?;
    match command {
        CliCommand::Serve => {
            logging::init(config.log_format)?;
            #[cfg(feature = "failpoints")]
            base::fail_point::armed::listen();
            commands::serve(config).await
        }
        CliCommand::Migrate => commands::migrate(&config).await,
        CliCommand::Check => check::check(&config).await,
        CliCommand::ResetPassword { username } => {
            commands::reset_password(&config, &username).await
        }
    }
}
