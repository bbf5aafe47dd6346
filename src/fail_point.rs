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
        let _ = $crate::fail_point::armed::reach($place);
    };
    ($place:literal, ?) => {
        #[cfg(feature = "failpoints")]
        $crate::fail_point::armed::reach($place)?;
    };
}

/// What the places do in a build that has them.
#[cfg(feature = "failpoints")]
pub mod armed {
    use sea_orm::DbErr;
    use std::io::BufRead;
    use std::process::Command;

    /// Does what was asked of this place.
    ///
    /// # Errors
    /// When that is what was asked.
    pub fn reach(place: &str) -> Result<(), DbErr> {
        fail::fail_point!(place, |deed| act(place, deed.as_deref()));
        Ok(())
    }

    /// Takes what `FAILPOINTS` says, and from now on what is said on standard input.
    pub fn listen() {
        for setting in std::env::var("FAILPOINTS").unwrap_or_default().split(';') {
            obey(setting);
        }
        std::thread::spawn(|| {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                obey(&line);
            }
        });
    }

    fn obey(setting: &str) {
        let Some((place, deed)) = setting.trim().split_once('=') else {
            return;
        };
        if let Err(error) = fail::cfg(place, deed) {
            eprintln!("fail point {place}: {error}");
        }
    }

    fn act(place: &str, deed: Option<&str>) -> Result<(), DbErr> {
        eprintln!("fail point {place}: {}", deed.unwrap_or_default());
        match deed {
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
        fn a_place_does_what_it_is_told_and_only_then() {
            super::obey("here.it.is=1*return(error)");

            assert!(super::reach("somewhere.else").is_ok());
            assert!(super::reach("here.it.is").is_err());
            assert!(super::reach("here.it.is").is_ok());
        }

        #[test]
        fn nonsense_changes_nothing() {
            super::obey("");
            super::obey("no sign");
            super::obey("here.is.nonsense=1*dance");

            assert!(super::reach("here.is.nonsense").is_ok());
        }
    }
}
