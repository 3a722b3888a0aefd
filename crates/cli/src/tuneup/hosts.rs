//! Settings of both hosts for the tests of a search (`--allow-host-changes`): held while they are needed, and rolled back.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use landspeed_flow::client::Target;
use landspeed_flow::control::channel::Key;
use landspeed_model::{Change, Family, TuneupPlan};

use crate::host_changes::{ChangeError, HostChanges};
use crate::trust::TrustArgs;

/// Time beyond the budget in which everything is rolled back whatever hangs.
const GRACE: Duration = Duration::from_mins(1);

/// Both hosts, changed for as long as this lasts.
pub struct Hosts {
    client: HostChanges,
    /// `None` where both ends are in one network namespace.
    server: Option<HostChanges>,
}

impl Hosts {
    /// Asks both ends; the server must have been started with `--allow-host-changes`.
    pub fn begin(
        target: &Target,
        family: Family,
        key: Option<&Key>,
        budget: Duration,
        trust: TrustArgs,
        stop: &'static AtomicBool,
    ) -> Result<Self, ChangeError> {
        let client = HostChanges::local(budget + GRACE, trust)?;
        let server = HostChanges::remote(target, family, key, budget + GRACE, stop)?;
        Ok(Self::of(client, server))
    }

    /// Two hosts, or one: where both are in one network namespace, the first holds all changes.
    pub fn of(client: HostChanges, server: HostChanges) -> Self {
        let same = client.place() == server.place();
        Self { client, server: (!same).then_some(server) }
    }

    /// Makes both hosts what `plan` says: their own values and these changes.
    pub fn hold(&mut self, plan: &TuneupPlan) -> Result<(), ChangeError> {
        if let Some(server) = &mut self.server {
            set(&mut self.client, &plan.client)?;
            return set(server, &plan.server);
        }
        let mut all = plan.client.clone();
        all.extend(plan.server.iter().filter(|change| !plan.client.contains(change)).cloned());
        set(&mut self.client, &all)
    }

    /// Puts everything back; both are tried.
    pub fn roll_back(mut self) -> Result<(), ChangeError> {
        let client = self.client.roll_back();
        let server = self.server.as_mut().map_or(Ok(()), HostChanges::roll_back);
        client.and(server)
    }
}

fn set(host: &mut HostChanges, changes: &[Change]) -> Result<(), ChangeError> {
    if host.held() == changes { Ok(()) } else { host.apply(changes).map(drop) }
}
