//! Knobs with timeouts: if a call into one driver hangs, the watchdog still restores everything else.

use std::cell::Cell;
use std::sync::mpsc;
use std::time::Duration;

use landspeed_model::Target;

use crate::knobs::DeviceDependents;
use crate::{Device, KnobError, Knobs, Value};

/// Timeout of a call before any call has timed out. Waiting for a link after a reset takes up to 20 s.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout of a call after one has hung: others may wait for the same kernel lock.
const TIMEOUT_AFTER_HANG: Duration = Duration::from_secs(2);

/// Runs each call in a separate thread, which is abandoned if the call does not return in time.
#[derive(Debug)]
pub struct BoundedKnobs<K> {
    inner: K,
    call_timeout: Cell<Duration>,
    timeout_after_hang: Duration,
}

impl<K: Knobs + Clone + Send + 'static> BoundedKnobs<K> {
    /// Wraps `inner` with the default timeouts.
    pub fn new(inner: K) -> Self {
        Self::with_limits(inner, CALL_TIMEOUT, TIMEOUT_AFTER_HANG)
    }

    fn with_limits(inner: K, call_timeout: Duration, timeout_after_hang: Duration) -> Self {
        Self { inner, call_timeout: Cell::new(call_timeout), timeout_after_hang }
    }

    /// Returns the result of a call, or `None` after the timeout.
    fn call<T: Send + 'static>(&self, call: impl FnOnce(&K) -> T + Send + 'static) -> Option<T> {
        let inner = self.inner.clone();
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("knob".into()).spawn(move || {
            let _ = sender.send(call(&inner));
        });
        let answer = thread.ok().and_then(|_| receiver.recv_timeout(self.call_timeout.get()).ok());
        if answer.is_none() {
            self.call_timeout.set(self.call_timeout.get().min(self.timeout_after_hang));
        }
        answer
    }
}

const CALL_HUNG: &str = "the call into the kernel does not return";

impl<K: Knobs + Clone + Send + 'static> Knobs for BoundedKnobs<K> {
    fn read(&self, target: &Target) -> Result<Value, KnobError> {
        let asked = target.clone();
        self.call(move |inner| inner.read(&asked)).unwrap_or_else(|| Err(KnobError::unreadable(target, CALL_HUNG)))
    }

    fn write(&self, target: &Target, value: &Value) -> Result<(), KnobError> {
        let (asked, value) = (target.clone(), value.clone());
        self.call(move |inner| inner.write(&asked, &value))
            .unwrap_or_else(|| Err(KnobError::unwritable(target, CALL_HUNG)))
    }

    fn read_only(&self, target: &Target) -> Option<String> {
        let target = target.clone();
        self.call(move |inner| inner.read_only(&target)).unwrap_or_else(|| Some(CALL_HUNG.to_owned()))
    }

    fn device(&self, interface: &str) -> Result<Device, KnobError> {
        let name = interface.to_owned();
        self.call(move |inner| inner.device(&name)).unwrap_or_else(|| {
            Err(KnobError::unreadable(&Target::Mtu { interface: interface.to_owned() }, CALL_HUNG))
        })
    }

    /// If the query hangs, assumes that the device exists under its old name: reads and writes then report that
    /// they hang.
    fn find(&self, device: &Device) -> Option<String> {
        let seen = device.clone();
        self.call(move |inner| inner.find(&seen)).unwrap_or_else(|| Some(device.name.clone()))
    }

    fn forget(&self, target: &Target, device: &Device) {
        let (target, device) = (target.clone(), device.clone());
        self.call(move |inner| inner.forget(&target, &device));
    }

    fn dependents(&self, interface: &str) -> DeviceDependents {
        let name = interface.to_owned();
        self.call(move |inner| inner.dependents(&name)).unwrap_or_default()
    }

    fn wait_for_carrier(&self, interface: &str, had_carrier: bool) -> bool {
        let name = interface.to_owned();
        self.call(move |inner| inner.wait_for_carrier(&name, had_carrier)).unwrap_or(false)
    }

    fn carrier(&self, interface: &str) -> bool {
        let name = interface.to_owned();
        self.call(move |inner| inner.carrier(&name)).unwrap_or(false)
    }

    fn default_routes(&self) -> Vec<String> {
        self.call(Knobs::default_routes).unwrap_or_default()
    }

    fn unreachable(&self, peer: &str) -> Option<String> {
        let peer = peer.to_owned();
        self.call(move |inner| inner.unreachable(&peer)).unwrap_or_else(|| Some(CALL_HUNG.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A host with one accessible sysctl, and an interface whose driver never returns.
    #[derive(Clone)]
    struct Hanging(Arc<Mutex<String>>);

    fn sysctl() -> Target {
        Target::Sysctl { name: "net.ipv4.tcp_sack".into() }
    }

    impl Knobs for Hanging {
        fn read(&self, target: &Target) -> Result<Value, KnobError> {
            if *target != sysctl() {
                std::thread::park_timeout(Duration::from_mins(10));
            }
            Ok(Value::text(self.0.lock().expect("whole").clone()))
        }

        fn write(&self, _: &Target, value: &Value) -> Result<(), KnobError> {
            *self.0.lock().expect("whole") = value.to_string();
            Ok(())
        }

        fn device(&self, _: &str) -> Result<Device, KnobError> {
            Ok(Device::default())
        }

        fn find(&self, device: &Device) -> Option<String> {
            Some(device.name.clone())
        }

        fn dependents(&self, _: &str) -> DeviceDependents {
            DeviceDependents::default()
        }

        fn wait_for_carrier(&self, _: &str, _: bool) -> bool {
            true
        }

        fn carrier(&self, _: &str) -> bool {
            true
        }

        fn default_routes(&self) -> Vec<String> {
            Vec::new()
        }

        fn unreachable(&self, _: &str) -> Option<String> {
            None
        }
    }

    #[test]
    fn a_hanging_call_does_not_block_others() {
        let inner = Hanging(Arc::new(Mutex::new("1".into())));
        let short = Duration::from_millis(300);
        let knobs = BoundedKnobs::with_limits(inner, short, short);
        let hangs = knobs.read(&Target::Mtu { interface: "eth0".into() }).expect_err("it hangs");
        assert!(!hangs.is_absent() && hangs.to_string().contains("does not return"), "{hangs}");
        let whole = BoundedKnobs::new(knobs.inner.clone());
        assert_eq!(whole.read(&sysctl()), Ok(Value::text("1")));
        whole.write(&sysctl(), &Value::text("0")).expect("written");
        assert_eq!(whole.read(&sysctl()), Ok(Value::text("0")));
    }
}
