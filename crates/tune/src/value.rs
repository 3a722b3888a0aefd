//! Values of settings, in a form that can be restored.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landspeed_netlink::Qdisc;
use serde::{Deserialize, Serialize};

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// Text: a sysctl as the kernel prints it, a decimal number, `on` or `off`, a CPU list.
    Text(String),
    /// All qdiscs of an interface.
    Qdiscs(QdiscTree),
}

impl Value {
    /// Creates a text value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Whether both values are equal, ignoring white space in text and the default qdisc kind.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.split_whitespace().eq(b.split_whitespace()),
            (Self::Qdiscs(a), Self::Qdiscs(b)) => a.qdiscs == b.qdiscs,
            _ => false,
        }
    }

    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::Text(text) => text.trim().parse().ok(),
            Self::Qdiscs(_) => None,
        }
    }
}

/// Formats the value in one line.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" ")),
            Self::Qdiscs(tree) => tree.fmt(f),
        }
    }
}

/// All qdiscs of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscTree {
    /// `net.core.default_qdisc` when the tree was read; empty if unknown.
    pub default_kind: String,
    /// The qdiscs: the root first, then ordered by parent.
    pub qdiscs: Vec<QdiscNode>,
}

/// One qdisc of a tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscNode {
    /// Kind, such as `fq`.
    pub kind: String,
    /// Handle, major number in the upper 16 bits; 0 if the kernel attached it automatically.
    pub handle: u32,
    /// Parent handle; `0xffffffff` for the root.
    pub parent: u32,
    /// Options as dumped by the kernel, in base64.
    pub options: Option<String>,
    /// Properties that a dump does not contain completely; they prevent a restore.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<String>,
}

impl QdiscNode {
    /// Encodes dumped options as base64.
    pub fn encode_options(bytes: &[u8]) -> String {
        STANDARD.encode(bytes)
    }

    /// Decodes the dumped options; `None` if the text is not valid base64.
    pub fn decode_options(&self) -> Option<Option<Vec<u8>>> {
        self.options.as_ref().map(|text| STANDARD.decode(text).ok()).map_or(Some(None), |bytes| bytes.map(Some))
    }

    /// Whether it is the root qdisc.
    pub fn is_root(&self) -> bool {
        self.parent == Qdisc::ROOT
    }

    /// Whether it is an ingress or clsact qdisc.
    pub fn is_ingress(&self) -> bool {
        self.parent == Qdisc::INGRESS
    }
}

/// Kinds whose dump contains everything needed to create them again.
const RESTORABLE_KINDS: &[&str] = &[
    "noqueue",
    "mq",
    "pfifo",
    "bfifo",
    "pfifo_fast",
    "tbf",
    "fq",
    "fq_codel",
    "codel",
    "pie",
    "fq_pie",
    "cake",
    "sfq",
];

impl QdiscTree {
    /// The root qdisc.
    pub fn root(&self) -> Option<&QdiscNode> {
        self.qdiscs.iter().find(|node| node.is_root())
    }

    /// Qdiscs below the root, without ingress.
    pub fn leaves(&self) -> impl Iterator<Item = &QdiscNode> {
        self.qdiscs.iter().filter(|node| !node.is_root() && !node.is_ingress())
    }

    /// Whether the kernel attached the root automatically: it is restored by deleting the root.
    pub fn is_default(&self) -> bool {
        self.root().is_none_or(|root| root.handle == 0)
    }

    /// The qdiscs that schedule transmission: the leaves of `mq`, or else the root.
    pub fn transmit_qdiscs(&self) -> Vec<&QdiscNode> {
        match self.root() {
            Some(root) if root.kind == "mq" => self.leaves().collect(),
            root => root.into_iter().collect(),
        }
    }

