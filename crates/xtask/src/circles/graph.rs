//! Which file needs which, and the circles among them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::modules::{Import, Module, Modules};

/// Where a path leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    /// To a module itself.
    Module(usize),
    /// To an item that this module defines.
    Item(usize),
    /// To another crate, or nowhere that the sources show.
    Outside,
}

/// Longest chain of re-exports that is followed: a `use` may lead to itself.
const LONGEST_CHAIN: usize = 16;

/// Two files, the first of which needs the second.
pub(super) type Edge = (PathBuf, PathBuf);

/// The files of a crate and what they need, each with the places that say so: line and path.
pub(super) struct Graph {
    pub(super) needs: BTreeMap<Edge, Vec<(usize, String)>>,
}

impl Graph {
    pub(super) fn of(modules: &Modules) -> Self {
        let mut graph = Self {
            needs: BTreeMap::new(),
        };
        for (place, module) in modules.all.iter().enumerate() {
            for import in &module.imports {
                let target = modules.resolve(place, &import.path, 0);
                if let Some(needed) = modules.needed_by_import(place, import, target) {
                    graph.add(module, needed, import.line, &import.path);
                }
            }
            for mention in &module.mentions {
                if let Target::Item(needed) = modules.resolve(place, &mention.path, 0) {
                    graph.add(module, &modules.all[needed], mention.line, &mention.path);
                }
            }
        }
        graph
    }

    fn add(&mut self, from: &Module, to: &Module, line: usize, path: &[String]) {
        if from.file != to.file {
            let places = self
                .needs
                .entry((from.file.clone(), to.file.clone()))
                .or_default();
            places.push((line, path.join("::")));
        }
    }

    /// The circles: sets of more than one file in which each needs each other, directly or not.
    pub(super) fn circles(&self) -> Vec<BTreeSet<&Path>> {
        let files: BTreeSet<&Path> = self.needs.keys().map(|(from, _)| from.as_path()).collect();
        let reached: BTreeMap<&Path, BTreeSet<&Path>> = files
            .iter()
            .map(|&file| (file, self.reached(file)))
            .collect();
        let mut circles: Vec<BTreeSet<&Path>> = Vec::new();
        for &file in &files {
            if circles.iter().any(|circle| circle.contains(file)) {
                continue;
            }
            let circle: BTreeSet<&Path> = reached[file]
                .iter()
                .copied()
                .filter(|other| reached.get(other).is_some_and(|back| back.contains(file)))
                .collect();
            if circle.len() > 1 {
                circles.push(circle);
            }
        }
        circles
    }

    /// Every file that `start` needs, directly or not.
    fn reached<'a>(&'a self, start: &'a Path) -> BTreeSet<&'a Path> {
        let mut reached = BTreeSet::new();
        let mut open = vec![start];
        while let Some(file) = open.pop() {
            for (from, to) in self.needs.keys() {
                if from == file && reached.insert(to.as_path()) {
                    open.push(to);
                }
            }
        }
        reached
    }
}

impl Modules {
    /// The module that an import makes its module need, if any.
    fn needed_by_import(&self, place: usize, import: &Import, target: Target) -> Option<&Module> {
        let needed = match target {
            Target::Item(needed) => needed,
            // Of a module, what is mentioned through it counts; of `module::*`, all.
            Target::Module(needed) if import.name.is_none() => needed,
            Target::Module(_) | Target::Outside => return None,
        };
        // A parent may re-export what its children define.
        let re_export = import.public && self.is_below(needed, place);
        (!re_export).then(|| &self.all[needed])
    }

    fn is_below(&self, mut module: usize, parent: usize) -> bool {
        while let Some(above) = self.all[module].parent {
            if above == parent {
                return true;
            }
            module = above;
        }
        false
    }

    /// Where `path` leads from within the module at `place`.
    fn resolve(&self, place: usize, path: &[String], chain: usize) -> Target {
        if chain > LONGEST_CHAIN {
            return Target::Outside;
        }
        let mut rest = path;
        let mut module = place;
        let mut anchored = false;
        while let [word, behind @ ..] = rest {
            match word.as_str() {
                "crate" => module = 0,
                "self" => {}
                "super" => match self.all[module].parent {
                    Some(parent) => module = parent,
                    None => return Target::Outside,
                },
                _ => break,
            }
            anchored = true;
            rest = behind;
        }
        for (index, name) in rest.iter().enumerate() {
            match self.look_up(module, name, chain) {
                Some(Target::Module(next)) => module = next,
                Some(target) => return target,
                // A name that no module shows: of a macro, or of another crate.
                None if anchored || index > 0 => return Target::Item(module),
                None => return Target::Outside,
            }
        }
        Target::Module(module)
    }

    /// What `name` means in `module`.
    fn look_up(&self, module: usize, name: &str, chain: usize) -> Option<Target> {
        let here = &self.all[module];
        if let Some(&child) = here.children.get(name) {
            return Some(Target::Module(child));
        }
        if here.items.contains(name) {
            return Some(Target::Item(module));
        }
        let mut named = here
            .imports
            .iter()
            .filter(|import| import.name.as_deref() == Some(name));
        if let Some(import) = named.next() {
            return Some(self.resolve(module, &import.path, chain + 1));
        }
        let globs = here.imports.iter().filter(|import| import.name.is_none());
        for glob in globs {
            if chain < LONGEST_CHAIN
                && let Target::Module(source) = self.resolve(module, &glob.path, chain + 1)
                && source != module
                && let Some(found) = self.look_up(source, name, chain + 1)
            {
                return Some(found);
            }
        }
        None
    }
}
