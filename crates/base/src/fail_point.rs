//! Fail points: named places in the code at which a test can kill, stop or delay this process, or
//! make a function return an error.
//!
//! **Invariant:** only a build with the feature `failpoints` contains them; in any other build
//! [`crate::fail_point!`] expands to nothing, not even its name.
//!
//! The variable `FAILPOINTS`, and each line of standard input, configures them:
//! `exec.after_claim=1*return(kill);write.after_commit=5%return(error)`. The count or probability
//! before an action has the syntax of the crate `fail`; the actions are `return(kill)`,
//! `return(stop)`, `return(error)`, `sleep(ms)`, `panic` and `off`.

/// Marks a fail point. With `?` it may also return an error from the enclosing function, as
/// sea-orm's `DbErr`, because it simulates a failure of the database.
///
/// A crate that uses it needs a feature `failpoints` that enables the feature of this crate.
#[macro_export]
macro_rules! fail_point {
    ($name:literal) => {
        #[cfg(feature = "failpoints")]
        let _ = $crate::fail_point::armed::hit($name);
    };
    ($name:literal, ?) => {
        #[cfg(feature = "failpoints")]
        $crate::fail_point::armed::hit($name).map_err(::sea_orm::DbErr::from)?;
    };
}

/// Runs the actions, in a build with fail points.
#[cfg(feature = "failpoints")]
pub mod armed {
    use std::io::BufRead;
    use std::process::Command;

    /// The error that the action `return(error)` returns.
    #[derive(Debug, thiserror::Error)]
    #[error("the fail point {0}")]
    pub struct FailPointError(String);

    #[cfg(feature = "sea-orm")]
    impl From<FailPointError> for sea_orm::DbErr {
        fn from(error: FailPointError) -> Self {
            Self::Exec(sea_orm::RuntimeErr::Internal(error.to_string()))
        }
    }

    /// Runs the action configured for `name`.
    ///
    /// # Errors
    /// Returns [`FailPointError`] if the action is `return(error)`.
    pub fn hit(name: &str) -> Result<(), FailPointError> {
        fail::fail_point!(name, |action| run_action(name, action.as_deref()));
        Ok(())
    }

    /// Reads the settings in `FAILPOINTS`, then starts a thread that reads more from standard
    /// input.
    pub fn listen() {
        for setting in std::env::var("FAILPOINTS").unwrap_or_default().split(';') {
            apply_action(setting);
        }
        std::thread::spawn(|| {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                apply_action(&line);
            }
        });
    }

    fn apply_action(setting: &str) {
        let Some((name, action)) = setting.trim().split_once('=') else {
            return;
        };
        if let Err(error) = fail::cfg(name, action) {
            eprintln!("fail point {name}: {error}");
        }
    }

    fn run_action(name: &str, action: Option<&str>) -> Result<(), FailPointError> {
        eprintln!("fail point {name}: {}", action.unwrap_or_default());
        match action {
            Some("kill") => std::process::abort(),
            Some("stop") => {
                let pid = std::process::id().to_string();
                // The exit status does not matter: this process is stopped until a test continues
                // it.
                let _ = Command::new("kill").args(["-STOP", &pid]).status();
                Ok(())
            }
            _ => Err(FailPointError(name.to_owned())),
        }
    }

    #[cfg(test)]
    mod tests {
        #[test]
        fn a_fail_point_runs_its_configured_action_and_no_other() {
            super::apply_action("here.it.is=1*return(error)");

            assert!(super::hit("somewhere.else").is_ok());
            assert!(super::hit("here.it.is").is_err());
            assert!(super::hit("here.it.is").is_ok());
        }

        #[test]
        fn an_invalid_setting_changes_nothing() {
            super::apply_action("");
            super::apply_action("no sign");
            super::apply_action("here.is.nonsense=1*dance");

            assert!(super::hit("here.is.nonsense").is_ok());
        }
    }
}