    /// Returns why this tree could not be restored exactly; `None` if it could. An ingress qdisc is not
    /// touched.
    pub fn unsupported_reason(&self) -> Option<String> {
        for node in self.qdiscs.iter().filter(|node| !node.is_ingress()) {
            if !RESTORABLE_KINDS.contains(&node.kind.as_str()) {
                return Some(format!(
                    "there is {} {}, whose classes or options the kernel does not report in full; \
                     change it by hand with tc",
                    article(&node.kind),
                    node.kind
                ));
            }
            if let Some(extra) = node.extras.first() {
                return Some(format!("the {} has {extra}, which the kernel does not report in full", node.kind));
            }
        }
        // A default leaf is restored as the current default.
        let other = |node: &&QdiscNode| {
            node.handle == 0 && !["mq", "noqueue"].contains(&node.kind.as_str()) && node.kind != self.default_kind
        };
        let default = self.default_kind.as_str();
        self.qdiscs.iter().filter(|node| !node.is_ingress()).find(other).map(|node| {
            if default.is_empty() {
                "the kernel attached its default queueing disciplines, and which kind is the default cannot be read here"
                    .to_owned()
            } else {
                format!(
                    "the kernel attached {} when that was net.core.default_qdisc; now it is {default}, and {} could not \
                     be brought back. Set net.core.default_qdisc to {} first, or take the interface down and up so that \
                     it gets {default}",
                    node.kind, node.kind, node.kind
                )
            }
        })
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'h']) { "an" } else { "a" }
}

/// Formats a tree, such as `mq with fq ×4`, `fq_codel` or `mq (default) with pfifo ×2, fq ×2`.
impl fmt::Display for QdiscTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(root) = self.root() else { return f.write_str("none") };
        let default = if root.handle == 0 { " (default)" } else { "" };
        let mut kinds: Vec<(&str, usize)> = Vec::new();
        for leaf in self.leaves() {
            match kinds.iter_mut().find(|(kind, _)| *kind == leaf.kind) {
                Some((_, count)) => *count += 1,
                None => kinds.push((&leaf.kind, 1)),
            }
        }
        write!(f, "{}{default}", root.kind)?;
        for (i, (kind, count)) in kinds.iter().enumerate() {
            write!(f, "{} {kind} ×{count}", if i == 0 { " with" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, handle: u32, parent: u32) -> QdiscNode {
        QdiscNode { kind: kind.into(), handle, parent, ..QdiscNode::default() }
    }

    fn tree(default_kind: &str, qdiscs: Vec<QdiscNode>) -> QdiscTree {
        QdiscTree { default_kind: default_kind.into(), qdiscs }
    }

    #[test]
    fn unrestorable_qdisc_tree_has_a_reason() {
        let fine = tree("fq_codel", vec![node("mq", 0, Qdisc::ROOT), node("fq_codel", 0, 1)]);
        assert_eq!(fine.unsupported_reason(), None);
        assert!(fine.is_default());
        let htb = tree("fq", vec![node("htb", 1 << 16, Qdisc::ROOT)]);
        assert!(htb.unsupported_reason().is_some_and(|why| why.contains("an htb")));
        let stale = tree("fq", vec![node("mq", 0, Qdisc::ROOT), node("fq_codel", 0, 1)]);
        assert!(stale.unsupported_reason().is_some_and(|why| why.contains("now it is fq")));
        let mut sized = node("fq", 1 << 16, Qdisc::ROOT);
        sized.extras.push("a size table".into());
        assert!(tree("fq", vec![sized]).unsupported_reason().is_some());
    }

    #[test]
    fn white_space_is_ignored_in_comparison() {
        assert!(Value::text("4096\t131072\t6291456").same(&Value::text("4096 131072 6291456 ")));
        assert!(!Value::text("1").same(&Value::text("0")));
    }

    #[test]
    fn qdisc_tree_is_formatted_in_one_line() {
        let mq = tree("fq", vec![node("mq", 0, Qdisc::ROOT), node("fq", 0, 1), node("fq", 0, 2)]);
        assert_eq!(mq.to_string(), "mq (default) with fq ×2");
    }
}
