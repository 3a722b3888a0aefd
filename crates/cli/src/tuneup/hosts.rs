//! Settings of both hosts during a search (`--allow-host-changes`): held while they are needed, then rolled back.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::Target;
use landspeed_flow::control::channel::Key;
use landspeed_model::{Change, Family, TuneupPlan};

use crate::host_changes::{ChangeError, HostChanges};
use crate::trust::TrustArgs;

/// Time after the budget when everything is rolled back, even if landspeed hangs.
const ROLLBACK_GRACE: Duration = Duration::from_mins(1);

/// Changes of both hosts, rolled back on drop.
pub struct Hosts {
    client: HostChanges,
    /// `None` if client and server are in one network namespace.
    server: Option<HostChanges>,
}

impl Hosts {
    /// Opens changes on both hosts; the server needs `--allow-host-changes`.
    pub fn begin(
        target: &Target,
        family: Family,
        key: Option<&Key>,
        budget: Duration,
        trust: TrustArgs,
        stop: &'static AtomicBool,
    ) -> Result<Self, ChangeError> {
        let client = HostChanges::local(budget + ROLLBACK_GRACE, trust)?;
        let server = HostChanges::remote(target, family, key, budget + ROLLBACK_GRACE, stop)?;
        Ok(Self::of(client, server))
    }

    /// Combines two hosts. If both are in one network namespace, the first holds all changes.
    pub fn of(client: HostChanges, server: HostChanges) -> Self {
        let same = client.place() == server.place();
        Self { client, server: (!same).then_some(server) }
    }

    /// Applies the changes of `plan` to both hosts; all other settings have their original values.
    pub fn hold(&mut self, plan: &TuneupPlan) -> Result<(), ChangeError> {
        if let Some(server) = &mut self.server {
            set(&mut self.client, &plan.client)?;
            return set(server, &plan.server);
        }
        let mut all = plan.client.clone();
        all.extend(plan.server.iter().filter(|change| !plan.client.contains(change)).cloned());
        set(&mut self.client, &all)
    }

    /// Rolls back both hosts, the server even if the client fails.
    pub fn roll_back(mut self) -> Result<(), ChangeError> {
        let client = self.client.roll_back();
        let server = self.server.as_mut().map_or(Ok(()), HostChanges::roll_back);
        client.and(server)
    }
}

fn set(host: &mut HostChanges, changes: &[Change]) -> Result<(), ChangeError> {
    if host.held() == changes { Ok(()) } else { host.apply(changes).map(drop) }
}
