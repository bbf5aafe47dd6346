//! Packs small clients and compares what is served.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::{PackedFile, pack};

const PAGE: &str = "<!doctype html>\n<!-- A page. -->\n<script src=\"/js/theme.js\"></script>\n\
    <link rel=\"stylesheet\" href=\"/css/a.css\">\n<link rel=\"stylesheet\" href=\"/css/b.css\">\n\
    <script type=\"module\" src=\"/js/main.js\"></script>\n<p>Hello</p>\n";

/// Writes a client with these modules, and packs it.
fn pack_modules(modules: &[(&str, &str)]) -> anyhow::Result<Vec<PackedFile>> {
    let folder = TempDir::new()?;
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        fs::write(path, text)
    };
    write("index.html", PAGE)?;
    write("robots.txt", "User-agent: *\n")?;
    write("js/theme.js", "theme()\n")?;
    write("css/a.css", "/* First. */\n.a {\n  color: red;\n}\n")?;
    write("css/b.css", ".b {}\n")?;
    for (name, text) in modules {
        write(name, text)?;
    }
    Ok(pack(folder.path())?.files)
}

fn text_of(files: &[PackedFile], end: &str) -> String {
    let file = files.iter().find(|file| file.name.ends_with(end));
    let file = file.unwrap_or_else(|| panic!("{end} is not packed"));
    String::from_utf8(file.bytes.clone()).expect("packed files are text")
}

