//! Paths used in Rust source, without comments and strings; `use` groups are expanded, imports and test code are
//! marked.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A path or single identifier in source: `std::fs::read`, `unsafe`, `todo` in `todo!()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathUsage {
    /// Path segments; `use std::{fs, net::TcpStream}` gives `std::fs` and `std::net::TcpStream`, and a glob import
    /// ends with `*`.
    pub segments: Vec<String>,
    /// Line of the first segment after the group's prefix, from 1.
    pub line: usize,
    /// Whether it is inside `#[cfg(test)]`, `#[test]` or a test file.
    pub in_test: bool,
    /// Whether it is followed by `!` and a delimiter (a macro call).
    pub is_macro: bool,
    /// Whether it is the name in `fn name`.
    pub is_fn_name: bool,
    /// Set in a `use` declaration.
    pub import: Option<Import>,
}

/// The name that a `use` declaration brings into the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Last segment of the path (the one before `self`), or the alias after `as`.
    pub name: String,
    /// Whether it is `pub use` or `pub(…) use`.
    pub is_public: bool,
}

impl PathUsage {
    /// Returns the path joined with `::`.
    pub fn path(&self) -> String {
        self.segments.join("::")
    }
}

/// Paths and attributes of one Rust file.
#[derive(Debug, Default)]
pub struct Code {
    /// All paths, in source order.
    pub usage: Vec<PathUsage>,
    /// Attributes, in source order: line and text without spaces (`#[ignore="why"]`, `#![forbid(unsafe_code)]`).
    pub attributes: Vec<(usize, String)>,
}

impl Code {
    /// Parses a file; `is_test` marks all of it as test code.
    pub fn parse(text: &str, is_test: bool) -> Result<Self> {
        let stream: TokenStream = text.parse().map_err(|error| anyhow!("not Rust: {error}"))?;
        let mut code = Self::default();
        code.walk(stream, &[], is_test, None);
        Ok(code)
    }

    /// Records the paths in `stream`. `import` is set inside a `use` declaration: whether it is public.
    fn walk(&mut self, stream: TokenStream, prefix: &[String], in_test: bool, mut import: Option<bool>) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut path = Open::default();
        // Set by a test attribute until the end of the item it belongs to.
        let mut item_is_test = false;
        let mut after_fn = false;
        let mut after_pub = false;
        let mut i = 0;
        while i < trees.len() {
            let in_test_now = in_test || item_is_test;
            match &trees[i] {
                TokenTree::Ident(ident) if import.is_some() && ident == "as" => {
                    path.alias = trees.get(i + 1).map(ToString::to_string);
                    i += 2;
                }
                TokenTree::Ident(ident) => {
                    if !path.wants_segment {
                        self.close(&mut path, prefix, in_test_now, false);
                        path.line = ident.span().start().line;
                        path.is_fn_name = after_fn;
                        path.import = import;
                    }
                    // `use<'a>` in a type is not a declaration.
                    if ident == "use" && !is_punct(trees.get(i + 1), '<') {
                        import = Some(after_pub);
                    }
                    after_pub = ident == "pub";
                    path.segments.push(ident.to_string());
                    path.wants_segment = false;
                    after_fn = ident == "fn";
                    i += 1;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && is_punct(trees.get(i + 1), ':') => {
                    path.wants_segment = true;
                    i += 2;
                }
                TokenTree::Group(group) if path.wants_segment && group.delimiter() == Delimiter::Brace => {
                    let mut longer = prefix.to_vec();
                    longer.append(&mut path.segments);
                    path.wants_segment = false;
                    self.walk(group.stream(), &longer, in_test_now, import);
                    i += 1;
                }
                TokenTree::Punct(punct) if path.wants_segment && punct.as_char() == '*' => {
                    path.segments.push("*".to_owned());
                    path.wants_segment = false;
                    i += 1;
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.close(&mut path, prefix, in_test_now, false);
                    let bracket = i + 1 + usize::from(is_punct(trees.get(i + 1), '!'));
                    if let Some(TokenTree::Group(group)) = trees.get(bracket)
                        && group.delimiter() == Delimiter::Bracket
                    {
                        let inner = if bracket == i + 2 { "!" } else { "" };
                        let text: String = group.stream().to_string().split_whitespace().collect();
                        item_is_test |= inner.is_empty() && marks_test(&text);
                        self.attributes.push((punct.span().start().line, format!("#{inner}[{text}]")));
                        i = bracket;
                    }
                    i += 1;
                }
                TokenTree::Punct(punct) => {
                    let calls = punct.as_char() == '!'
                        && punct.spacing() == Spacing::Alone
                        && matches!(trees.get(i + 1), Some(TokenTree::Group(_)));
                    self.close(&mut path, prefix, in_test_now, calls);
                    if punct.as_char() == ';' {
                        item_is_test = false;
                        import = None;
                    }
                    i += 1;
                }
                TokenTree::Group(group) => {
                    self.close(&mut path, prefix, in_test_now, false);
                    self.walk(group.stream(), &[], in_test_now, import);
                    item_is_test &= group.delimiter() != Delimiter::Brace;
                    i += 1;
                }
                TokenTree::Literal(_) => {
                    self.close(&mut path, prefix, in_test_now, false);
                    i += 1;
                }
            }
        }
        self.close(&mut path, prefix, in_test || item_is_test, false);
    }

