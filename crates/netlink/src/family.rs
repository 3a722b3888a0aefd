//! The generic netlink family `ethtool` (Linux 5.6; Documentation/networking/ethtool-netlink.rst), used because
//! it reports which coalescing parameters a driver has. The ioctl returns 0 for a missing parameter, which is
//! also a valid setting; here the attribute is absent.

use super::parse::{each_attribute, u32_at};
use super::{Cause, Connection, NetlinkError, Request};

// linux/genetlink.h
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
// linux/ethtool_netlink.h
const ETHTOOL_MSG_COALESCE_GET: u8 = 19;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_COALESCE_HEADER: u16 = 1;
const ETHTOOL_A_COALESCE_RX_USECS: u16 = 2;
const ETHTOOL_A_COALESCE_RX_MAX_FRAMES: u16 = 3;
const ETHTOOL_A_COALESCE_TX_USECS: u16 = 6;
const ETHTOOL_A_COALESCE_TX_MAX_FRAMES: u16 = 7;
const ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX: u16 = 11;
const ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX: u16 = 12;

/// Interrupt coalescing; `None` for parameters that the driver lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Whether receive coalescing is adaptive.
    pub adaptive_rx: Option<bool>,
    /// Whether transmit coalescing is adaptive.
    pub adaptive_tx: Option<bool>,
    /// Delay of receive interrupts, µs.
    pub rx_us: Option<u32>,
    /// Frames per receive interrupt.
    pub rx_frames: Option<u32>,
    /// Delay of transmit interrupts, µs.
    pub tx_us: Option<u32>,
    /// Frames per transmit interrupt.
    pub tx_frames: Option<u32>,
}

impl Coalescing {
    fn parse(payload: &[u8]) -> Result<Self, Cause> {
        let attributes = payload.get(4..).ok_or(Cause::Malformed("generic header"))?;
        let mut coalescing = Self::default();
        for (kind, value) in each_attribute(attributes) {
            let flag = value.first().map(|&on| on != 0);
            match kind {
                ETHTOOL_A_COALESCE_RX_USECS => coalescing.rx_us = u32_at(value, 0),
                ETHTOOL_A_COALESCE_RX_MAX_FRAMES => coalescing.rx_frames = u32_at(value, 0),
                ETHTOOL_A_COALESCE_TX_USECS => coalescing.tx_us = u32_at(value, 0),
                ETHTOOL_A_COALESCE_TX_MAX_FRAMES => coalescing.tx_frames = u32_at(value, 0),
                ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX => coalescing.adaptive_rx = flag,
                ETHTOOL_A_COALESCE_USE_ADAPTIVE_TX => coalescing.adaptive_tx = flag,
                _ => {}
            }
        }
        Ok(coalescing)
    }
}

/// The family `ethtool` in the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct EthtoolFamily {
    connection: Connection,
    id: u16,
}

impl EthtoolFamily {
    /// Looks up the family. Fails on kernels before 5.6 and those built without it.
    pub fn open() -> Result<Self, NetlinkError> {
        let mut connection = Connection::open(libc::NETLINK_GENERIC, "the generic family")?;
        let mut request = generic(GENL_ID_CTRL, CTRL_CMD_GETFAMILY);
        request.attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
        let id = connection.single(request, GENL_ID_CTRL, family_id).map_err(|cause| NetlinkError {
            operation: "family lookup",
            object: "ethtool".into(),
            cause,
        })?;
        Ok(Self { connection, id })
    }

    /// Returns the interrupt coalescing of an interface.
    pub fn coalescing(&mut self, interface: &str) -> Result<Coalescing, NetlinkError> {
        let mut request = generic(self.id, ETHTOOL_MSG_COALESCE_GET);
        let mut name = Request::new(0, 0);
        name.bytes.clear();
        name.attribute(ETHTOOL_A_HEADER_DEV_NAME, &[interface.as_bytes(), &[0]].concat());
        request.attribute(ETHTOOL_A_COALESCE_HEADER | libc::NLA_F_NESTED as u16, &name.bytes);
        self.connection.single(request, self.id, Coalescing::parse).map_err(|cause| NetlinkError {
            operation: "coalescing",
            object: interface.into(),
            cause,
        })
    }
}

/// `struct genlmsghdr`: command, version, reserved.
fn generic(family: u16, command: u8) -> Request {
    let mut request = Request::new(family, libc::NLM_F_REQUEST as u16);
    request.bytes(&[command, 1, 0, 0]);
    request
}

fn family_id(payload: &[u8]) -> Result<u16, Cause> {
    let attributes = payload.get(4..).unwrap_or_default();
    let id = each_attribute(attributes).find(|&(kind, _)| kind == CTRL_ATTR_FAMILY_ID);
    let bytes = id.and_then(|(_, value)| value.first_chunk().copied());
    bytes.map(u16::from_ne_bytes).ok_or(Cause::Malformed("family without a number"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn missing_coalescing_parameters_are_none() {
        let mut payload = vec![20, 1, 0, 0];
        for (kind, value) in
            [(ETHTOOL_A_COALESCE_RX_USECS, &8_u32.to_ne_bytes()[..]), (ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX, &[1])]
        {
            let mut attribute = Request::new(0, 0);
            attribute.bytes.clear();
            attribute.attribute(kind, value);
            payload.extend(attribute.bytes);
        }
        let expected = Coalescing { rx_us: Some(8), adaptive_rx: Some(true), ..Coalescing::default() };
        assert_eq!(Coalescing::parse(&payload).expect("a message"), expected);
    }

    #[test]
    fn loopback_coalescing_is_unsupported() {
        let mut family = match EthtoolFamily::open() {
            Ok(family) => family,
            Err(why) => landspeed_testkit::skip!("this kernel has no ethtool netlink: {why}"),
        };
        let error = family.coalescing("lo").expect_err("lo has none");
        assert!(error.is_unsupported(), "{error}");
        let error = family.coalescing("nosuch0").expect_err("no such interface");
        assert!(!error.is_unsupported() && error.to_string().contains("nosuch0"), "{error}");
    }

    proptest! {
        #[test]
        fn parsers_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Coalescing::parse(&bytes), family_id(&bytes));
        }
    }
}
