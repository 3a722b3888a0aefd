//! The kernel's configuration: the requested one and the result.

use std::collections::BTreeMap;

/// Configuration fragment that is added to `tinyconfig`.
pub const FRAGMENT: &str = include_str!("config.fragment");

/// Importance of a symbol for the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The kernel is of no use without it.
    Core,
    /// Some scenarios cannot run without it.
    Feature,
    /// It should be off.
    Off,
}

/// A kernel configuration, as in its `.config`: symbols that are set, with their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Features(BTreeMap<String, String>);

impl Features {
    /// Parses a `.config`. Lines that are not assignments are skipped.
    pub fn parse(text: &str) -> Self {
        let assignments = text.lines().filter_map(|line| line.trim().strip_prefix("CONFIG_")?.split_once('='));
        let set = assignments.filter(|(_, value)| *value != "n");
        Self(set.map(|(symbol, value)| (symbol.to_owned(), value.trim_matches('"').to_owned())).collect())
    }

    /// Returns whether a symbol is built in; `NET_SCH_CAKE` and `CONFIG_NET_SCH_CAKE` are the same.
    pub fn supports(&self, symbol: &str) -> bool {
        self.value(symbol) == Some("y")
    }

    /// Returns the value of a symbol, if it is set.
    pub fn value(&self, symbol: &str) -> Option<&str> {
        self.0.get(symbol.strip_prefix("CONFIG_").unwrap_or(symbol)).map(String::as_str)
    }

    /// Returns those of `symbols` that are not built in.
    pub fn missing<'a>(&self, symbols: &'a [String]) -> Vec<&'a str> {
        symbols.iter().map(String::as_str).filter(|symbol| !self.supports(symbol)).collect()
    }
}

/// Differences between a configuration and the requested one. Symbols include `CONFIG_`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Core symbols that are missing.
    pub core: Vec<String>,
    /// Features that are missing.
    pub features: Vec<String>,
    /// Symbols that are on but should be off.
    pub on: Vec<String>,
}

/// Returns the symbols of a fragment with their importance. The head of `config.fragment` describes its format.
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

/// Compares a resulting configuration with a fragment.
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
        assert_eq!(
            features.missing(&["CONFIG_NET", "CONFIG_SMP", "CONFIG_VETH"].map(str::to_owned)),
            ["CONFIG_SMP", "CONFIG_VETH"]
        );
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
    fn every_symbol_of_the_fragment_is_parsed_and_unique() {
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
