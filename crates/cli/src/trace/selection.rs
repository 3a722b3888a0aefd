//! Selection of packets: `--flow` and `--filter`.

use std::net::{IpAddr, SocketAddr};

use landspeed_wire::filter::PacketFilter;

/// A valid expression in the language of `pcap-filter(7)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression(String);

/// The endpoints of `--flow`, as they were given, and the expression that selects them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoints(String, Expression);

/// Parses the value of `--filter`.
pub fn expression(text: &str) -> Result<Expression, String> {
    match PacketFilter::parse(text) {
        Ok(_) => Ok(Expression(text.to_owned())),
        Err(why) => Err(format!("{why}\nOr let tcpdump select: tcpdump -r FILE -w - EXPRESSION | landspeed trace -")),
    }
}

/// Parses the value of `--flow`: one endpoint, or two with a comma between them.
pub fn flow(text: &str) -> Result<Endpoints, String> {
    expression_of(text).map(|expression| Endpoints(text.to_owned(), expression))
}

fn expression_of(text: &str) -> Result<Expression, String> {
    let endpoints = text.split(',').map(endpoint).collect::<Result<Vec<_>, _>>()?;
    match endpoints.as_slice() {
        [one] => Ok(Expression(format!("{} or {}", one.side("src"), one.side("dst")))),
        [one, two] => {
            let between = |from: &Endpoint, to: &Endpoint| format!("({} and {})", from.side("src"), to.side("dst"));
            Ok(Expression(format!("{} or {}", between(one, two), between(two, one))))
        }
        _ => Err("more than two endpoints".to_owned()),
    }
}

/// Returns the filter that both options select.
pub fn filter(flow: Option<&Endpoints>, filter: Option<&Expression>) -> Option<PacketFilter> {
    let texts = [flow.map(|Endpoints(_, expression)| expression), filter];
    let parts: Vec<_> = texts.into_iter().flatten().map(|Expression(text)| format!("({text})")).collect();
    PacketFilter::parse(&parts.join(" and ")).ok()
}

/// Returns both options as they were given; `None` without any.
pub fn given(flow: Option<&Endpoints>, filter: Option<&Expression>) -> Option<String> {
    let flow = flow.map(|Endpoints(text, _)| format!("--flow {text}"));
    let filter = filter.map(|Expression(text)| format!("--filter '{text}'"));
    let options: Vec<_> = flow.into_iter().chain(filter).collect();
    (!options.is_empty()).then(|| options.join(" "))
}

struct Endpoint {
    address: IpAddr,
    port: Option<u16>,
}

impl Endpoint {
    fn side(&self, side: &str) -> String {
        let host = format!("{side} host {}", self.address);
        self.port.map_or_else(|| host.clone(), |port| format!("({host} and {side} port {port})"))
    }
}

fn endpoint(text: &str) -> Result<Endpoint, String> {
    let text = text.trim();
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Endpoint { address: address.ip(), port: Some(address.port()) });
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>();
    let address = address.map_err(|_| format!("`{text}` is no ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT"))?;
    Ok(Endpoint { address, port: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_become_expressions() {
        for (text, expected) in [
            ("10.0.0.1", "src host 10.0.0.1 or dst host 10.0.0.1"),
            ("[::1]:443", "(src host ::1 and src port 443) or (dst host ::1 and dst port 443)"),
            (
                "10.0.0.1:1,10.0.0.2",
                "((src host 10.0.0.1 and src port 1) and dst host 10.0.0.2) or (src host 10.0.0.2 and (dst host 10.0.0.1 and dst \
                 port 1))",
            ),
        ] {
            let flow = flow(text).expect("endpoints");
            assert_eq!(flow.1, Expression(expected.to_owned()));
            assert!(filter(Some(&flow), None).is_some(), "{flow:?}");
            let tcp = expression("tcp").expect("an expression");
            assert!(filter(Some(&flow), Some(&tcp)).is_some(), "{flow:?}");
            assert_eq!(given(Some(&flow), Some(&tcp)), Some(format!("--flow {text} --filter 'tcp'")));
        }
        for text in ["", "localhost", "10.0.0.1:70000", "1.1.1.1,2.2.2.2,3.3.3.3", "10.0.0.1-10.0.0.2"] {
            assert!(flow(text).is_err(), "{text}");
        }
    }
}
