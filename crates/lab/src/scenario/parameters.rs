//! From a flow of a scenario to the parameters of a test.

use landspeed_model::{Direction, Parameters, Protocol, RrMode, RrParameters, RrSize, UdpParameters};

use super::{Flow, FlowProtocol};

impl Flow {
    /// Returns the parameters that the flow itself sets; all others are the defaults of a test.
    pub(crate) fn parameters(&self) -> Parameters {
        let protocol = match self.protocol.unwrap_or(FlowProtocol::Tcp) {
            FlowProtocol::Tcp => Protocol::Tcp,
            // The streams of a section are UDP.
            FlowProtocol::Udp | FlowProtocol::Qualify => Protocol::Udp,
            FlowProtocol::TcpRr => Protocol::TcpRr,
            FlowProtocol::UdpRr => Protocol::UdpRr,
        };
        let default = Parameters::default();
        let bytes = self.len.map(|len| len.0.get());
        let udp = (protocol == Protocol::Udp || self.burst.is_some()).then(|| {
            let default = UdpParameters::default();
            let payload = bytes.filter(|_| protocol == Protocol::Udp);
            UdpParameters {
                payload_bytes: payload
                    .map_or(default.payload_bytes, |bytes| u32::try_from(bytes).unwrap_or(u32::MAX)),
                burst_packets: self.burst.unwrap_or(default.burst_packets),
                ..default
            }
        });
        let request_response =
            self.connect || self.requests_per_s.is_some() || self.request.or(self.response).is_some();
        let rr = (matches!(protocol, Protocol::TcpRr | Protocol::UdpRr) || request_response).then(|| RrParameters {
            mode: match (self.connect, self.requests_per_s) {
                (true, _) => RrMode::Connect,
                (false, Some(_)) => RrMode::OpenLoop,
                (false, None) => RrMode::ClosedLoop,
            },
            rate_per_s: self.requests_per_s,
            sizes: vec![RrSize {
                request_bytes: self.request.unwrap_or(1),
                response_bytes: self.response.unwrap_or(1),
            }],
        });
        Parameters {
            protocol,
            direction: match (self.bidir, self.reverse) {
                (true, _) => Direction::Both,
                (false, true) => Direction::Download,
                (false, false) => Direction::Upload,
            },
            streams: self.streams.unwrap_or(default.streams),
            time_ns: self.time.map(|time| time.0.get()),
            bytes: self.bytes.map(|bytes| bytes.0.get()),
            omit_ns: self.omit.map_or(0, |t| t.0.get()),
            interval_ns: self.interval.map_or(default.interval_ns, |t| t.0.get()),
            host_interval_ns: self
                .interval
                .map_or(default.host_interval_ns, |t| t.0.get())
                .max(default.host_interval_ns),
            write_bytes: bytes.filter(|_| protocol != Protocol::Udp).unwrap_or(default.write_bytes),
            window_bytes: self.window.map(|w| w.0.get()),
            mss_bytes: self.mss,
            congestion: self.congestion.clone(),
            nodelay: self.nodelay,
            dscp: self.dscp,
            pace_bps: self.pace.map(|r| r.0.bps()),
            pace_scope: self.pace_scope.unwrap_or_default(),
            rate_bps: self.rate.map(|r| r.0.bps()),
            send: self.send.unwrap_or_default(),
            receive: self.receive.unwrap_or_default(),
            read_rate_bps: self.read_rate.map(|r| r.0.bps()),
            udp,
            rr,
            probe_rate_per_s: self.probe,
            ..default
        }
    }
}
