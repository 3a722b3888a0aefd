//! HTTP requests of scrapers, and their answers.

use crate::samples::Format;

/// Maximum size of a request with its headers, bytes.
pub const MAX_REQUEST: usize = 8192;
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 64;
/// Path at which the metrics are served.
const PATH: &str = "/metrics";

/// HTTP status of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok,
    BadRequest,
    NotFound,
    MethodNotAllowed,
    HeadersTooLarge,
}

impl Status {
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::BadRequest, Self::NotFound, Self::MethodNotAllowed, Self::HeadersTooLarge];

    pub fn code(self) -> u16 {
        match self {
            Self::Ok => 200,
            Self::BadRequest => 400,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::HeadersTooLarge => 431,
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::BadRequest => "Bad Request",
            Self::NotFound => "Not Found",
            Self::MethodNotAllowed => "Method Not Allowed",
            Self::HeadersTooLarge => "Request Header Fields Too Large",
        }
    }
}

/// What a complete request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Requests the metrics in this format; `head` for the headers only.
    Metrics { format: Format, head: bool },
    /// Gets an error with this status.
    Invalid(Status),
}

/// Parses a request; `None` if it is not complete yet.
pub fn parse(bytes: &[u8]) -> Option<Request> {
    // Other protocols (a TLS handshake, for example) are recognised by their first byte.
    if bytes.first().is_some_and(|first| !first.is_ascii_alphabetic() && !first.is_ascii_whitespace()) {
        return Some(Request::Invalid(Status::BadRequest));
    }
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => Some(resolve(&request)),
        Ok(httparse::Status::Partial) if bytes.len() >= MAX_REQUEST => {
            Some(Request::Invalid(Status::HeadersTooLarge))
        }
        Ok(httparse::Status::Partial) => None,
        Err(httparse::Error::TooManyHeaders) => Some(Request::Invalid(Status::HeadersTooLarge)),
        Err(_) => Some(Request::Invalid(Status::BadRequest)),
    }
}

fn resolve(request: &httparse::Request<'_, '_>) -> Request {
    let path = request.path.unwrap_or_default();
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let head = match request.method {
        _ if path != PATH => return Request::Invalid(Status::NotFound),
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Request::Invalid(Status::MethodNotAllowed),
    };
    let accept = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let ranges: Vec<&str> = accept.filter_map(|header| str::from_utf8(header.value).ok()).collect();
    Request::Metrics { format: negotiate(&ranges.join(",")), head }
}

/// Chooses the format that the header `Accept` prefers (RFC 9110, 12.5.1): OpenMetrics only if it is named, with at
/// least the weight of Prometheus text.
fn negotiate(accept: &str) -> Format {
    let mut weights = [0.0_f64; 2];
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let at = match parts.next() {
            Some("application/openmetrics-text") => 0,
            Some("text/plain") => 1,
            _ => continue,
        };
        let q = parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.parse().ok()).unwrap_or(1.0);
        weights[at] = weights[at].max(q);
    }
    if weights[0] > 0.0 && weights[0] >= weights[1] { Format::OpenMetrics } else { Format::Prometheus }
}

/// Returns status line and headers of an answer.
pub fn head(status: Status, content_type: &str, body_bytes: usize) -> String {
    let allow = if status == Status::MethodNotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {} {}\r\nContent-Type: {content_type}\r\nContent-Length: {body_bytes}\r\n{allow}Connection: close\r\n\r\n",
        status.code(),
        status.reason()
    )
}

/// Returns the complete answer to an invalid request.
pub fn refusal(status: Status) -> Vec<u8> {
    let body = match status {
        Status::NotFound => "the metrics are at /metrics\n".to_owned(),
        other => format!("{}\n", other.reason()),
    };
    (head(status, "text/plain; charset=utf-8", body.len()) + &body).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header `Accept` of Prometheus 2.42.
    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                              text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

    #[test]
    fn formats_are_negotiated() {
        assert_eq!(negotiate(PROMETHEUS), Format::OpenMetrics);
        for accept in ["", "*/*", "text/plain", "text/html, */*;q=0.1", "application/openmetrics-text;q=0"] {
            assert_eq!(negotiate(accept), Format::Prometheus, "{accept}");
        }
        assert_eq!(negotiate("application/openmetrics-text;q=0.2, text/plain;q=0.9"), Format::Prometheus);
        assert_eq!(
            negotiate("text/plain; version=0.0.4; q=0.5, application/openmetrics-text; q=0.6"),
            Format::OpenMetrics
        );
    }

    #[test]
    fn requests_are_parsed() {
        let plain = Request::Metrics { format: Format::Prometheus, head: false };
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Some(plain));
        assert_eq!(parse(b"GET /metrics?name[]=x HTTP/1.0\r\n\r\n"), Some(plain));
        assert_eq!(parse(b"GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(parse(b""), None);
        let head = Request::Metrics { format: Format::Prometheus, head: true };
        assert_eq!(parse(b"HEAD /metrics HTTP/1.1\r\n\r\n"), Some(head));
        assert_eq!(parse(b"GET / HTTP/1.1\r\n\r\n"), Some(Request::Invalid(Status::NotFound)));
        assert_eq!(parse(b"POST /metrics HTTP/1.1\r\n\r\n"), Some(Request::Invalid(Status::MethodNotAllowed)));
    }

    #[test]
    fn junk_and_oversized_requests_are_refused() {
        for junk in
            [&b"\x16\x03\x01\x02\x00"[..], b"\0", b"GET\0/metrics HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n"]
        {
            assert_eq!(parse(junk), Some(Request::Invalid(Status::BadRequest)), "{junk:?}");
        }
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert_eq!(parse(many.as_bytes()), Some(Request::Invalid(Status::HeadersTooLarge)));
        let long = format!("GET /metrics HTTP/1.1\r\na: {}", "b".repeat(MAX_REQUEST));
        assert_eq!(parse(long.as_bytes()), Some(Request::Invalid(Status::HeadersTooLarge)));
    }
}
