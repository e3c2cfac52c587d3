//! The modules of a crate, as its sources declare them: what each imports, defines and mentions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// One module: a file, or a `mod name { … }` inside one.
pub(super) struct Module {
    /// The file that holds it.
    pub(super) file: PathBuf,
    /// The folder in which the files of its children are.
    folder: PathBuf,
    /// Its parent's place in [`Modules::all`]; `None` for the crate root.
    pub(super) parent: Option<usize>,
    /// Child modules by name, as places in [`Modules::all`].
    pub(super) children: BTreeMap<String, usize>,
    /// Names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    pub(super) mentions: Vec<Mention>,
}

/// One name that a `use` brings in.
pub(super) struct Import {
    /// The path behind `use`, without a rename.
    pub(super) path: Vec<String>,
    /// The name that it gets here; `None` for `*`.
    pub(super) name: Option<String>,
    /// True with any `pub`: others may reach the name through this module.
    pub(super) public: bool,
    pub(super) line: usize,
}

/// A path in the code outside `use`, such as `super::flow::run` or `Report`.
pub(super) struct Mention {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// All modules of one crate that are compiled without `cfg(test)`; the first is the root.
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
}

impl Modules {
    /// Reads the crate whose root is `file`, with the modules that it declares.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let mut modules = Self { all: Vec::new() };
        let folder = file.parent().context("a crate root has a folder")?;
        modules.read_file(file, folder.to_owned(), None)?;
        Ok(modules)
    }

    fn add(&mut self, file: &Path, folder: PathBuf, parent: Option<usize>) -> usize {
        self.all.push(Module {
            file: file.to_owned(),
            folder,
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
            mentions: Vec::new(),
        });
        self.all.len() - 1
    }

    fn read_file(&mut self, file: &Path, folder: PathBuf, parent: Option<usize>) -> Result<usize> {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let tokens: TokenStream = text
            .parse()
            .map_err(|error| anyhow!("cannot read {} as Rust: {error}", file.display()))?;
        let module = self.add(file, folder, parent);
        self.read_tokens(tokens, module, true)?;
        Ok(module)
    }

    /// Takes in `tokens` of `module`; `items` says whether they are its items or the inside of one.
    fn read_tokens(&mut self, tokens: TokenStream, module: usize, items: bool) -> Result<()> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    match test_only_item(&tokens, at) {
                        Some(behind) => behind,
                        None => at + 1,
                    }
                }
                // A lifetime: its name is not a path.
                TokenTree::Punct(punct) if punct.as_char() == '\'' => at + 2,
                TokenTree::Punct(_) | TokenTree::Literal(_) => at + 1,
                TokenTree::Group(group) => {
                    self.read_tokens(group.stream(), module, false)?;
                    at + 1
                }
                TokenTree::Ident(ident) => match ident.to_string().as_str() {
                    "use" if !is_punct(tokens.get(at + 1), '<') => {
                        let end = (at..tokens.len())
                            .find(|&at| is_punct(tokens.get(at), ';'))
                            .unwrap_or(tokens.len());
                        let public = is_public(&tokens[..at]);
                        let imports = &mut self.all[module].imports;
                        read_use(&tokens[at + 1..end], &[], public, imports);
                        end + 1
                    }
                    "mod" => self.read_child(&tokens, at, module)?,
                    "fn" | "struct" | "enum" | "union" | "trait" | "const" | "static" | "type" => {
                        self.read_definition(&tokens, at, module, items)
                    }
                    _ => self.read_mention(&tokens, at, module),
                },
            };
        }
        Ok(())
    }

    /// Reads the `mod name;` or `mod name { … }` at `at`; returns the place behind it.
    fn read_child(&mut self, tokens: &[TokenTree], at: usize, module: usize) -> Result<usize> {
        let Some(TokenTree::Ident(name)) = tokens.get(at + 1) else {
            return Ok(at + 1);
        };
        let name = name.to_string();
        let folder = self.all[module].folder.join(&name);
        let elsewhere = path_attribute(&tokens[..at]);
        let child = if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
            let file = self.all[module].file.clone();
            let child = self.add(&file, folder, Some(module));
            self.read_tokens(body.stream(), child, true)?;
            child
        } else if let Some(elsewhere) = elsewhere {
            let beside = self.all[module].file.parent();
            let file = plain(&beside.unwrap_or(Path::new("")).join(elsewhere));
            // As of a `mod.rs`: its children are files beside it.
            let folder = file.parent().unwrap_or(Path::new("")).to_owned();
            self.read_file(&file, folder, Some(module))?
        } else {
            let mut file = folder.with_extension("rs");
            if !file.exists() {
                file = folder.join("mod.rs");
            }
            self.read_file(&file, folder, Some(module))?
        };
        self.all[module].children.insert(name, child);
        Ok(at + 3)
    }

    /// Notes the item that the keyword at `at` defines; returns the place behind its name.
    fn read_definition(
        &mut self,
        tokens: &[TokenTree],
        at: usize,
        module: usize,
        items: bool,
    ) -> usize {
        let is_keyword = |name: &str| matches!(name, "fn" | "unsafe" | "extern" | "async");
        match tokens.get(at + 1) {
            // `const fn` and its like: the name is behind the last keyword.
            Some(TokenTree::Ident(name)) if is_keyword(&name.to_string()) => at + 1,
            Some(TokenTree::Ident(name)) => {
                if items {
                    self.all[module].items.insert(name.to_string());
                }
                at + 2
            }
            _ => at + 1,
        }
    }

    /// Notes the path that begins at `at`; returns the place behind it.
    fn read_mention(&mut self, tokens: &[TokenTree], at: usize, module: usize) -> usize {
        let mut path = Vec::new();
        let mut end = at;
        while let Some(TokenTree::Ident(ident)) = tokens.get(end) {
            path.push(ident.to_string());
            end += 1;
            if !is_path_separator(tokens, end) {
                break;
            }
            end += 2;
        }
        let before = at.checked_sub(1).and_then(|before| tokens.get(before));
        let is_field = path.len() == 1 && is_punct(tokens.get(end), ':');
        // Behind a dot is a field or a method, behind `::` the rest of a path from elsewhere.
        if !is_punct(before, '.') && !is_punct_pair(tokens, at) && !is_field {
            let line = tokens[at].span().start().line;
            self.all[module].mentions.push(Mention { path, line });
        }
        end.max(at + 1)
    }
}

