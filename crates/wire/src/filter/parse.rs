//! Parser for the subset of `pcap-filter(7)`.
//!
//! `and` and `or` have the same precedence and are left-associative; `not` binds tightest. A bare value after
//! `and` or `or` takes the qualifiers of the preceding primitive: `port 80 or 443`.

use std::net::Ipv6Addr;

use super::FilterError;
use crate::LinkType;

/// Maximum length of an expression, bytes.
const MAX_EXPRESSION_BYTES: usize = 64 << 10;
/// Maximum number of primitives in an expression; each may need 20 instructions.
const MAX_PRIMITIVES: usize = 512;
/// Maximum nesting depth of parentheses and `not`.
const MAX_DEPTH: usize = 64;
/// Maximum number of `vlan` in an expression.
const MAX_TAGS: u32 = 8;

/// A filter expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    /// A primitive, and the number of `vlan` before it in the text: it applies after that many tags.
    Primitive(Primitive, u32),
}

/// A test of a packet without operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Primitive {
    /// Protocol name alone, such as `tcp`.
    Protocol(Protocol),
    /// `host` or `net` with IPv4, in IP, ARP and RARP unless a protocol is given.
    Network4 { within: Option<Protocol>, side: Side, address: u32, mask: u32 },
    /// `host` or `net` with IPv6.
    Network6 { side: Side, address: u128, mask: u128 },
    /// `port` or `portrange`, in TCP, UDP and SCTP unless a protocol is given.
    Ports { within: Option<Protocol>, side: Side, first: u16, last: u16 },
    /// `vlan`, with an optional identifier.
    Vlan(Option<u16>),
    /// `outbound`: sent by this host.
    Outbound,
}

/// Protocols with a name in the subset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Ip,
    Ip6,
    Arp,
    Rarp,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmp6,
}

/// Direction qualifier of an address or port: `src`, `dst`, `src or dst` (the default), `src and dst`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Source,
    Destination,
    Either,
    Both,
}

/// Type qualifier of a value: `host`, `net`, `port`, `portrange`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Net,
    Port,
    PortRange,
}

/// Qualifiers before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Qualifiers {
    protocol: Option<Protocol>,
    side: Side,
    kind: Kind,
}

/// Parses an expression; `None` if it is empty.
pub fn parse(text: &str, link: LinkType) -> Result<Option<Expression>, FilterError> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(FilterError::Invalid { column: 1, why: format!("longer than {MAX_EXPRESSION_BYTES} bytes") });
    }
    let tokens = split(text)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let end = text.chars().count() + 1;
    let mut parser = Parser { tokens, next: 0, end, tags: 0, primitives: 0, nested: 0, link };
    let (expression, _) = parser.expression()?;
    match parser.peek() {
        None => Ok(Some(expression)),
        Some(_) => Err(parser.unexpected("`and`, `or` or the end")),
    }
}

/// A token and its column.
type Token<'a> = (&'a str, usize);

/// Splits a text into tokens. Other characters become tokens that no rule accepts.
fn split(text: &str) -> Result<Vec<Token<'_>>, FilterError> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '-' | '_');
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut column = 1;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\0' => {
                return Err(FilterError::Invalid { column, why: "a filter cannot contain a zero byte".to_owned() });
            }
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("&&") || rest.starts_with("||") => 2,
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if !matches!(first, ' ' | '\t' | '\n' | '\r') {
            tokens.push((token, column));
        }
        column += token.chars().count();
        rest = after;
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    next: usize,
    /// Column after the last character.
    end: usize,
    tags: u32,
    primitives: usize,
    nested: usize,
    link: LinkType,
}

