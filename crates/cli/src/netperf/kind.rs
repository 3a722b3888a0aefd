//! The tests of netperf that are here.

/// A test of netperf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// Bulk TCP to the server.
    TcpStream,
    /// Bulk TCP from the server.
    TcpMaerts,
    /// Bulk UDP to the server, as fast as the host can.
    UdpStream,
    /// Request/response over one TCP connection.
    TcpRr,
    /// Request/response over UDP.
    UdpRr,
    /// Request/response, a TCP connection for each.
    TcpCrr,
}

impl Test {
    /// Parses the value of `-t`.
    pub fn of_option(text: &str) -> Result<Self, String> {
        match text.to_ascii_uppercase().as_str() {
            "TCP_STREAM" => Ok(Self::TcpStream),
            "TCP_MAERTS" => Ok(Self::TcpMaerts),
            "UDP_STREAM" => Ok(Self::UdpStream),
            "TCP_RR" => Ok(Self::TcpRr),
            "UDP_RR" => Ok(Self::UdpRr),
            "TCP_CRR" => Ok(Self::TcpCrr),
            "OMNI" => {
                Err("the omni test is not here; name one of TCP_STREAM, TCP_MAERTS, UDP_STREAM, TCP_RR, UDP_RR, \
                           TCP_CRR"
                    .to_owned())
            }
            _ => Err("TCP_STREAM, TCP_MAERTS, UDP_STREAM, TCP_RR, UDP_RR or TCP_CRR".to_owned()),
        }
    }

    /// Returns the test's name as a title: `TCP STREAM`.
    pub fn title(self) -> &'static str {
        match self {
            Self::TcpStream => "TCP STREAM",
            Self::TcpMaerts => "TCP MAERTS",
            Self::UdpStream => "UDP UNIDIRECTIONAL SEND",
            Self::TcpRr => "TCP REQUEST/RESPONSE",
            Self::UdpRr => "UDP REQUEST/RESPONSE",
            Self::TcpCrr => "TCP Connect/Request/Response",
        }
    }

    /// Whether it counts transactions.
    pub fn is_rr(self) -> bool {
        matches!(self, Self::TcpRr | Self::UdpRr | Self::TcpCrr)
    }

    /// Whether it runs over UDP.
    pub fn is_udp(self) -> bool {
        matches!(self, Self::UdpStream | Self::UdpRr)
    }
}
