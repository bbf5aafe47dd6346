//! Named places at which a test may kill, stop, delay or fail this process.
//!
//! **Invariant:** only a build with the feature `failpoints` holds any of it; in every other one
//! [`crate::fail_point!`] is nothing, not even the name of its place.
//!
//! The variable `FAILPOINTS`, and each line of standard input, says what happens where:
//! `exec.after_claim=1*return(kill);write.after_commit=5%return(error)`. Before the sign stand how
//! often or how likely, as the crate `fail` takes it; the deeds are `return(kill)`, `return(stop)`,
//! `return(error)`, `sleep(ms)`, `panic` and `off`.

/// A place. With `?` it may also fail as the database does, in a function that returns such errors.
#[macro_export]
macro_rules! fail_point {
    ($place:literal) => {
        #[cfg(feature = "failpoints")]
        let _ = $crate::fail_point::armed::hit($place);
    };
    ($place:literal, ?) => {
        #[cfg(feature = "failpoints")]
        $crate::fail_point::armed::hit($place)?;
    };
}

/// What the places do in a build that has them.
#[cfg(feature = "failpoints")]
pub mod armed {
    use std::io::BufRead;
    use std::process::Command;

    use sea_orm::DbErr;

    /// Does what was asked of this place.
    ///
    /// # Errors
    /// When that is what was asked.
    pub fn hit(place: &str) -> Result<(), DbErr> {
        fail::fail_point!(place, |deed| run_action(place, deed.as_deref()));
        Ok(())
    }

    /// Takes what `FAILPOINTS` says, and from now on what is said on standard input.
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
        let Some((place, action)) = setting.trim().split_once('=') else {
            return;
        };
        if let Err(error) = fail::cfg(place, action) {
            eprintln!("fail point {place}: {error}");
        }
    }

    fn run_action(place: &str, action: Option<&str>) -> Result<(), DbErr> {
        eprintln!("fail point {place}: {}", action.unwrap_or_default());
        match action {
            Some("kill") => std::process::abort(),
            Some("stop") => {
                let pid = std::process::id().to_string();
                // Nobody needs its answer: it comes when this process goes on.
                let _ = Command::new("kill").args(["-STOP", &pid]).status();
                Ok(())
            }
            _ => Err(DbErr::Custom(format!("the fail point {place}"))),
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