/// An expression, and the qualifiers for a bare value after it.
type Qualified = (Expression, Option<Qualifiers>);

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.tokens.get(self.next).map(|(token, _)| *token)
    }

    fn peek_at(&self, further: usize) -> Option<&'a str> {
        self.tokens.get(self.next + further).map(|(token, _)| *token)
    }

    /// Consumes the next token if it is one of these.
    fn take(&mut self, tokens: &[&str]) -> bool {
        let taken = self.peek().is_some_and(|token| tokens.contains(&token));
        self.next += usize::from(taken);
        taken
    }

    fn column(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(_, column)| *column)
    }

    /// Error for a next token that the subset does not allow here.
    fn unexpected(&self, expected: &'static str) -> FilterError {
        let column = self.column();
        match self.peek() {
            Some(found) => FilterError::Unknown { column, found: found.to_owned(), expected },
            None => FilterError::Invalid { column, why: format!("syntax error: {expected} is missing at the end") },
        }
    }

    fn invalid(&self, why: String) -> FilterError {
        FilterError::Invalid { column: self.column(), why }
    }

    fn nest(&mut self) -> Result<(), FilterError> {
        self.nested += 1;
        if self.nested > MAX_DEPTH {
            return Err(self.invalid(format!("more than {MAX_DEPTH} parentheses and `not` inside each other")));
        }
        Ok(())
    }

    /// Parses terms and bare values, joined by `and` and `or`.
    fn expression(&mut self) -> Result<Qualified, FilterError> {
        let (mut left, mut qualifiers) = self.term()?;
        loop {
            let and = self.take(&["and", "&&"]);
            if !and && !self.take(&["or", "||"]) {
                return Ok((left, qualifiers));
            }
            let right = if let Some(same) = qualifiers.filter(|_| self.is_value_next()) {
                self.value(same)?
            } else {
                let (right, new) = self.term()?;
                qualifiers = new;
                right
            };
            left = joined(and, left, right);
        }
    }

    /// Whether a bare value follows, possibly negated or in parentheses.
    fn is_value_next(&self) -> bool {
        let begin = self.tokens.get(self.next..).unwrap_or_default();
        let first = begin.iter().map(|(token, _)| *token).find(|token| !matches!(*token, "(" | "not" | "!"));
        first.is_some_and(|token| token.starts_with(|c: char| c.is_ascii_digit()) || token.contains(':'))
    }

    /// Parses a primitive, a negated term, or an expression in parentheses.
    fn term(&mut self) -> Result<Qualified, FilterError> {
        if self.take(&["not", "!"]) {
            self.nest()?;
            let (term, qualifiers) = self.term()?;
            self.nested -= 1;
            return Ok((Expression::Not(Box::new(term)), qualifiers));
        }
        if self.take(&["("]) {
            self.nest()?;
            let (inner, _) = self.expression()?;
            self.close()?;
            // No bare value may follow, as in tcpdump.
            return Ok((inner, None));
        }
        self.primitive()
    }

    fn close(&mut self) -> Result<(), FilterError> {
        if !self.take(&[")"]) {
            return Err(self.unexpected("`)`"));
        }
        self.nested -= 1;
        Ok(())
    }

    fn primitive(&mut self) -> Result<Qualified, FilterError> {
        if self.take(&["vlan"]) {
            return Ok((self.vlan()?, None));
        }
        if self.take(&["outbound"]) {
            return Ok((self.counted(Primitive::Outbound)?, None));
        }
        if self.take(&["inbound"]) {
            return Ok((Expression::Not(Box::new(self.counted(Primitive::Outbound)?)), None));
        }
        let begin = self.next;
        let protocol = self.peek().and_then(protocol);
        self.next += usize::from(protocol.is_some());
        let side = self.side();
        let kind = match self.peek() {
            Some("host") => Some(Kind::Host),
            Some("net") => Some(Kind::Net),
            Some("port") => Some(Kind::Port),
            Some("portrange") => Some(Kind::PortRange),
            _ => None,
        };
        self.next += usize::from(kind.is_some());
        match (protocol, side, kind) {
            (Some(protocol), None, None) => Ok((self.counted(Primitive::Protocol(protocol))?, None)),
            (None, None, None) => Err(self.unexpected("a protocol, `host`, `net`, `port`, `portrange` or `vlan`")),
            _ => {
                let kind = kind.unwrap_or(Kind::Host);
                let qualifiers = Qualifiers { protocol, side: side.unwrap_or(Side::Either), kind };
                let allowed: &[Protocol] = match kind {
                    Kind::Host | Kind::Net => &[Protocol::Ip, Protocol::Ip6, Protocol::Arp, Protocol::Rarp],
                    Kind::Port | Kind::PortRange => &[Protocol::Tcp, Protocol::Udp, Protocol::Sctp],
                };
                if protocol.is_some_and(|protocol| !allowed.contains(&protocol)) {
                    self.next = begin;
                    return Err(self.unexpected("a protocol with such addresses or ports"));
                }
                Ok((self.value(qualifiers)?, Some(qualifiers)))
            }
        }
    }

    fn side(&mut self) -> Option<Side> {
        let (first, other) = match self.peek()? {
            "src" => (Side::Source, "dst"),
            "dst" => (Side::Destination, "src"),
            _ => return None,
        };
        self.next += 1;
        if self.peek_at(1) == Some(other) {
            let both = match self.peek() {
                Some("or" | "||") => Side::Either,
                Some("and" | "&&") => Side::Both,
                _ => return Some(first),
            };
            self.next += 2;
            return Some(both);
        }
        Some(first)
    }

    fn vlan(&mut self) -> Result<Expression, FilterError> {
        if self.link != LinkType::ETHERNET {
            self.next -= 1;
            return Err(self.invalid("`vlan` needs Ethernet frames".to_owned()));
        }
        let id = match self.peek().filter(|token| token.starts_with(|c: char| c.is_ascii_digit())) {
            None => None,
            Some(token) => Some(self.number(token, 4095, "a VLAN identifier")?),
        };
        let vlan = self.counted(Primitive::Vlan(id))?;
        self.tags += 1;
        if self.tags > MAX_TAGS {
            return Err(self.invalid(format!("`vlan` more than {MAX_TAGS} times")));
        }
        Ok(vlan)
    }

    /// Parses a bare value, possibly negated, or several in parentheses.
    fn value(&mut self, qualifiers: Qualifiers) -> Result<Expression, FilterError> {
        if self.take(&["not", "!"]) {
            self.nest()?;
            let value = self.value(qualifiers)?;
            self.nested -= 1;
            return Ok(Expression::Not(Box::new(value)));
        }
        if self.take(&["("]) {
            self.nest()?;
            let mut left = self.value(qualifiers)?;
            loop {
                let and = self.take(&["and", "&&"]);
                if !and && !self.take(&["or", "||"]) {
                    break;
                }
                let right = self.value(qualifiers)?;
                left = joined(and, left, right);
            }
            self.close()?;
            return Ok(left);
        }
        let primitive = match qualifiers.kind {
            Kind::Host | Kind::Net => self.network(qualifiers)?,
            Kind::Port | Kind::PortRange => self.ports(qualifiers)?,
        };
        self.counted(primitive)
    }

    fn counted(&mut self, primitive: Primitive) -> Result<Expression, FilterError> {
        self.primitives += 1;
        if self.primitives > MAX_PRIMITIVES {
            return Err(self.invalid(format!("more than {MAX_PRIMITIVES} primitives")));
        }
        Ok(Expression::Primitive(primitive, self.tags))
    }

    /// Parses a decimal number and consumes the token.
    fn number(&mut self, token: &str, most: u16, expected: &'static str) -> Result<u16, FilterError> {
        let number = decimal(token).ok_or_else(|| self.unexpected(expected))?;
        let number = u16::try_from(number).ok().filter(|number| *number <= most);
        let number = number.ok_or_else(|| {
            self.invalid(format!("{token} is greater than {most}, the greatest number of {expected}"))
        })?;
        self.next += 1;
        Ok(number)
    }

    fn ports(&mut self, Qualifiers { protocol, side, kind }: Qualifiers) -> Result<Primitive, FilterError> {
        let expected = if kind == Kind::Port { "a port number" } else { "a range of ports such as 5000-5010" };
        let token = self.peek().ok_or_else(|| self.unexpected(expected))?;
        let (first, last) = match (kind, token.split_once('-')) {
            (Kind::PortRange, Some((first, last))) => {
                let first = self.number(first, u16::MAX, expected)?;
                self.next -= 1;
                (first, self.number(last, u16::MAX, expected)?)
            }
            (Kind::Port, None) => {
                let port = self.number(token, u16::MAX, expected)?;
                (port, port)
            }
            _ => return Err(self.unexpected(expected)),
        };
        Ok(Primitive::Ports { within: protocol, side, first: first.min(last), last: first.max(last) })
    }

    fn network(&mut self, qualifiers: Qualifiers) -> Result<Primitive, FilterError> {
        let Qualifiers { protocol, side, kind } = qualifiers;
        let expected = if kind == Kind::Host { "an IPv4 or IPv6 address" } else { "an IPv4 or IPv6 network" };
        let token = self.peek().ok_or_else(|| self.unexpected(expected))?;
        let begin = self.next;
        if let Some(address) =
            token.parse::<Ipv6Addr>().ok().filter(|_| matches!(protocol, None | Some(Protocol::Ip6)))
        {
            self.next += 1;
            let bits = if kind == Kind::Net { self.prefix(128)?.unwrap_or(128) } else { 128 };
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            let address = u128::from(address);
            self.check_host_bits(address & !mask != 0, begin)?;
            return Ok(Primitive::Network6 { side, address, mask });
        }
        let (address, given) = dotted(token)
            .filter(|(_, given)| kind == Kind::Net || *given == 32)
            .filter(|_| protocol != Some(Protocol::Ip6))
            .ok_or_else(|| self.unexpected(expected))?;
        self.next += 1;
        let one_number = given == 8;
        let mask = if kind != Kind::Net || one_number {
            u32::MAX << (32 - given)
        } else if self.take(&["mask"]) {
            let mask = self.peek().and_then(dotted).filter(|(_, given)| *given == 32);
            let (mask, _) = mask.ok_or_else(|| self.unexpected("a network mask such as 255.255.0.0"))?;
            self.next += 1;
            mask
        } else {
            u32::MAX.checked_shl(32 - self.prefix(32)?.unwrap_or(given)).unwrap_or(0)
        };
        self.check_host_bits(address & !mask != 0, begin)?;
        Ok(Primitive::Network4 { within: protocol, side, address, mask })
    }

    /// Parses an optional prefix length (`/ bits`).
    fn prefix(&mut self, most: u16) -> Result<Option<u32>, FilterError> {
        if !self.take(&["/"]) {
            return Ok(None);
        }
        let expected = "bits of a prefix";
        let token = self.peek().ok_or_else(|| self.unexpected(expected))?;
        self.number(token, most, expected).map(|bits| Some(bits.into()))
    }

    fn check_host_bits(&mut self, outside: bool, begin: usize) -> Result<(), FilterError> {
        if outside {
            self.next = begin;
            return Err(self.invalid("the network has bits set beyond its prefix".to_owned()));
        }
        Ok(())
    }
}

