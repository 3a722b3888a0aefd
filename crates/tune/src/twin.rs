//! A simulated host in memory, to test the order of writes, reactions of drivers, and changes by other
//! programs.

use std::cell::RefCell;
use std::collections::BTreeMap;

use landspeed_model::Target;

use crate::knobs::DeviceDependents;
use crate::{Device, KnobError, Knobs, Value};

/// Reaction of the host to a write: the value it stores, or an error.
type WriteHook = Box<dyn FnMut(&Target, &Value) -> Result<Value, String>>;

/// A simulated host in memory. [`SimulatedKnobs::log`] returns all writes.
#[derive(Default)]
pub struct SimulatedKnobs {
    values: RefCell<BTreeMap<Target, Value>>,
    devices: RefCell<Vec<Device>>,
    dependents: RefCell<BTreeMap<String, DeviceDependents>>,
    log: RefCell<Vec<(Target, Value)>>,
    on_write: RefCell<Option<WriteHook>>,
    problems: RefCell<Vec<String>>,
    hidden: RefCell<Vec<Target>>,
    network_interrupts: RefCell<Vec<Target>>,
}

impl std::fmt::Debug for SimulatedKnobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimulatedKnobs").field("values", &self.values).field("log", &self.log).finish_non_exhaustive()
    }
}

impl SimulatedKnobs {
    /// Creates a host with these settings; every interface they name exists.
    pub fn new(settings: impl IntoIterator<Item = (Target, Value)>) -> Self {
        let twin = Self::default();
        for (target, value) in settings {
            if let Some(interface) = target.interface() {
                twin.add_device(interface);
            }
            twin.values.borrow_mut().insert(target, value);
        }
        twin
    }

    fn add_device(&self, interface: &str) {
        let mut devices = self.devices.borrow_mut();
        if devices.iter().all(|device| device.name != interface) {
            let ifindex = devices.len() as u32 + 2;
            let mac = format!("02:00:00:00:00:{ifindex:02x}");
            devices.push(Device { name: interface.to_owned(), ifindex, mac, bus: String::new() });
        }
    }

    /// Simulates a write by another program.
    pub fn set(&self, target: &Target, value: Value) {
        self.values.borrow_mut().insert(target.clone(), value);
    }

    /// Returns all settings with their values.
    pub fn values(&self) -> BTreeMap<Target, Value> {
        self.values.borrow().clone()
    }

    /// Returns all writes, in order.
    pub fn log(&self) -> Vec<(Target, Value)> {
        self.log.borrow().clone()
    }

    /// Sets the host's reaction to writes.
    pub fn on_write(&self, act: impl FnMut(&Target, &Value) -> Result<Value, String> + 'static) {
        *self.on_write.borrow_mut() = Some(Box::new(act));
    }

    /// Sets the dependents of an interface.
    pub fn set_dependents(&self, interface: &str, dependents: DeviceDependents) {
        self.dependents.borrow_mut().insert(interface.to_owned(), dependents);
    }

    /// Renames an interface, as udev might.
    pub fn rename(&self, from: &str, to: &str) {
        for device in self.devices.borrow_mut().iter_mut().filter(|device| device.name == from) {
            to.clone_into(&mut device.name);
        }
        let mut values = self.values.borrow_mut();
        let moved: Vec<Target> = values.keys().filter(|target| target.interface() == Some(from)).cloned().collect();
        for target in moved {
            if let Some(value) = values.remove(&target) {
                values.insert(target.on_interface(to), value);
            }
        }
    }

    /// Removes an interface with its settings.
    pub fn remove(&self, interface: &str) {
        self.devices.borrow_mut().retain(|device| device.name != interface);
        self.values.borrow_mut().retain(|target, _| target.interface() != Some(interface));
    }

    /// Assigns an interrupt to a network interface.
    pub fn add_network_interrupt(&self, target: &Target) {
        self.network_interrupts.borrow_mut().push(target.clone());
    }

    /// Makes a setting unreadable.
    pub fn hide(&self, target: &Target) {
        self.hidden.borrow_mut().push(target.clone());
    }

    /// Makes a hidden setting readable again.
    pub fn show(&self, target: &Target) {
        self.hidden.borrow_mut().retain(|hidden| hidden != target);
    }

    /// Makes the management peer unreachable, with this reason.
    pub fn cut(&self, why: &str) {
        self.problems.borrow_mut().push(why.to_owned());
    }
}

impl Knobs for SimulatedKnobs {
    fn is_network_interrupt(&self, target: &Target) -> bool {
        self.network_interrupts.borrow().contains(target)
    }

    fn read(&self, target: &Target) -> Result<Value, KnobError> {
        if self.hidden.borrow().contains(target) {
            return Err(KnobError::unreadable(target, "Permission denied"));
        }
        self.values
            .borrow()
            .get(target)
            .cloned()
            .ok_or_else(|| KnobError::absent(target, "the audited host has none"))
    }

    fn write(&self, target: &Target, value: &Value) -> Result<(), KnobError> {
        if !self.values.borrow().contains_key(target) {
            return Err(KnobError::absent(target, "the audited host has none"));
        }
        self.log.borrow_mut().push((target.clone(), value.clone()));
        let kept = match self.on_write.borrow_mut().as_mut() {
            Some(act) => act(target, value).map_err(|why| KnobError::unwritable(target, why))?,
            None => value.clone(),
        };
        self.values.borrow_mut().insert(target.clone(), kept);
        Ok(())
    }

    fn device(&self, interface: &str) -> Result<Device, KnobError> {
        let target = Target::Mtu { interface: interface.to_owned() };
        let devices = self.devices.borrow();
        let found = devices.iter().find(|device| device.name == interface).cloned();
        found.ok_or_else(|| KnobError::absent(&target, format!("there is no interface {interface}")))
    }

    fn find(&self, seen: &Device) -> Option<String> {
        self.devices.borrow().iter().find(|device| device.is(seen)).map(|device| device.name.clone())
    }

    fn dependents(&self, interface: &str) -> DeviceDependents {
        self.dependents.borrow().get(interface).cloned().unwrap_or_default()
    }

    fn wait_for_carrier(&self, interface: &str, _: bool) -> bool {
        self.carrier(interface)
    }

    fn carrier(&self, interface: &str) -> bool {
        self.devices.borrow().iter().any(|device| device.name == interface)
    }

    fn default_routes(&self) -> Vec<String> {
        Vec::new()
    }

    fn unreachable(&self, _: &str) -> Option<String> {
        self.problems.borrow().first().cloned()
    }
}