/// If `tokens[at]` starts an attribute that limits what follows to tests: the place behind that.
fn test_only_item(tokens: &[TokenTree], at: usize) -> Option<usize> {
    let Some(TokenTree::Group(attribute)) = tokens.get(at + 1) else {
        return None;
    };
    if !is_test_only(attribute) {
        return None;
    }
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_punct(Some(token), ';'),
    };
    let rest = &tokens[at + 2..];
    Some(at + 2 + rest.iter().position(ends).map_or(rest.len(), |end| end + 1))
}

/// Whether an attribute is `cfg(test)` or `cfg(all(test, …))`.
fn is_test_only(attribute: &Group) -> bool {
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

/// The file that a `#[path = "…"]` names, among the attributes with which the tokens before a `mod`
/// end.
fn path_attribute(before: &[TokenTree]) -> Option<String> {
    let mut before = match before {
        [rest @ .., TokenTree::Ident(_), TokenTree::Group(group)]
            if group.delimiter() == Delimiter::Parenthesis =>
        {
            rest
        }
        [rest @ .., TokenTree::Ident(word)] if word == "pub" => rest,
        all => all,
    };
    while let [rest @ .., mark, TokenTree::Group(attribute)] = before {
        if !is_punct(Some(mark), '#') {
            break;
        }
        let inside: Vec<TokenTree> = attribute.stream().into_iter().collect();
        if let [TokenTree::Ident(key), _, TokenTree::Literal(value)] = &inside[..]
            && key == "path"
        {
            return Some(value.to_string().trim_matches('"').to_owned());
        }
        before = rest;
    }
    None
}

/// The path without `..` in it, so that a file has one name however it is reached.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Whether the tokens before a `use` end with a visibility.
fn is_public(before: &[TokenTree]) -> bool {
    let is_pub =
        |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Ident(word)) if word == "pub");
    match before {
        [.., first, TokenTree::Group(group)] if group.delimiter() == Delimiter::Parenthesis => {
            is_pub(Some(first))
        }
        _ => is_pub(before.last()),
    }
}

/// Takes in one tree of a `use`, whose path so far is `prefix`.
fn read_use(tokens: &[TokenTree], prefix: &[String], public: bool, imports: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    let mut line = 0;
    let mut at = 0;
    let mut name = None;
    while let Some(token) = tokens.get(at) {
        if line == 0 {
            line = token.span().start().line;
        }
        match token {
            TokenTree::Ident(word) if word == "as" => {
                name = tokens.get(at + 1).map(ToString::to_string);
                break;
            }
            // `{self}` is the module that the path names so far.
            TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for tree in inner.split(|token| is_punct(Some(token), ',')) {
                    read_use(tree, &path, public, imports);
                }
                return;
            }
            token if is_punct(Some(token), '*') => {
                imports.push(Import {
                    path,
                    name: None,
                    public,
                    line,
                });
                return;
            }
            _ => {}
        }
        at += 1;
    }
    if let Some(last) = path.last().cloned().filter(|_| !tokens.is_empty()) {
        imports.push(Import {
            path,
            name: name.or(Some(last)),
            public,
            line,
        });
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')
}

/// Whether `::` stands before `at`.
fn is_punct_pair(tokens: &[TokenTree], at: usize) -> bool {
    at >= 2 && is_path_separator(tokens, at - 2)
}
