//! Parser for PCI configuration space.

/// Device control settings of a PCI Express device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceControl {
    /// Maximum read request size, bytes.
    pub max_read_request_bytes: u32,
    /// Maximum payload size, bytes.
    pub max_payload_bytes: u32,
    /// Whether relaxed ordering is enabled.
    pub relaxed_ordering: bool,
}

/// Reason why a device's control register is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlError {
    /// The available bytes end before the register.
    Truncated,
    /// It is not a PCI Express device.
    NotExpress,
    /// The bytes are not a configuration space, or their capability list has a cycle.
    Malformed,
}

/// Parses the device control register of a PCI Express device (PCI Express Base Specification, 7.5.3.4): 8
/// bytes into the capability 0x10, which is in the list that begins at 0x34. Bits 14:12 are the read request,
/// 7:5 the payload (each 128 << n bytes), 4 relaxed ordering.
pub(crate) fn device_control(config: &[u8]) -> Result<DeviceControl, ControlError> {
    const STATUS: usize = 0x06;
    const HAS_CAPABILITIES: u8 = 0x10;
    const CAPABILITIES: usize = 0x34;
    const EXPRESS: u8 = 0x10;
    /// Maximum number of capabilities between the header and the end of the space.
    const MAX_CAPABILITIES: usize = 48;
    let byte = |at: usize| config.get(at).copied().ok_or(ControlError::Truncated);
    // A device that does not respond reads as all ones.
    if byte(0)? == 0xff && byte(1)? == 0xff {
        return Err(ControlError::Malformed);
    }
    if byte(STATUS)? & HAS_CAPABILITIES == 0 {
        return Err(ControlError::NotExpress);
    }
    let mut at = usize::from(byte(CAPABILITIES)? & !3);
    for _ in 0..MAX_CAPABILITIES {
        if at == 0 {
            return Err(ControlError::NotExpress);
        }
        if at < 0x40 {
            return Err(ControlError::Malformed);
        }
        if byte(at)? == EXPRESS {
            let control = u16::from_le_bytes([byte(at + 8)?, byte(at + 9)?]);
            let size = |shift: u16| 128_u32 << (control >> shift & 7);
            return Ok(DeviceControl {
                max_read_request_bytes: size(12),
                max_payload_bytes: size(5),
                relaxed_ordering: control & 0x10 != 0,
            });
        }
        at = usize::from(byte(at + 1)? & !3);
    }
    Err(ControlError::Malformed)
}

#[cfg(test)]
pub(crate) fn config_with_express_at(at: u8, control: u16) -> Vec<u8> {
    let mut config = vec![0; 256];
    config[..4].copy_from_slice(&[0xb3, 0x15, 0x17, 0x10]);
    config[6] = 0x10;
    // A power management capability first, as on real devices.
    config[0x34] = 0x40;
    config[0x40..0x42].copy_from_slice(&[0x01, at]);
    let place = usize::from(at);
    config[place] = 0x10;
    config[place + 8..place + 10].copy_from_slice(&control.to_le_bytes());
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_control_is_found_through_the_capability_list() {
        // lspci of such a device: MaxPayload 256 bytes, MaxReadReq 4096 bytes, RlxdOrd+.
        let config = config_with_express_at(0x60, 5 << 12 | 1 << 5 | 0x10);
        let expected = DeviceControl { max_read_request_bytes: 4096, max_payload_bytes: 256, relaxed_ordering: true };
        assert_eq!(device_control(&config), Ok(expected));
    }

    #[test]
    fn a_truncated_configuration_space_is_short_not_absent() {
        let config = config_with_express_at(0x60, 0);
        assert_eq!(device_control(&config[..64]), Err(ControlError::Truncated));
    }

    #[test]
    fn cyclic_capability_lists_are_malformed() {
        let mut config = config_with_express_at(0x60, 0);
        config[0x60] = 0x05;
        config[0x61] = 0x40;
        assert_eq!(device_control(&config), Err(ControlError::Malformed));
        config[0x61] = 0;
        assert_eq!(device_control(&config), Err(ControlError::NotExpress));
        assert_eq!(device_control(&[0xff; 256]), Err(ControlError::Malformed));
        assert_eq!(device_control(&[]), Err(ControlError::Truncated));
    }
}