fn joined(and: bool, left: Expression, right: Expression) -> Expression {
    let (left, right) = (Box::new(left), Box::new(right));
    if and { Expression::And(left, right) } else { Expression::Or(left, right) }
}

fn protocol(name: &str) -> Option<Protocol> {
    Some(match name {
        "ip" => Protocol::Ip,
        "ip6" => Protocol::Ip6,
        "arp" => Protocol::Arp,
        "rarp" => Protocol::Rarp,
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        "sctp" => Protocol::Sctp,
        "icmp" => Protocol::Icmp,
        "icmp6" => Protocol::Icmp6,
        _ => return None,
    })
}

/// Parses a decimal number. Numbers with a leading 0 would be octal or hexadecimal and are left to tcpdump.
fn decimal(token: &str) -> Option<u32> {
    let plain = token == "0" || !token.starts_with('0');
    token.parse().ok().filter(|_| plain && token.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses one to four parts of an IPv4 address; returns it and the number of bits given, the rest is zero. A
/// single 0 is left to tcpdump, which takes it as the host 0.0.0.0.
fn dotted(token: &str) -> Option<(u32, u32)> {
    let mut address = 0;
    let mut bits = 0;
    for part in token.split('.') {
        let part = decimal(part).filter(|part| *part <= 255)?;
        bits += 8;
        address |= part.checked_shl(32_u32.checked_sub(bits)?)?;
    }
    (bits > 8 || address != 0).then_some((address, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> FilterError {
        parse(text, LinkType::ETHERNET).expect_err(text)
    }

    #[test]
    fn unknown_tokens_are_reported_with_their_column() {
        for (text, column, found) in [
            ("tpc", 1, "tpc"),
            ("tcp port http", 10, "http"),
            ("tcp or port 80 foo", 16, "foo"),
            ("tcp[13] & 2 != 0", 4, "["),
            ("port 080", 6, "080"),
            ("net 0", 5, "0"),
            ("net 10/8", 7, "/"),
            ("host 10.1", 6, "10.1"),
            ("ip6 host 10.0.0.1", 10, "10.0.0.1"),
            ("ip host ::1", 9, "::1"),
            ("tcp host 10.0.0.1", 1, "tcp"),
            ("(port 80) or 443", 14, "443"),
            ("ü", 1, "ü"),
            ("vlan x", 6, "x"),
        ] {
            let refusal = refused(text);
            let named = matches!(&refusal, FilterError::Unknown { column: at, found: what, .. } if *at == column && what == found);
            assert!(named, "{text}: {refusal:?}");
        }
    }

    #[test]
    fn invalid_expressions_are_not_left_to_tcpdump() {
        for (text, column, word) in [
            ("tcp port", 9, "missing"),
            ("tcp and (udp", 13, "missing"),
            ("port 65536", 6, "65535"),
            ("net 10.0.0.1/8", 5, "beyond"),
            ("net 2001:db8::1/32", 5, "beyond"),
            ("net 10.0.0.0/33", 14, "32"),
            ("vlan 4096", 6, "4095"),
            ("tcp\0", 4, "zero"),
        ] {
            let refusal = refused(text);
            let named =
                matches!(&refusal, FilterError::Invalid { column: at, why } if *at == column && why.contains(word));
            assert!(named, "{text}: {refusal:?}");
        }
        let raw = parse("vlan", LinkType::RAW).expect_err("no tags");
        assert!(raw.to_string().contains("Ethernet"), "{raw}");
    }

    #[test]
    fn and_and_or_are_left_associative_not_binds_tightest() {
        let parsed = |text| parse(text, LinkType::ETHERNET).expect(text);
        assert_eq!(parsed("tcp or udp and ip"), parsed("(tcp or udp) and ip"));
        assert_eq!(parsed("tcp and udp or ip"), parsed("((tcp && udp) || ip)"));
        assert_eq!(parsed("not tcp and ip"), parsed("(! tcp) and ip"));
        assert_eq!(parsed("src or dst port 80"), parsed("port 80"));
        assert_eq!(parsed("not port 80 or 443"), parsed("(not port 80) or port 443"));
        assert_eq!(
            parsed("src net 10 or not 11"),
            parsed("src net 10.0.0.0/8 or not src net 11.0.0.0 mask 255.0.0.0")
        );
        assert_eq!(parsed("port (80 or 443) and 444"), parsed("(port 80 or port 443) and port 444"));
        assert_eq!(parsed(" \t\n"), None);
    }

    #[test]
    fn expressions_have_limits() {
        let nested = format!("{}tcp{}", "(".repeat(65), ")".repeat(65));
        let many = "tcp or ".repeat(512) + "tcp";
        let long = " ".repeat(MAX_EXPRESSION_BYTES + 1);
        let tags = "vlan and ".repeat(8) + "vlan";
        for text in [nested, many, long, tags, "not ".repeat(10_000) + "tcp"] {
            assert!(matches!(refused(&text), FilterError::Invalid { .. }), "{}", &text[..20]);
        }
    }
}
