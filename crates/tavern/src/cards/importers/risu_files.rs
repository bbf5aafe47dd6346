//! Recognizes Risu's binary files in archives (`module.risum`, `x_meta/…`). They are stored as they
//! are and exported again, because their scripts do not run here.

use crate::import_warning::ImportWarning;

/// The maximum number of such files in an archive; more than any tool writes.
const MAX_FILES: usize = 100;

/// Returns the paths that are kept though no card names them.
pub fn kept_paths(paths: &[String]) -> Vec<&str> {
    let kept = paths.iter().map(String::as_str).filter(|path| {
        let is_binary = path.ends_with(".risum") || path.ends_with(".risup");
        is_binary || path.starts_with("x_meta/") && !path.ends_with('/')
    });
    kept.take(MAX_FILES).collect()
}

/// Returns the warning about files that were kept.
pub fn warning(names: &[&str]) -> Option<ImportWarning> {
    let first: String = names.first()?.chars().take(60).collect();
    let n = names.len();
    let sentence = format!(
        "Files of another program were kept and will be exported again: {n}, such as `{first}`. \
         Scripts in them do not run."
    );
    let warning = ImportWarning::new("opaque_files_kept", sentence).with("n", n);
    Some(warning.with("name", first))
}

#[cfg(test)]
mod tests {
    use super::{kept_paths, warning};

    #[test]
    fn modules_and_metadata_are_kept() {
        let paths = [
            "card.json",
            "module.risum",
            "x_meta/1.json",
            "x_meta/",
            "notes.txt",
        ];
        let paths = paths.map(str::to_owned);

        let kept = kept_paths(&paths);

        assert_eq!(kept, ["module.risum", "x_meta/1.json"]);
        assert_eq!(warning(&kept).expect("a warning").params["n"], 2);
        assert_eq!(warning(&[]), None);
    }
}