fn error_of(modules: &[(&str, &str)]) -> String {
    match pack_modules(modules) {
        Ok(_) => panic!("{modules:?} was packed"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn a_module_follows_those_that_it_imports() {
    let files = pack_modules(&[
        (
            "js/main.js",
            "// Starts.\nimport Shell, {\n  a,\n  b as c,\n} from \"./base/x.js\"\n\n  new Shell(a, c)\n",
        ),
        (
            "js/base/x.js",
            "export const a = 1\nexport async function b() {}\nexport default class {}\n",
        ),
    ])
    .expect("packed");

    assert_eq!(
        text_of(&files, "/index.js"),
        "const $base_x=(()=>{\nconst a = 1\nasync function b() {}\nconst $default = class {}\n\
         return{a,b,default:$default}\n})();\n\
         const $main=(()=>{\nconst{default:Shell,a,b:c}=$base_x;\nnew Shell(a, c)\nreturn{}\n})();\n"
    );
}

#[test]
fn what_is_loaded_later_is_in_another_script_that_shares_its_modules() {
    let files = pack_modules(&[
        (
            "js/main.js",
            "import { a } from \"./a.js\"\nopen = () => import(\"./later.js\")\n",
        ),
        ("js/a.js", "export const a = 1\n"),
        (
            "js/later.js",
            "import { a } from \"./a.js\"\nexport default { a }\n",
        ),
    ])
    .expect("packed");

    let main = text_of(&files, "/index.js");
    assert!(main.contains(r#"Promise.all([import("./index-later.js")]).then((it)=>it[0].$later)"#));
    assert!(main.ends_with("export{$a};\n"), "{main}");
    let later = text_of(&files, "/index-later.js");
    assert!(
        later.starts_with("import{$a}from\"./index.js\";\n"),
        "{later}"
    );
    assert!(later.ends_with("export{$later};\n"), "{later}");
}

#[test]
fn the_lines_of_a_template_are_kept() {
    let text = "const text = `\n  // kept\nimport x from \"x\"\n`\n  // removed\n";

    let files = pack_modules(&[("js/main.js", text)]).expect("packed");

    let main = text_of(&files, "/index.js");
    assert!(
        main.contains("`\n  // kept\nimport x from \"x\"\n`\nreturn"),
        "{main}"
    );
}

#[test]
fn a_page_names_the_packed_files_only() {
    let files = pack_modules(&[("js/main.js", "start()\n")]).expect("packed");

    let style = files.iter().find(|it| it.name.ends_with(".css"));
    let style = style.expect("one stylesheet");
    let root = style.name.trim_end_matches("/index.css");
    assert_eq!(style.bytes, b".a {\ncolor: red;\n}\n.b {}\n");
    assert_eq!(
        text_of(&files, "index.html"),
        format!(
            "<!doctype html>\n<script>theme()\n</script>\n\
             <link rel=\"stylesheet\" href=\"/{root}/index.css\">\n\
             <script type=\"module\" src=\"/{root}/index.js\"></script>\n<p>Hello</p>\n"
        )
    );
}

#[test]
fn a_change_of_any_packed_file_changes_the_folder_of_all() {
    let folder = |text: &str| {
        let files = pack_modules(&[("js/main.js", text)]).expect("packed");
        let hashed = files.iter().filter(|file| file.is_hashed);
        let folders = hashed.map(|file| file.name.rsplit_once('/').expect("a folder").0.to_owned());
        folders.collect::<Vec<_>>()
    };

    assert_eq!(folder("a()\n"), folder("a()\n"));
    assert_ne!(folder("a()\n"), folder("b()\n"));
    assert_eq!(folder("a()\n").len(), 2);
}

#[test]
fn an_unknown_form_is_refused() {
    for text in [
        "import * as a from \"./a.js\"\n",
        "import \"./a.js\"\n",
        "export let a = 1\n",
        "export { a }\n",
        "export{ a }\n",
        "export * from \"./a.js\"\n",
        "export*from \"./a.js\"\n",
        "import{ a } from \"./a.js\"\n",
        "import { a } from './a.js'\n",
        "open = () => import('./a.js')\n",
        "open = (name) => import(name)\n",
        "open(import.meta.url)\n",
        "import { none } from \"./a.js\"\n",
        "import { a } from \"a\"\n",
    ] {
        let error = error_of(&[("js/main.js", text), ("js/a.js", "export const a = 1\n")]);
        assert!(error.contains("js/main.js"), "{text}: {error}");
    }
}

#[test]
fn a_text_about_imports_is_no_form() {
    let text = "t(\"The import. It reimport(s), see x.import(y)\")\n";

    assert!(pack_modules(&[("js/main.js", text)]).is_ok());
}

#[test]
fn two_modules_with_one_variable_are_refused() {
    let main = "import { a } from \"./x/y.js\"\nimport { b } from \"./x_y.js\"\n";
    let error = error_of(&[
        ("js/main.js", main),
        ("js/x/y.js", "export const a = 1\n"),
        ("js/x_y.js", "export const b = 1\n"),
    ]);

    assert!(error.contains("two modules are named $x_y"), "{error}");
}

#[test]
fn two_scripts_with_one_name_are_refused() {
    let main = "f = () => import(\"./x/y.js\")\ng = () => import(\"./x-y.js\")\n";
    let error = error_of(&[
        ("js/main.js", main),
        ("js/x/y.js", "export const a = 1\n"),
        ("js/x-y.js", "export const b = 1\n"),
    ]);

    assert!(
        error.contains("two scripts are named index-x-y.js"),
        "{error}"
    );
}

#[test]
fn a_page_that_names_a_source_in_an_unknown_form_is_refused() {
    for line in [
        "<script defer src=\"/js/theme.js\"></script>",
        "<link href=\"/css/a.css\" rel=\"stylesheet\">",
        "<link rel=\"modulepreload\" href=\"/js/main.js\">",
    ] {
        let page = PAGE.replace("<p>Hello</p>", line);
        let error = error_of(&[("js/main.js", "start()\n"), ("index.html", &page)]);
        assert!(
            error.contains(&format!("index.html: unknown form: {line}")),
            "{error}"
        );
    }
}

#[test]
fn modules_that_import_each_other_are_refused() {
    let error = error_of(&[
        (
            "js/main.js",
            "import { a } from \"./a.js\"\nexport const b = a\n",
        ),
        (
            "js/a.js",
            "import { b } from \"./main.js\"\nexport const a = b\n",
        ),
    ]);

    assert!(
        error.contains("js/a.js -> js/main.js -> js/a.js"),
        "{error}"
    );
}

#[test]
fn compressed_files_have_the_same_content() {
    let long = "call()\n".repeat(1_000);
    let files = pack_modules(&[("js/main.js", &long)]).expect("packed");

    let main = files.iter().find(|it| it.name.ends_with("/index.js"));
    let main = main.expect("packed");
    let mut unpacked = Vec::new();
    let gzip = main.gzip.as_deref().expect("smaller with gzip");
    std::io::copy(&mut flate2::read::GzDecoder::new(gzip), &mut unpacked).expect("gzip");
    assert_eq!(unpacked, main.bytes);
    let mut unpacked = Vec::new();
    let mut brotli = main.brotli.as_deref().expect("smaller with brotli");
    brotli::BrotliDecompress(&mut brotli, &mut unpacked).expect("brotli");
    assert_eq!(unpacked, main.bytes);
}