    fn close(&mut self, open: &mut Open, prefix: &[String], in_test: bool, is_macro: bool) {
        let open = std::mem::take(open);
        let Some(last) = open.segments.last() else { return };
        let import = open.import.map(|is_public| {
            let named = if last == "self" { prefix.last().unwrap_or(last) } else { last };
            Import { name: open.alias.unwrap_or_else(|| named.clone()), is_public }
        });
        self.usage.push(PathUsage {
            segments: prefix.iter().cloned().chain(open.segments).collect(),
            line: open.line,
            in_test,
            is_macro,
            is_fn_name: open.is_fn_name,
            import,
        });
    }
}

#[derive(Default)]
struct Open {
    segments: Vec<String>,
    line: usize,
    /// The last token was `::`.
    wants_segment: bool,
    is_fn_name: bool,
    import: Option<bool>,
    alias: Option<String>,
}

fn is_punct(tree: Option<&TokenTree>, char: char) -> bool {
    matches!(tree, Some(TokenTree::Punct(punct)) if punct.as_char() == char)
}

/// Whether an attribute marks test code: `test`, `cfg(test)`, `cfg(all(test,unix))`, but not `cfg(not(test))` or
/// `cfg(feature="test")`.
fn marks_test(attribute: &str) -> bool {
    let Some(condition) = attribute.strip_prefix("cfg(") else { return attribute == "test" };
    !condition.contains("not(") && condition.split(['(', ')', ',']).any(|word| word == "test")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(text: &str) -> Vec<String> {
        Code::parse(text, false).unwrap().usage.iter().map(PathUsage::path).collect()
    }

    #[test]
    fn use_groups_are_expanded() {
        let usage = usage("use std::{fs, net::{IpAddr, TcpStream as Socket}, time::Duration};");
        for path in ["std::fs", "std::net::IpAddr", "std::net::TcpStream", "std::time::Duration"] {
            assert!(usage.contains(&path.to_owned()), "{path} not in {usage:?}");
        }
    }

    #[test]
    fn imports_have_their_alias_and_visibility() {
        let text = "pub(crate) use a::{self, b::C as D, e::*}; use f::G; fn h() -> impl I + use<'_> { j::k() }";
        let code = Code::parse(text, false).unwrap();
        let imports = code.usage.iter().filter_map(|usage| {
            let import = usage.import.as_ref()?;
            Some((usage.path(), import.name.clone(), import.is_public))
        });
        let expected = [("a::self", "a", true), ("a::b::C", "D", true), ("a::e::*", "*", true), ("f::G", "G", false)];
        assert_eq!(
            imports.collect::<Vec<_>>(),
            expected.map(|(path, name, is_public)| (path.to_owned(), name.to_owned(), is_public))
        );
    }

    #[test]
    fn comments_and_strings_are_ignored_but_macro_arguments_count() {
        let usage = usage("/// std::fs\n// unsafe\nfn f() { print!(\"std::thread {}\", std::env::args().count()) }");
        assert!(usage.contains(&"std::env::args".to_owned()), "{usage:?}");
        assert!(!usage.iter().any(|path| path.contains("fs") || path == "unsafe"), "{usage:?}");
    }

    #[test]
    fn code_after_a_test_module_is_not_test_code() {
        let text = "#[cfg(test)]\nmod tests { use std::fs; }\n#[cfg(not(test))]\nuse std::thread;\n#[test]\nfn claim() { sleep() }\nfn real() {}";
        let code = Code::parse(text, false).unwrap();
        let in_test = |path: &str| code.usage.iter().find(|usage| usage.path() == path).unwrap().in_test;
        assert!(in_test("std::fs") && in_test("sleep"));
        assert!(!in_test("std::thread") && !in_test("real"));
    }

    #[test]
    fn macro_calls_and_function_names_are_recognised() {
        let code = Code::parse("fn panic() { if a != (b) { panic!(\"x\") } }", false).unwrap();
        let panics: Vec<_> = code.usage.iter().filter(|usage| usage.path() == "panic").collect();
        assert_eq!((panics[0].is_fn_name, panics[0].is_macro), (true, false));
        assert_eq!((panics[1].is_fn_name, panics[1].is_macro), (false, true));
        assert!(code.usage.iter().all(|usage| usage.path() != "a" || !usage.is_macro));
    }
}
