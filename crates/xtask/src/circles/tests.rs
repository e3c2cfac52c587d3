//! The checker on small crates.

use std::fs;

use super::*;

/// What is wrong with the crate of these files (path, text), beyond `known`.
fn check(known: &str, files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = folder.path().join("lib.rs");
    problems_beyond(known, folder.path(), &[root]).unwrap()
}

const CIRCLE: [(&str, &str); 3] = [
    ("lib.rs", "mod a; mod b;"),
    ("a.rs", "use crate::b::B;\npub struct A(B);"),
    ("b.rs", "pub struct B;\n\nuse super::a::A;"),
];

#[test]
fn a_circle_is_named_with_the_imports_that_make_it() {
    assert_eq!(
        check("", &CIRCLE),
        ["2 files need each other:\
        \n    a.rs:1 names crate::b::B of b.rs (new)\
        \n    b.rs:3 names super::a::A of a.rs (new)"]
    );
}

#[test]
fn known_imports_pass_and_more_do_not() {
    let known = "# why\na.rs -> b.rs\nb.rs -> a.rs\n";
    assert_eq!(check(known, &CIRCLE), Vec::<String>::new());
    let larger = [
        ("lib.rs", "mod a; mod b; mod c;"),
        CIRCLE[1],
        ("b.rs", "pub struct B; use super::{a::A, c::C};"),
        ("c.rs", "pub struct C; use crate::a::A;"),
    ];
    let found = check(known, &larger);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("3 files need each other:"),
        "{found:?}"
    );
    assert_eq!(found[0].matches("(new)").count(), 2, "{found:?}");
}

#[test]
fn a_known_import_that_closes_no_circle_is_to_be_removed() {
    let found = check(
        "a.rs -> b.rs\n",
        &[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "pub struct B;"),
        ],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("remove the line `a.rs -> b.rs`"),
        "{found:?}"
    );
}

#[test]
fn three_files_in_a_row_are_one_circle() {
    let found = check(
        "",
        &[
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "pub struct B; fn f() { crate::c::run() }"),
            ("c.rs", "pub fn run() { print!(\"{}\", super::a::A) }"),
            ("d.rs", "use crate::a::A;"),
        ],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("3 files need each other:"),
        "{found:?}"
    );
    assert!(!found[0].contains("d.rs"), "{found:?}");
}

#[test]
fn a_parent_may_re_export_its_children() {
    let parent = "mod child; pub use child::Child; pub struct Own;";
    let child = ("a/child.rs", "use super::Own; pub struct Child;");
    assert_eq!(
        check("", &[("lib.rs", "mod a;"), ("a/mod.rs", parent), child]),
        Vec::<String>::new()
    );
    // It needs them as soon as its own code names them.
    for own_code in [
        "fn make() -> Child { loop {} }",
        "fn make() { child::make() }",
        "use child::make;",
        "use child::*;",
    ] {
        let parent = format!("{parent} {own_code}");
        let found = check("", &[("lib.rs", "mod a;"), ("a/mod.rs", &parent), child]);
        assert_eq!(found.len(), 1, "{own_code}: {found:?}");
        assert!(found[0].contains("a/mod.rs:1 names"), "{found:?}");
    }
}

#[test]
fn re_exports_are_followed_to_the_file_that_defines() {
    let found = check(
        "",
        &[
            ("lib.rs", "mod a; mod b; pub use a::*;"),
            ("a.rs", "mod deep; pub(crate) use deep::Deep as Shallow;"),
            ("a/deep.rs", "use crate::b; pub struct Deep(b::B);"),
            ("b.rs", "use crate::Shallow; pub struct B;"),
        ],
    );
    assert_eq!(
        found,
        ["2 files need each other:\
        \n    a/deep.rs:1 names b::B of b.rs (new)\
        \n    b.rs:1 names crate::Shallow of a/deep.rs (new)"]
    );
}

#[test]
fn tests_inner_modules_and_other_crates_do_not_count() {
    assert_eq!(
        check(
            "",
            &[
                (
                    "lib.rs",
                    "mod a; mod b; #[cfg(test)] mod tests; pub struct Root;"
                ),
                (
                    "a.rs",
                    "use std::fmt; use b::B; pub struct A; fn f<'b>(_: fmt::Error) { let b = 1; b.min(2); }
                    mod inner { use super::A; pub struct I; }
                    use inner::I;
                    #[cfg(test)] #[allow(unused)] mod tests { use crate::b::B; }
                    #[cfg(test)] fn g() { crate::b::run() }
                    #[cfg(all(test, unix))] use crate::b::B;"
                ),
                ("b.rs", "use crate::a::A; pub struct B; pub fn run() {}"),
            ]
        ),
        Vec::<String>::new()
    );
}

#[test]
fn a_file_that_an_attribute_names_is_read() {
    let found = check(
        "",
        &[
            ("lib.rs", "mod a;"),
            (
                "a/mod.rs",
                "#[allow(dead_code)] #[path = \"../beside/b.rs\"] #[rustfmt::skip] pub(crate) mod b;
                pub struct A(b::B);",
            ),
            ("beside/b.rs", "mod c; pub struct B(c::C);"),
            ("beside/c.rs", "pub struct C(crate::a::A);"),
        ],
    );
    assert_eq!(
        found,
        ["3 files need each other:\
        \n    a/mod.rs:2 names b::B of beside/b.rs (new)\
        \n    beside/b.rs:1 names c::C of beside/c.rs (new)\
        \n    beside/c.rs:1 names crate::a::A of a/mod.rs (new)"]
    );
}
