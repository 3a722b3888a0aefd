//! The kernel's configuration: what is asked for, and what came out.

use std::collections::BTreeMap;

/// What is put on top of `tinyconfig`.
pub const FRAGMENT: &str = include_str!("config.fragment");

/// What a wanted symbol means to the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Without it the kernel is of no use.
    Core,
    /// Without it some scenarios cannot run.
    Feature,
    /// It should be off.
    Off,
}

/// A kernel configuration, as in its `.config`: symbols that are set, with their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features(BTreeMap<String, String>);

impl Features {
    /// Reads the text of a `.config`. Whatever is not an assignment is passed over.
    pub fn parse(text: &str) -> Self {
        let assignments = text.lines().filter_map(|line| line.trim().strip_prefix("CONFIG_")?.split_once('='));
        let set = assignments.filter(|(_, value)| *value != "n");
        Self(set.map(|(symbol, value)| (symbol.to_owned(), value.trim_matches('"').to_owned())).collect())
    }

    /// Whether a symbol is built in; `NET_SCH_CAKE` and `CONFIG_NET_SCH_CAKE` mean the same.
    pub fn supports(&self, symbol: &str) -> bool {
        self.value(symbol) == Some("y")
    }

    /// The value of a symbol that is set.
    pub fn value(&self, symbol: &str) -> Option<&str> {
        self.0.get(symbol.strip_prefix("CONFIG_").unwrap_or(symbol)).map(String::as_str)
    }

    /// Those of `symbols` that are not there.
    pub fn missing<'a>(&self, symbols: &[&'a str]) -> Vec<&'a str> {
        symbols.iter().copied().filter(|symbol| !self.supports(symbol)).collect()
    }
}

/// How a configuration differs from what was asked for. Symbols carry their `CONFIG_`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Needed and not there.
    pub core: Vec<String>,
    /// Wanted and not there.
    pub features: Vec<String>,
    /// There and not wanted.
    pub on: Vec<String>,
}

/// The symbols of a fragment with what they mean. See the head of `config.fragment` for its form.
pub fn wanted(fragment: &str) -> Vec<(&str, Need)> {
    let mut need = Need::Core;
    let mut wanted = Vec::new();
    for line in fragment.lines() {
        match line.strip_prefix("## ") {
            Some("core") => need = Need::Core,
            Some("features") => need = Need::Feature,
            Some("off") => need = Need::Off,
            _ => {}
        }
        let on = line.split_once("=y").map(|(symbol, _)| symbol);
        let off = line.strip_prefix("# ").and_then(|line| line.strip_suffix(" is not set"));
        if let Some(symbol) = on.or(off).filter(|symbol| symbol.starts_with("CONFIG_")) {
            wanted.push((symbol, need));
        }
    }
    wanted
}

/// Compares what came out with a fragment.
pub fn compare(fragment: &str, features: &Features) -> Difference {
    let mut difference = Difference::default();
    for (symbol, need) in wanted(fragment) {
        let on = features.supports(symbol);
        match need {
            Need::Core if !on => difference.core.push(symbol.to_owned()),
            Need::Feature if !on => difference.features.push(symbol.to_owned()),
            Need::Off if on => difference.on.push(symbol.to_owned()),
            _ => {}
        }
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "\
#
# Automatically generated file; DO NOT EDIT.
CONFIG_NET=y
CONFIG_HZ=1000
CONFIG_LOCALVERSION=\"-x\"
# CONFIG_SMP is not set
CONFIG_VETH=n
";

    #[test]
    fn a_symbol_is_found_with_and_without_its_prefix() {
        let features = Features::parse(CONFIG);
        assert!(features.supports("NET") && features.supports("CONFIG_NET"));
        assert_eq!(features.value("HZ"), Some("1000"));
        assert_eq!(features.value("LOCALVERSION"), Some("-x"));
        assert_eq!(features.missing(&["CONFIG_NET", "CONFIG_SMP", "CONFIG_VETH"]), ["CONFIG_SMP", "CONFIG_VETH"]);
    }

    #[test]
    fn missing_core_symbols_features_and_unwanted_ones_are_distinguished() {
        let fragment =
            "## core\nCONFIG_NET=y\nCONFIG_INET=y\n## features\nCONFIG_IPV6=y\n## off\n# CONFIG_NET is not set\n";
        let difference = compare(fragment, &Features::parse(CONFIG));
        assert_eq!(difference.core, ["CONFIG_INET"]);
        assert_eq!(difference.features, ["CONFIG_IPV6"]);
        assert_eq!(difference.on, ["CONFIG_NET"]);
    }

    #[test]
    fn every_symbol_is_set_and_explained_once() {
        let wanted = wanted(FRAGMENT);
        let mut symbols: Vec<_> = wanted.iter().map(|(symbol, _)| *symbol).collect();
        assert!(wanted.contains(&("CONFIG_UML_TIME_TRAVEL_SUPPORT", Need::Core)));
        assert!(wanted.contains(&("CONFIG_NET_SCH_CAKE", Need::Feature)));
        assert!(wanted.contains(&("CONFIG_SMP", Need::Off)));
        let written = FRAGMENT.lines().filter(|l| l.starts_with("CONFIG_") || l.starts_with("# CONFIG_")).count();
        assert_eq!(symbols.len(), written);
        symbols.sort_unstable();
        symbols.dedup();
        assert_eq!(symbols.len(), written);
    }
}
