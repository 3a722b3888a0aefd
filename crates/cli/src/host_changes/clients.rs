//! Changes that clients of `serve --allow-host-changes` may make.

use std::time::Duration;

use landspeed_flow::server::{HeldChanges, HostChanger};
use landspeed_model::{Change, ErrorEntry};
use landspeed_tune::{LiveKnobs, client_objection};

use super::holder::{Holder, need_privilege};
use crate::trust::TrustArgs;

/// Changes this host on behalf of clients of a server.
#[derive(Debug, Clone, Copy)]
pub struct ClientService {
    trust: TrustArgs,
}

impl ClientService {
    /// Checks that this process may change the host, and rolls back transactions left by a crashed server.
    pub fn new(trust: TrustArgs) -> Result<Self, ErrorEntry> {
        need_privilege()?;
        Holder::with(Duration::ZERO, trust, objection)?;
        Ok(Self { trust })
    }
}

impl HostChanger for ClientService {
    fn begin(&self, limit: Duration) -> Result<Box<dyn HeldChanges>, ErrorEntry> {
        Ok(Box::new(Holder::with(limit, self.trust, objection)?))
    }
}

fn objection(change: &Change) -> Option<String> {
    client_objection(change, &LiveKnobs)
}
